/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/screen.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MOST 10000ul

unsigned xfp_screen_width(void)
{
	const char *given = getenv("COLUMNS");
	unsigned long width = 0;
	struct winsize size;
	char *end;

	if (given && *given >= '0' && *given <= '9') {
		width = strtoul(given, &end, 10);
		if (*end)
			width = 0;
	}
	if (!width && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	return width < XFP_SCREEN_LEAST ? XFP_SCREEN_LEAST : width < MOST ? (unsigned)width : (unsigned)MOST;
}
