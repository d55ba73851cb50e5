/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/unicode/unicode.h"

bool xfp_utf8_replace(const char *text, size_t size, struct xfp_growable *out)
{
	size_t good = 0, at = 0, bad;

	while (at < size) {
		int length = xfp_utf8_length(text + at, size - at, &bad);

		if (length > 0) {
			at += (size_t)length;
			continue;
		}
		if (!xfp_growable_add(out, text + good, at - good) ||
		    !xfp_growable_add(out, XFP_REPLACEMENT, sizeof XFP_REPLACEMENT - 1))
			return false;
		good = at += length ? (size_t)-length : bad;
	}
	return good == size || xfp_growable_add(out, text + good, size - good);
}

bool xfp_is_white(uint32_t c)
{
	return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
