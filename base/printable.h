/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable.h - make names from untrusted files safe to print.
 *
 * In a message, tensor and file names must neither break the line nor reach the terminal as control sequences.
 */
#ifndef XFP_PRINTABLE_H
#define XFP_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Write a byte that is not text as "\xNN" with a terminating NUL; returns 4, the number of characters. */
size_t xfp_escape_byte(unsigned char byte, char out[5]);

/* Write the first character of `text`, which has `size` > 0 bytes, in printable form: unchanged, or its bytes as "\xNN"
 * if it is a control character (C0, DEL or C1) or malformed UTF-8. `out` is NUL-terminated. Returns the number of bytes
 * read from `text`. */
#define XFP_ESCAPED 9
size_t xfp_escape_character(const char *text, size_t size, char out[XFP_ESCAPED]);

/* Like xfp_escape_character, but newline and tab are left unchanged. */
size_t xfp_escape_in_text(const char *text, size_t size, char out[XFP_ESCAPED]);

/* Replace a message by its printable form: control characters and bytes that are not UTF-8 become "\xNN". Text beyond
 * `capacity` bytes is cut. A second call changes nothing. */
void xfp_escape_message(char *text, size_t capacity);

struct xfp_printable {
	char text[256];
};

/* Escape `name` for a message: control characters and bytes that are not UTF-8 become \xNN, backslashes are doubled,
 * and a long name is cut and ends in "...". Used in place: xfp_fail(err, XFP_BAD_INPUT, "tensor %s",
 * xfp_printable(name).text) */
struct xfp_printable xfp_printable(const char *name);

#endif
