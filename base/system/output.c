/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/xfp_error.h"

bool xfp_output_flush(void)
{
	return !fflush(stdout) && !ferror(stdout);
}

/* The reason for an earlier failed write is lost, but the next write fails for the same reason. If it succeeds (space
 * was freed), one extra byte at the end of incomplete output does no harm. */
static int ask_again(void)
{
	clearerr(stdout);
	errno = 0;
	return putchar('\n') == EOF || fflush(stdout) ? errno : 0;
}

int xfp_output_finish(const char *program, int status)
{
	int errnum = 0;
	bool lost = ferror(stdout);

	if (lost) {
		errnum = ask_again();
	} else if (fflush(stdout)) {
		errnum = errno;
		lost = true;
	}
	/* Network file systems report a full disk only on close. */
	if (fclose(stdout) && !lost) {
		errnum = errno;
		lost = true;
	}
	if (!lost)
		return status;
	fprintf(stderr, "%s: standard output: cannot write%s%s\n", program, errnum ? ": " : "",
		errnum ? strerror(errnum) : "");
	return status ? status : XFP_FAILED;
}
