/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"

size_t xfp_escape_byte(unsigned char byte, char out[5])
{
	out[0] = '\\';
	out[1] = 'x';
	xfp_hex(&byte, 1, out + 2);
	return 4;
}

size_t xfp_escape_character(const char *text, size_t size, char out[XFP_ESCAPED])
{
	const unsigned char *in = (const unsigned char *)text;
	int character = xfp_utf8_length(text, size, NULL);
	size_t bytes = character > 0 ? (size_t)character : 1, used = 0;

	if (character > 0 && *in >= 0x20 && *in != 0x7f && !(*in == 0xc2 && in[1] < 0xa0)) {
		memcpy(out, text, bytes);
		out[bytes] = '\0';
		return bytes;
	}
	for (size_t i = 0; i < bytes; i++)
		used += xfp_escape_byte(in[i], out + used);
	return bytes;
}

size_t xfp_escape_in_text(const char *text, size_t size, char out[XFP_ESCAPED])
{
	if (*text != '\n' && *text != '\t')
		return xfp_escape_character(text, size, out);
	out[0] = *text;
	out[1] = '\0';
	return 1;
}

void xfp_escape_message(char *text, size_t capacity)
{
	size_t length = strlen(text), at = 0;
	char piece[XFP_ESCAPED];

	while (at < length) {
		size_t taken = xfp_escape_character(text + at, length - at, piece), size = strlen(piece);

		if (size != taken) {
			size_t rest = length - at - taken;

			if (at + size >= capacity) {
				text[at] = '\0';
				return;
			}
			if (at + size + rest >= capacity)
				rest = capacity - 1 - at - size;
			memmove(text + at + size, text + at + taken, rest);
			memcpy(text + at, piece, size);
			length = at + size + rest;
			text[length] = '\0';
		}
		at += size;
	}
}

struct xfp_printable xfp_printable(const char *name)
{
	static const char ellipsis[] = "...";
	struct xfp_printable out;
	size_t used = 0, complete = 0; /* `complete`: end of the last character that still leaves space for the
				        * ellipsis */

	for (const char *end = name + strlen(name); name < end;) {
		char piece[XFP_ESCAPED] = "\\\\";
		size_t size;

		name += *name == '\\' ? 1 : xfp_escape_character(name, (size_t)(end - name), piece);
		size = strlen(piece);
		if (used + size >= sizeof out.text) {
			memcpy(out.text + complete, ellipsis, sizeof ellipsis);
			return out;
		}
		memcpy(out.text + used, piece, size);
		used += size;
		if (used + sizeof ellipsis <= sizeof out.text)
			complete = used;
	}
	out.text[used] = '\0';
	return out;
}
