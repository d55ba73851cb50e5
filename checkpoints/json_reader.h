/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_reader.h - a strict JSON pull parser. Private to checkpoints/.
 *
 * Headers of checkpoints are large and untrusted, and errors must name the tensor. So there is no tree in memory and no
 * recursion; the caller detects duplicate keys; integers are exact to 64 bits. Invalid UTF-8 is refused everywhere.
 *
 *     xfp_json_open(&j, '{');
 *     while (xfp_json_next(&j, '}'))
 *             if (xfp_json_key(&j, key, sizeof key, &length)) ... read or skip the value
 *     if (!xfp_json_end(&j)) ... j.error is the error, at byte j.at - j.start
 *
 * After the first error every call does nothing and returns false.
 */
#ifndef XFP_JSON_READER_H
#define XFP_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_JSON_DEPTH 128 /* maximum nesting of skipped values */

struct xfp_json {
	const char *start, *at, *end;
	const char *error; /* static text, or NULL */
	bool fresh;        /* no element since the last opening bracket */
};

void xfp_json_init(struct xfp_json *j, const char *text, size_t size);
/* Return the first byte of the next token, '\0' at the end. */
char xfp_json_peek(struct xfp_json *j);
/* Parse an opening bracket, '{' or '['. */
bool xfp_json_open(struct xfp_json *j, char bracket);
/* Return whether another element follows; false if `bracket` closed the value, or after an error. */
bool xfp_json_next(struct xfp_json *j, char bracket);
/* Parse and decode a string. At most capacity - 1 bytes are stored, NUL-terminated; `length` is the full length, so
 * that truncation can be detected. Strings with NUL are refused. */
bool xfp_json_string(struct xfp_json *j, char *text, size_t capacity, size_t *length);
/* Parse a string and the colon after it. */
bool xfp_json_key(struct xfp_json *j, char *text, size_t capacity, size_t *length);
/* Parse an integer without sign, fraction and exponent. */
bool xfp_json_u64(struct xfp_json *j, uint64_t *value);
/* Skip any value. */
bool xfp_json_skip(struct xfp_json *j);
/* Return whether only white space is left, and there was no error. */
bool xfp_json_end(struct xfp_json *j);

#endif
