/* SPDX-License-Identifier: Apache-2.0 */
#include "mapped.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

/* A handler has no argument of ours, so this is of the process; nothing here allocates once it is set up. */
static struct {
	char *cut_off, *unreadable; /* messages */
	const struct xfp_made *made;
	int fd;
	off_t bytes;
	atomic_flag taken; /* by the first thread that met it */
	struct sigaction before;
} reading = { .fd = -1, .taken = ATOMIC_FLAG_INIT };

static void remove_made(void)
{
	for (size_t i = reading.made ? reading.made->count : 0; i-- > 0;)
		if (unlink(reading.made->path[i]))
			(void)rmdir(reading.made->path[i]);
}

static bool is_of_a_page(int code)
{
#ifdef BUS_MCEERR_AR
	if (code == BUS_MCEERR_AR) /* memory itself is broken there */
		return true;
#endif
	return code == BUS_ADRERR || code == BUS_OBJERR;
}

/* Calls only what a signal handler may. */
static void give_up(int number, siginfo_t *info, void *context)
{
	const char *text = reading.unreadable;
	int status = XFP_FAILED;
	struct stat st;

	(void)context;
	/* Sent by somebody, or an address that is wrong in itself: not about the file. It comes again on return. */
	if (!is_of_a_page(info->si_code)) {
		sigaction(number, &reading.before, NULL);
		raise(number);
		return;
	}
	while (atomic_flag_test_and_set(&reading.taken))
		pause();
	if (!fstat(reading.fd, &st) && st.st_size < reading.bytes) {
		text = reading.cut_off;
		status = XFP_BAD_INPUT;
	}
	remove_made();
	(void)!write(STDERR_FILENO, text, strlen(text));
	_exit(status);
}

void xfp_mapped_begin(const char *program, const char *path, const struct xfp_made *made)
{
	const char *clear = isatty(STDERR_FILENO) ? "\r\033[K" : ""; /* of progress */
	struct sigaction action = { .sa_sigaction = give_up, .sa_flags = SA_SIGINFO };
	struct stat st;

	reading.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	reading.bytes = reading.fd >= 0 && !fstat(reading.fd, &st) ? st.st_size : 0;
	reading.made = made;
	reading.cut_off =
		xfp_format("%s%s: %s: truncated while it was read; copy or convert it again\n", clear, program, path);
	reading.unreadable =
		xfp_format("%s%s: %s: cannot be read: its disk reports an error, or is full where the file "
			   "has holes; check the disk, then try again or copy the file again\n",
			   clear, program, path);
	sigemptyset(&action.sa_mask);
	if (!reading.cut_off || !reading.unreadable || sigaction(SIGBUS, &action, &reading.before))
		xfp_mapped_end(); /* then it ends as it would without us */
}

void xfp_mapped_end(void)
{
	struct sigaction now;

	if (!sigaction(SIGBUS, NULL, &now) && now.sa_flags & SA_SIGINFO && now.sa_sigaction == give_up)
		sigaction(SIGBUS, &reading.before, NULL);
	if (reading.fd >= 0)
		close(reading.fd);
	free(reading.cut_off);
	free(reading.unreadable);
	reading.cut_off = reading.unreadable = NULL;
	reading.made = NULL;
	reading.fd = -1;
}
