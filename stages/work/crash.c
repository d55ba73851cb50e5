/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/mapped.h"

#define MAX_BYTES 8192

static const struct {
	int number;
	const char *name;
} fatal[] = {
	{ SIGBUS, "bus error" },           { SIGSEGV, "segmentation fault" },      { SIGABRT, "aborted" },
	{ SIGILL, "illegal instruction" }, { SIGFPE, "floating point exception" },
};
#define FATAL (sizeof fatal / sizeof fatal[0])

/* Process-wide, because a signal handler gets no argument from us. */
static struct {
	const char *program;
	char *path; /* path of the record; NULL: no run is watched */
	off_t at;   /* end of its entries */
	struct sigaction before[FATAL];
} watched;

struct entries {
	size_t size;
	char bytes[MAX_BYTES];
};

/* From here to `handle`: only async-signal-safe functions. */

static void append(struct entries *entries, const char *text, size_t size)
{
	size_t left = sizeof entries->bytes - entries->size;

	size = size < left ? size : left;
	memcpy(entries->bytes + entries->size, text, size);
	entries->size += size;
}

/* Append "NAME=NUMBER" with its NUL. */
static void append_number(struct entries *entries, const char *name, int64_t number)
{
	char digits[24], *at = digits + sizeof digits;

	*--at = 0;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	append(entries, name, strlen(name));
	append(entries, at, (size_t)(digits + sizeof digits - at));
}

static void note(int status, const char *message, size_t size)
{
	struct entries entries = { 0 };
	int fd = watched.path ? open(watched.path, O_WRONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	append(&entries, "state=failed\0phase=", sizeof "state=failed\0phase=");
	append_number(&entries, "status=", status);
	append_number(&entries, "ended=", xfp_wall_ms());
	append(&entries, "message=", strlen("message="));
	append(&entries, message, size);
	entries.bytes[entries.size < sizeof entries.bytes ? entries.size++ : sizeof entries.bytes - 1] = 0;
	(void)!pwrite(fd, entries.bytes, entries.size, watched.at);
	close(fd);
}

static void handle(int number)
{
	struct entries said = { 0 };
	size_t i = 0, program;

	while (fatal[i].number != number)
		i++;
	append(&said, watched.program, strlen(watched.program));
	append(&said, ": ", 2);
	program = said.size;
	append(&said, fatal[i].name, strlen(fatal[i].name));
	append(&said, "; run again, and report this if it happens again\n",
	       strlen("; run again, and report this if it happens again\n"));
	note(128 + number, said.bytes + program, said.size - program - 1);
	(void)!write(STDERR_FILENO, said.bytes, said.size);
	sigaction(number, &watched.before[i], NULL);
	raise(number); /* delivered when this returns */
}

void xfp_crash_watch(const char *program, const char *work, const struct xfp_run_record *record)
{
	struct sigaction action = { .sa_handler = handle };

	watched.at = (off_t)record->text_bytes;
	if (watched.path || !(watched.path = xfp_path(work, XFP_RUN_FILE)))
		return;
	watched.program = program;
	sigemptyset(&action.sa_mask);
	/* If this fails, the signal ends the process without a record, as for any other command. */
	for (size_t i = 0; i < FATAL; i++)
		(void)sigaction(fatal[i].number, &action, &watched.before[i]);
	xfp_mapped_note(note);
}

void xfp_crash_unwatch(void)
{
	if (!watched.path)
		return;
	xfp_mapped_note(NULL);
	for (size_t i = 0; i < FATAL; i++)
		(void)sigaction(fatal[i].number, &watched.before[i], NULL);
	free(watched.path);
	watched.path = NULL;
}
