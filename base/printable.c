/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

bool xfp_utf8_valid(const char *text, size_t length)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	const uint8_t *p = (const uint8_t *)text, *end = p + length;

	while (p < end) {
		uint32_t code = *p++;
		int more = code < 0x80 ? 0 : code >> 5 == 6 ? 1 : code >> 4 == 14 ? 2 : code >> 3 == 30 ? 3 : -1;

		if (!code || more < 0 || end - p < more)
			return false;
		if (!more)
			continue;
		code &= 0x3fu >> more;
		for (int i = 0; i < more; i++, p++) {
			if (*p >> 6 != 2)
				return false;
			code = code << 6 | (*p & 0x3f);
		}
		if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
			return false;
	}
	return true;
}

/* C0 controls and DEL; C1 controls are handled as the two bytes that UTF-8 makes of them. */
static bool is_control(unsigned char byte)
{
	return byte < 0x20 || byte == 0x7f;
}

size_t xfp_escape_byte(unsigned char byte, char out[5])
{
	out[0] = '\\';
	out[1] = 'x';
	xfp_hex(&byte, 1, out + 2);
	return 4;
}

struct xfp_printable xfp_printable(const char *name)
{
	static const char ellipsis[] = "...";
	const unsigned char *in = (const unsigned char *)name;
	struct xfp_printable out;
	size_t used = 0, whole = 0; /* `whole`: where the last complete character that leaves room ends */

	while (*in) {
		char piece[9];
		size_t size = 0;

		if (is_control(*in)) {
			size = xfp_escape_byte(*in++, piece);
		} else if (*in == '\\') {
			piece[size++] = '\\';
			piece[size++] = '\\';
			in++;
		} else if (*in == 0xc2 && in[1] >= 0x80 && in[1] < 0xa0) {
			size = xfp_escape_byte(*in++, piece);
			size += xfp_escape_byte(*in++, piece + size);
		} else {
			do
				piece[size++] = (char)*in++;
			while ((*in & 0xc0) == 0x80 && size < 4);
		}
		if (used + size >= sizeof out.text) {
			memcpy(out.text + whole, ellipsis, sizeof ellipsis);
			return out;
		}
		memcpy(out.text + used, piece, size);
		used += size;
		if (used + sizeof ellipsis <= sizeof out.text)
			whole = used;
	}
	out.text[used] = '\0';
	return out;
}
