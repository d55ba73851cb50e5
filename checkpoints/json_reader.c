/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/json_reader.h"

#include <string.h>

#include "base/utf8.h"

static bool wrong(struct xfp_json *j, const char *what)
{
	if (!j->error)
		j->error = what;
	return false;
}

void xfp_json_init(struct xfp_json *j, const char *text, size_t size)
{
	*j = (struct xfp_json){ .start = text, .at = text, .end = text + size };
}

char xfp_json_peek(struct xfp_json *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
		j->at++;
	return j->at < j->end ? *j->at : '\0';
}

static bool take(struct xfp_json *j, char byte, const char *otherwise)
{
	if (j->error)
		return false;
	if (xfp_json_peek(j) != byte)
		return wrong(j, otherwise);
	j->at++;
	return true;
}

bool xfp_json_open(struct xfp_json *j, char bracket)
{
	if (!take(j, bracket, bracket == '{' ? "an object is expected" : "an array is expected"))
		return false;
	j->fresh = true;
	return true;
}

bool xfp_json_next(struct xfp_json *j, char bracket)
{
	bool fresh = j->fresh;

	if (j->error)
		return false;
	j->fresh = false;
	if (xfp_json_peek(j) == bracket) {
		j->at++;
		return false;
	}
	return fresh || take(j, ',', bracket == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
}

/* ---- strings ------------------------------------------------------------------------------------ */

/* Four hex digits. */
static bool unit(struct xfp_json *j, uint32_t *value)
{
	if (j->end - j->at < 4)
		return wrong(j, "an escape is cut short");
	*value = 0;
	for (int i = 0; i < 4; i++) {
		char c = *j->at++;
		uint32_t digit;

		if (c >= '0' && c <= '9')
			digit = (uint32_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (uint32_t)((c | 0x20) - 'a' + 10);
		else
			return wrong(j, "\\u is not followed by four hex digits");
		*value = *value << 4 | digit;
	}
	return true;
}

/* Parse the part of an escape after the backslash. */
static bool escape(struct xfp_json *j, char piece[4], size_t *size)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *found;
	uint32_t code, low;

	if (j->at == j->end)
		return wrong(j, "a string does not end");
	if (*j->at != 'u') {
		found = memchr(letters, *j->at++, sizeof letters - 1);
		if (!found)
			return wrong(j, "an unknown escape");
		piece[0] = meanings[found - letters];
		*size = 1;
		return true;
	}
	j->at++;
	if (!unit(j, &code))
		return false;
	if (code >= 0xd800 && code < 0xe000) {
		if (code >= 0xdc00 || j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
			return wrong(j, "half a surrogate pair");
		j->at += 2;
		if (!unit(j, &low))
			return false;
		if (low < 0xdc00 || low >= 0xe000)
			return wrong(j, "half a surrogate pair");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	*size = xfp_utf8_put(code, piece);
	return true;
}

/* Return the number of leading characters that need no decoding and have one byte each: the common case. */
static size_t plain(const char *from, const char *end)
{
	const char *at = from;

	while (at < end && (unsigned char)(*at - 0x20) < 0x60 && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - from);
}

/* Parse a string; if `text` is NULL, only check it. */
static bool string(struct xfp_json *j, char *text, size_t capacity, size_t *length)
{
	size_t stored = 0, total = 0, size;

	if (!take(j, '"', "a string is expected"))
		return false;
	for (;;) {
		const char *from = j->at;
		char piece[4];

		if ((size = plain(from, j->end))) {
			if (text && stored == total) {
				size_t room = capacity - stored - 1, part = size < room ? size : room;

				memcpy(text + stored, from, part);
				stored += part;
			}
			total += size;
			j->at += size;
			continue;
		}
		if (j->at == j->end)
			return wrong(j, "a string does not end");
		if (*from == '"')
			break;
		if ((unsigned char)*from < 0x20)
			return wrong(j, "a control character inside a string");
		if (*from == '\\') {
			j->at++;
			if (!escape(j, piece, &size))
				return false;
			from = piece;
		} else {
			int character = xfp_utf8_length(from, (size_t)(j->end - from), NULL);

			if (character <= 0)
				return wrong(j, "not valid UTF-8");
			size = (size_t)character;
			j->at += size;
		}
		if (text && size == 1 && !*from)
			return wrong(j, "a name contains NUL");
		/* After the first character that did not fit nothing is stored, so the result is a prefix. */
		if (text && stored == total && capacity - stored > size) {
			memcpy(text + stored, from, size);
			stored += size;
		}
		total += size;
	}
	j->at++;
	if (text) {
		text[stored] = '\0';
		*length = total;
	}
	return true;
}

bool xfp_json_string(struct xfp_json *j, char *text, size_t capacity, size_t *length)
{
	return string(j, text, capacity, length);
}

bool xfp_json_key(struct xfp_json *j, char *text, size_t capacity, size_t *length)
{
	return string(j, text, capacity, length) && take(j, ':', "':' is expected");
}

/* ---- numbers and other values ------------------------------------------------------------------- */

static bool is_digit(const struct xfp_json *j)
{
	return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

bool xfp_json_u64(struct xfp_json *j, uint64_t *value)
{
	static const char expected[] = "a whole number from 0 to 18446744073709551615 is expected";
	uint64_t sum = 0;
	bool leading;

	if (j->error)
		return false;
	xfp_json_peek(j);
	if (!is_digit(j))
		return wrong(j, expected);
	leading = *j->at == '0';
	for (unsigned digits = 0; is_digit(j); digits++) {
		if ((leading && digits) || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(*j->at - '0'), &sum))
			return wrong(j, expected);
		j->at++;
	}
	if (j->at < j->end && (*j->at == '.' || *j->at == 'e' || *j->at == 'E'))
		return wrong(j, expected);
	*value = sum;
	return true;
}

static bool digits(struct xfp_json *j)
{
	if (!is_digit(j))
		return wrong(j, "a digit is expected");
	while (is_digit(j))
		j->at++;
	return true;
}

static bool number(struct xfp_json *j)
{
	if (*j->at == '-')
		j->at++;
	if (is_digit(j) && *j->at == '0')
		j->at++;
	else if (!digits(j))
		return false;
	if (j->at < j->end && *j->at == '.') {
		j->at++;
		if (!digits(j))
			return false;
	}
	if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
		j->at++;
		if (j->at < j->end && (*j->at == '+' || *j->at == '-'))
			j->at++;
		if (!digits(j))
			return false;
	}
	return true;
}

static bool word(struct xfp_json *j, const char *text)
{
	size_t length = strlen(text);

	if ((size_t)(j->end - j->at) < length || memcmp(j->at, text, length))
		return wrong(j, "a value is expected");
	j->at += length;
	return true;
}

static bool scalar(struct xfp_json *j)
{
	switch (xfp_json_peek(j)) {
	case '"':
		return string(j, NULL, 0, NULL);
	case 't':
		return word(j, "true");
	case 'f':
		return word(j, "false");
	case 'n':
		return word(j, "null");
	default:
		if (is_digit(j) || (j->at < j->end && *j->at == '-'))
			return number(j);
		return wrong(j, "a value is expected");
	}
}

bool xfp_json_skip(struct xfp_json *j)
{
	char closers[XFP_JSON_DEPTH] = { 0 };
	unsigned depth = 0;

	do {
		char next = xfp_json_peek(j);

		if (next == '{' || next == '[') {
			if (depth == XFP_JSON_DEPTH)
				return wrong(j, "nested too deeply");
			closers[depth++] = next == '{' ? '}' : ']';
			xfp_json_open(j, next);
		} else if (!scalar(j)) {
			return false;
		}
		/* Close finished containers; then comes a key, in an object, and the next value. */
		while (depth && !xfp_json_next(j, closers[depth - 1])) {
			if (j->error)
				return false;
			depth--;
		}
		if (depth && closers[depth - 1] == '}' &&
		    !(string(j, NULL, 0, NULL) && take(j, ':', "':' is expected")))
			return false;
	} while (depth);
	return !j->error;
}

bool xfp_json_end(struct xfp_json *j)
{
	if (!j->error && (xfp_json_peek(j) || j->at != j->end))
		wrong(j, "something follows the end");
	return !j->error;
}
