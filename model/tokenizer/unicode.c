/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/unicode.h"

#include <stdlib.h>
#include <utf8proc.h>

size_t xfp_utf8_take(const char *text, uint32_t *character)
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
	size_t length;

	*bad = 1;
	if (t[0] < 0x80)
		return 1;
	if (t[0] < 0xc2 || t[0] > 0xf4)
		return 0;
	length = t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : 4;
	/* Neither longer than need be, nor a surrogate, nor beyond U+10FFFF. */
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

bool xfp_utf8_replace(const char *text, size_t size, struct xfp_grown *out)
{
	size_t good = 0, at = 0, bad;

	while (at < size) {
		int length = xfp_utf8_length(text + at, size - at, &bad);

		if (length > 0) {
			at += (size_t)length;
			continue;
		}
		if (!xfp_grown_add(out, text + good, at - good) ||
		    !xfp_grown_add(out, XFP_REPLACEMENT, sizeof XFP_REPLACEMENT - 1))
			return false;
		good = at += length ? (size_t)-length : bad;
	}
	return good == size || xfp_grown_add(out, text + good, size - good);
}

bool xfp_is_white(uint32_t c)
{
	return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool xfp_is_numeric(uint32_t c)
{
	utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);

	return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool xfp_is_word(uint32_t c)
{
	switch (utf8proc_category((utf8proc_int32_t)c)) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_LO:
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_MC:
	case UTF8PROC_CATEGORY_ME:
	case UTF8PROC_CATEGORY_ND:
	case UTF8PROC_CATEGORY_NL:
	case UTF8PROC_CATEGORY_PC:
		return true;
	default: /* symbols that are alphabetic: letters in circles and squares */
		return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
		       (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
	}
}

/* Marks behind a letter, sorted by class; equal ones stay in their order. A library's own sorting takes the square of
 * their number, and that may be as large as a text. */
struct mark {
	int32_t character;
	int order;
	size_t at;
};

static int by_class(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int order_of(int32_t character)
{
	return utf8proc_get_property(character)->combining_class;
}

static bool sort_marks(int32_t *character, size_t count)
{
	struct mark *mark = NULL;
	size_t capacity = 0, end;

	for (size_t at = 0; at < count; at = end) {
		bool sorted = true;

		for (end = at; end < count && order_of(character[end]); end++)
			sorted = sorted && (end == at || order_of(character[end - 1]) <= order_of(character[end]));
		if (end == at)
			end++;
		if (sorted)
			continue;
		if (!xfp_grow(&mark, sizeof *mark, 0, end - at, &capacity)) {
			free(mark);
			return false;
		}
		for (size_t i = at; i < end; i++)
			mark[i - at] = (struct mark){ character[i], order_of(character[i]), i };
		qsort(mark, end - at, sizeof *mark, by_class);
		for (size_t i = at; i < end; i++)
			character[i] = mark[i - at].character;
	}
	free(mark);
	return true;
}

struct characters {
	int32_t *character;
	size_t capacity;
};

/* Of a part that nothing before or behind it can change. */
static bool normalize_part(const char *text, size_t size, bool compatible, struct characters *work,
			   struct xfp_grown *out)
{
	utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
	utf8proc_option_t apart = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
	utf8proc_ssize_t composed;
	size_t count = 0;

	for (size_t at = 0; at < size;) {
		int32_t some[32]; /* no character becomes more than 18 */
		utf8proc_ssize_t length;
		uint32_t character;
		int bound = 0;

		at += xfp_utf8_take(text + at, &character);
		length = utf8proc_decompose_char((utf8proc_int32_t)character, some, 32, apart, &bound);
		if (length < 0 || length > 32 ||
		    !xfp_grow(&work->character, sizeof *work->character, count, (size_t)length, &work->capacity))
			return false;
		memcpy(work->character + count, some, (size_t)length * sizeof *some);
		count += (size_t)length;
	}
	if (!sort_marks(work->character, count))
		return false;
	composed = utf8proc_normalize_utf32(work->character, (utf8proc_ssize_t)count, options);
	for (utf8proc_ssize_t i = 0; i < composed; i++) {
		char bytes[4];

		if (!xfp_grown_add(out, bytes, xfp_utf8_put((uint32_t)work->character[i], bytes)))
			return false;
	}
	return composed >= 0;
}

/* An ASCII character before another is done with; so only what is around others needs to be looked at. */
enum xfp_status xfp_normal_form(const char *text, size_t size, bool compatible, struct xfp_grown *out,
				struct xfp_error *err)
{
	struct characters work = { 0 };
	bool made = true;
	size_t end;

	for (size_t at = 0; made && at < size; at = end) {
		for (end = at; end < size && !(text[end] & 0x80) && (end + 1 == size || !(text[end + 1] & 0x80)); end++)
			;
		if (end > at) {
			made = xfp_grown_add(out, text + at, end - at);
			continue;
		}
		for (end = at + 1; end < size && ((text[end] & 0x80) || (text[end - 1] & 0x80)); end++)
			;
		made = normalize_part(text + at, end - at, compatible, &work, out);
	}
	free(work.character);
	return made ? XFP_OK : xfp_no_memory(err);
}
