/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* C0 controls and DEL; C1 controls are handled as the two bytes that UTF-8 makes of them. */
static bool is_control(unsigned char byte)
{
	return byte < 0x20 || byte == 0x7f;
}

static size_t put_hex(char *out, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'x';
	out[2] = digits[byte >> 4];
	out[3] = digits[byte & 15];
	return 4;
}

struct xfp_printable xfp_printable(const char *name)
{
	static const char ellipsis[] = "...";
	const unsigned char *in = (const unsigned char *)name;
	struct xfp_printable out;
	size_t used = 0, whole = 0; /* `whole`: where the last complete character that leaves room ends */

	while (*in) {
		char piece[8];
		size_t size = 0;

		if (is_control(*in)) {
			size = put_hex(piece, *in++);
		} else if (*in == '\\') {
			piece[size++] = '\\';
			piece[size++] = '\\';
			in++;
		} else if (*in == 0xc2 && in[1] >= 0x80 && in[1] < 0xa0) {
			size = put_hex(piece, *in++);
			size += put_hex(piece + size, *in++);
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
