/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/shell.h"

#include <stdbool.h>
#include <string.h>

#include "base/printable.h"

static bool is_plain(const char *word)
{
	return *word &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%") == strlen(word);
}

void xfp_shell_quote(FILE *out, const char *word)
{
	const char *end = word + strlen(word);
	bool escapes = false;
	char piece[XFP_ESCAPED];

	if (is_plain(word)) {
		fputs(word, out);
		return;
	}
	for (const char *at = word; at < end && !escapes;) {
		size_t size = xfp_escape_in_text(at, (size_t)(end - at), piece);

		escapes = size != strlen(piece);
		at += size;
	}
	fputs(escapes ? "$'" : "'", out);
	while (word < end) {
		word += xfp_escape_in_text(word, (size_t)(end - word), piece);
		if (!strcmp(piece, "'"))
			fputs(escapes ? "\\'" : "'\\''", out);
		else if (escapes && !strcmp(piece, "\\"))
			fputs("\\\\", out);
		else
			fputs(piece, out);
	}
	fputc('\'', out);
}
