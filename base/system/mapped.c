/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/mapped.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"

#define MAX_BUNDLES 2

/* Process-wide, because a signal handler gets no argument from us; nothing here allocates after set-up. */
static struct {
	struct bundle {
		const char *path;
		size_t prefix;              /* bytes of a message before the path */
		char *cut_off, *unreadable; /* messages; NULL: out of memory */
		const struct xfp_created *created;
		int fd;
		off_t bytes;
	} bundle[MAX_BUNDLES];
	int count;
	atomic_flag taken; /* set by the first thread to fault */
	struct sigaction before;
	void (*note)(int status, const char *message, size_t size);
} reading = { .taken = ATOMIC_FLAG_INIT };

static void remove_created(const struct xfp_created *created)
{
	for (size_t i = created ? created->count : 0; i-- > 0;)
		if (unlink(created->path[i]))
			(void)rmdir(created->path[i]);
}

static bool is_of_a_page(int code)
{
#ifdef BUS_MCEERR_AR
	if (code == BUS_MCEERR_AR) /* the memory itself has failed at this address */
		return true;
#endif
	return code == BUS_ADRERR || code == BUS_OBJERR;
}

/* Calls only async-signal-safe functions. */
static void give_up(int number, siginfo_t *info, void *context)
{
	const struct bundle *last = &reading.bundle[reading.count - 1]; /* the address does not identify the bundle */
	const char *text = last->unreadable;
	size_t prefix = last->prefix;
	int status = XFP_FAILED;
	struct stat st;

	(void)context;
	/* Sent by a process, or an invalid address: not caused by the file. The signal recurs on return. */
	if (!is_of_a_page(info->si_code)) {
		sigaction(number, &reading.before, NULL);
		raise(number);
		return;
	}
	while (atomic_flag_test_and_set(&reading.taken))
		pause();
	for (int i = 0; i < reading.count; i++) {
		const struct bundle *bundle = &reading.bundle[i];

		if (!fstat(bundle->fd, &st) && st.st_size < bundle->bytes) {
			text = bundle->cut_off;
			prefix = bundle->prefix;
			status = XFP_BAD_INPUT;
		}
		remove_created(bundle->created);
	}
	if (!text) {
		text = "xfp: a bundle is no longer readable\n";
		prefix = strlen("xfp: ");
	}
	if (reading.note)
		reading.note(status, text + prefix, strlen(text) - prefix - 1);
	(void)!write(STDERR_FILENO, text, strlen(text));
	_exit(status);
}

void xfp_mapped_begin(const char *program, const char *path, const struct xfp_created *created)
{
	const char *clear = isatty(STDERR_FILENO) ? "\r\033[K" : ""; /* erases a progress line */
	const char *other = reading.count ? reading.bundle[0].path : NULL;
	struct bundle *bundle = &reading.bundle[reading.count];
	struct sigaction action = { .sa_sigaction = give_up, .sa_flags = SA_SIGINFO };
	struct stat st;

	assert(reading.count < MAX_BUNDLES);
	*bundle = (struct bundle){ .path = path, .created = created };
	bundle->prefix = strlen(clear) + strlen(program) + strlen(": ");
	bundle->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bundle->bytes = bundle->fd >= 0 && !fstat(bundle->fd, &st) ? st.st_size : 0;
	bundle->cut_off =
		xfp_formatted("%s%s: %s: truncated while being read; copy or convert it again\n", clear, program, path);
	bundle->unreadable = xfp_formatted("%s%s: %s%s%s: cannot read: disk error, or no space for a hole in the file; "
					   "check the disk, then try again or copy the file again\n",
					   clear, program, other ? other : "", other ? " or " : "", path);
	sigemptyset(&action.sa_mask);
	/* If this fails, SIGBUS ends the process as it would without a handler. */
	if (!reading.count++)
		(void)sigaction(SIGBUS, &action, &reading.before);
}

void xfp_mapped_end(void)
{
	struct bundle *bundle = &reading.bundle[reading.count - 1];
	struct sigaction now;

	if (reading.count == 1 && !sigaction(SIGBUS, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == give_up)
		sigaction(SIGBUS, &reading.before, NULL);
	reading.count--;
	if (bundle->fd >= 0)
		close(bundle->fd);
	free(bundle->cut_off);
	free(bundle->unreadable);
}

void xfp_mapped_note(void (*note)(int status, const char *message, size_t size))
{
	reading.note = note;
}
