/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_reader.h - a strict JSON reader that pulls one token at a time. Private to checkpoints/.
 *
 * Headers of checkpoints are large, come from anybody, and must be refused by the name of the tensor
 * that is wrong. So: no tree in memory, no recursion, duplicate keys left to the caller to see, and
 * integers exact to 64 bits. Text that is not valid UTF-8 is refused inside strings and everywhere else.
 *
 *     xfp_json_open(&j, '{');
 *     while (xfp_json_next(&j, '}'))
 *             if (xfp_json_key(&j, key, sizeof key, &length)) ... read or skip the value
 *     if (!xfp_json_end(&j)) ... j.error says what was wrong, at byte j.at - j.start
 *
 * After the first error every call does nothing and returns false.
 */
#ifndef XFP_JSON_READER_H
#define XFP_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_JSON_DEPTH 128 /* of values that are skipped */

struct xfp_json {
	const char *start, *at, *end;
	const char *error; /* static text, NULL so far */
	bool fresh;        /* nothing came yet since the last bracket was opened */
};

void xfp_json_init(struct xfp_json *j, const char *text, size_t size);
/* First byte of the next token, '\0' at the end. */
char xfp_json_peek(struct xfp_json *j);
/* The value that is due must begin with this bracket, '{' or '['. */
bool xfp_json_open(struct xfp_json *j, char bracket);
/* Whether another element follows; false when `bracket` closed the value (or after an error). */
bool xfp_json_next(struct xfp_json *j, char bracket);
/* A string, decoded. At most capacity - 1 bytes are stored, NUL-terminated; `length` is that of the
 * whole, so a longer one can be told. One that contains NUL is refused. */
bool xfp_json_string(struct xfp_json *j, char *text, size_t capacity, size_t *length);
/* Such a string and the colon after it. */
bool xfp_json_key(struct xfp_json *j, char *text, size_t capacity, size_t *length);
/* An integer without sign, fraction and exponent. */
bool xfp_json_u64(struct xfp_json *j, uint64_t *value);
/* Any value. */
bool xfp_json_skip(struct xfp_json *j);
/* Nothing but white space is left, and nothing was wrong. */
bool xfp_json_end(struct xfp_json *j);

#endif
