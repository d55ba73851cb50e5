/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/whole_number.h"

#define MAX_COLUMNS 10000ul

unsigned xfp_screen_width(void)
{
	const char *given = getenv("COLUMNS");
	struct winsize size;
	uint64_t width = 0;

	if (!(given && xfp_whole_number_parse(given, 1, UINT64_MAX, &width)) &&
	    !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	return width < XFP_SCREEN_MIN_COLUMNS ? XFP_SCREEN_MIN_COLUMNS
	       : width < MAX_COLUMNS          ? (unsigned)width
					      : (unsigned)MAX_COLUMNS;
}

void xfp_screen_put(FILE *out, const char *text, size_t size)
{
	while (size) {
		char piece[XFP_ESCAPED];
		size_t taken = xfp_escape_in_text(text, size, piece);

		fputs(piece, out);
		text += taken;
		size -= taken;
	}
}

void xfp_screen_vprintf(FILE *out, const char *format, va_list args)
{
	char buffer[4096], *text = buffer;
	va_list again;

	va_copy(again, args);
	if (vsnprintf(buffer, sizeof buffer, format, args) >= (int)sizeof buffer && vasprintf(&text, format, again) < 0)
		text = buffer; /* out of memory: truncate */
	va_end(again);
	xfp_screen_put(out, text, strlen(text));
	if (text != buffer)
		free(text);
}

void xfp_screen_printf(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	xfp_screen_vprintf(out, format, args);
	va_end(args);
}

void xfp_screen_print(const char *text, size_t size, bool raw)
{
	if (raw || !isatty(STDOUT_FILENO))
		fwrite(text, 1, size, stdout);
	else
		xfp_screen_put(stdout, text, size);
}
