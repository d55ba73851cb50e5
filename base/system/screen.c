/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/whole_number.h"

#define MOST 10000ul

unsigned xfp_screen_width(void)
{
	const char *given = getenv("COLUMNS");
	struct winsize size;
	uint64_t width = 0;

	if (!(given && xfp_whole_number_parse(given, 1, UINT64_MAX, &width)) &&
	    !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	return width < XFP_SCREEN_LEAST ? XFP_SCREEN_LEAST : width < MOST ? (unsigned)width : (unsigned)MOST;
}

void xfp_screen_print(const char *text, size_t size, bool raw)
{
	if (raw || !isatty(STDOUT_FILENO)) {
		fwrite(text, 1, size, stdout);
		return;
	}
	while (size) {
		char piece[XFP_ESCAPED];
		size_t taken = xfp_escape_in_text(text, size, piece);

		fputs(piece, stdout);
		text += taken;
		size -= taken;
	}
}
