/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - validate, decode and encode UTF-8.
 */
#ifndef XFP_UTF8_H
#define XFP_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a text is well-formed UTF-8 without NUL. */
bool xfp_utf8_valid(const char *text, size_t length);

/* Bytes of the first character of a text of `size` > 0 bytes. Negative: all `size` bytes, negated, begin a character
 * that is cut off. 0: not well-formed; one U+FFFD replaces the first `*bad` bytes (`bad` may be NULL). */
int xfp_utf8_length(const char *text, size_t size, size_t *bad);

/* Decode the first character of well-formed UTF-8; returns its number of bytes. */
size_t xfp_utf8_decode(const char *text, uint32_t *character);

/* Encode a character; returns its number of bytes. */
size_t xfp_utf8_put(uint32_t character, char bytes[4]);

/* Whether a byte continues a character, that is, is not its first byte. */
static inline bool xfp_utf8_continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

#endif
