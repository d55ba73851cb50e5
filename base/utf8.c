/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

bool xfp_utf8_valid(const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		int size = xfp_utf8_length(text + at, length - at, NULL);

		if (size <= 0 || !text[at])
			return false;
		at += (size_t)size;
	}
	return true;
}

size_t xfp_utf8_decode(const char *text, uint32_t *character)
{
	const unsigned char *t = (const unsigned char *)text;

	if (t[0] < 0x80) {
		*character = t[0];
		return 1;
	}
	if (t[0] < 0xe0) {
		*character = (t[0] & 0x1fu) << 6 | (t[1] & 0x3fu);
		return 2;
	}
	if (t[0] < 0xf0) {
		*character = (t[0] & 0xfu) << 12 | (t[1] & 0x3fu) << 6 | (t[2] & 0x3fu);
		return 3;
	}
	*character = (t[0] & 7u) << 18 | (t[1] & 0x3fu) << 12 | (t[2] & 0x3fu) << 6 | (t[3] & 0x3fu);
	return 4;
}

size_t xfp_utf8_put(uint32_t c, char bytes[4])
{
	if (c < 0x80) {
		bytes[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		bytes[0] = (char)(0xc0 | c >> 6);
		bytes[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		bytes[0] = (char)(0xe0 | c >> 12);
		bytes[1] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	bytes[0] = (char)(0xf0 | c >> 18);
	bytes[1] = (char)(0x80 | (c >> 12 & 0x3f));
	bytes[2] = (char)(0x80 | (c >> 6 & 0x3f));
	bytes[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

int xfp_utf8_length(const char *text, size_t size, size_t *bad)
{
	const unsigned char *t = (const unsigned char *)text;
	unsigned low = 0x80, high = 0xbf;
	size_t length, unused;

	if (!bad)
		bad = &unused;
	*bad = 1;
	if (t[0] < 0x80)
		return 1;
	if (t[0] < 0xc2 || t[0] > 0xf4)
		return 0;
	length = t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : 4;
	/* Reject overlong forms, surrogates, and values beyond U+10FFFF. */
	if (t[0] == 0xe0)
		low = 0xa0;
	else if (t[0] == 0xed)
		high = 0x9f;
	else if (t[0] == 0xf0)
		low = 0x90;
	else if (t[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < length; i++, low = 0x80, high = 0xbf) {
		if (i == size)
			return -(int)size;
		if (t[i] < low || t[i] > high)
			return 0;
		*bad = i + 1;
	}
	return (int)length;
}
