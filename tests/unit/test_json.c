/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict JSON reader, token by token: strings at the limits of buffers and of code points.
 */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoints/json_reader.h"

/* In memory of exactly its size, so that reads past the end are detected. */
static struct xfp_json begin(const char *text, size_t size, char **held)
{
	struct xfp_json j;

	*held = malloc(size ? size : 1);
	memcpy(*held, text, size);
	xfp_json_init(&j, *held, size);
	return j;
}

/* A string of these bytes in quotes: the decoded text, or the error. */
static const char *read_string(const char *bytes, size_t size, char *text, size_t capacity, size_t *length)
{
	char quoted[300], *held;
	struct xfp_json j;
	const char *error;

	quoted[0] = '"';
	memcpy(quoted + 1, bytes, size);
	quoted[size + 1] = '"';
	j = begin(quoted, size + 2, &held);
	*length = 0;
	if (xfp_json_string(&j, text, capacity, length))
		assert_true(xfp_json_end(&j));
	error = j.error;
	/* Skipping it has the same result, except for NUL, which is invalid only in names. */
	xfp_json_init(&j, held, size + 2);
	assert_int_equal(xfp_json_skip(&j), !error || strstr(error, "NUL"));
	free(held);
	return error;
}

static void strings_of_the_size_of_their_buffer(void **state)
{
	static const struct {
		const char *bytes, *text;
		size_t length;
	} cases[] = {
		{ "abcdef", "abcdef", 6 },
		{ "abcdefg", "abcdefg", 7 },
		{ "abcdefgh", "abcdefg", 8 },
		{ "abcdefghi", "abcdefg", 9 },
		{ "abcde\xc3\xa9", "abcde\xc3\xa9", 7 },
		{ "abcdef\xc3\xa9", "abcdef", 8 },
		{ "abc\xf0\x9f\x98\x80", "abc\xf0\x9f\x98\x80", 7 },
		{ "abcd\xf0\x9f\x98\x80z", "abcd", 9 }, /* nothing more is stored: the result is a prefix */
		{ "abcd\\ud83d\\ude00z", "abcd", 9 },
		{ "", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[9] = "~~~~~~~~";
		size_t length;

		assert_null(read_string(cases[i].bytes, strlen(cases[i].bytes), text, 8, &length));
		assert_string_equal(text, cases[i].text);
		assert_int_equal(length, cases[i].length);
		assert_int_equal(text[8], '\0');
	}
}

/* The first and the last character of each UTF-8 length, literally and as escapes. */
static void characters_of_every_length(void **state)
{
	static const struct {
		const char *escape, *bytes;
	} cases[] = {
		{ "\\u0001", "\x01" },
		{ "\\u007f", "\x7f" },
		{ "\\u0080", "\xc2\x80" },
		{ "\\u07FF", "\xdf\xbf" },
		{ "\\u0800", "\xe0\xa0\x80" },
		{ "\\ud7ff", "\xed\x9f\xbf" },
		{ "\\ue000", "\xee\x80\x80" },
		{ "\\uFFFF", "\xef\xbf\xbf" },
		{ "\\ud800\\udc00", "\xf0\x90\x80\x80" },
		{ "\\uDBFF\\uDFFF", "\xf4\x8f\xbf\xbf" },
	};
	char text[16];
	size_t length;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t size = strlen(cases[i].bytes);

		assert_null(read_string(cases[i].escape, strlen(cases[i].escape), text, sizeof text, &length));
		assert_string_equal(text, cases[i].bytes);
		assert_int_equal(length, size);
		if ((unsigned char)*cases[i].bytes < 0x20)
			continue;
		assert_null(read_string(cases[i].bytes, size, text, sizeof text, &length));
		assert_string_equal(text, cases[i].bytes);
		/* An incomplete character is invalid, also if the rest follows after the end. */
		for (size_t cut = 1; cut < size; cut++) {
			char whole[16];
			struct xfp_json j;

			assert_string_equal(read_string(cases[i].bytes, cut, text, sizeof text, &length),
					    "not valid UTF-8");
			snprintf(whole, sizeof whole, "\"%s\"", cases[i].bytes);
			xfp_json_init(&j, whole, 1 + cut);
			assert_false(xfp_json_string(&j, text, sizeof text, &length));
			assert_string_equal(j.error, "not valid UTF-8");
		}
	}
}

static void what_is_no_text(void **state)
{
	static const struct {
		const char *bytes, *error;
	} cases[] = {
		/* overlong: 0, U+007F, U+07FF, U+FFFF in too many bytes */
		{ "\xc0\x80", "not valid UTF-8" },
		{ "\xc1\xbf", "not valid UTF-8" },
		{ "\xe0\x80\x80", "not valid UTF-8" },
		{ "\xe0\x9f\xbf", "not valid UTF-8" },
		{ "\xf0\x80\x80\x80", "not valid UTF-8" },
		{ "\xf0\x8f\xbf\xbf", "not valid UTF-8" },
		/* surrogate, beyond U+10FFFF, invalid first byte, invalid continuation */
		{ "\xed\xa0\x80", "not valid UTF-8" },
		{ "\xed\xbf\xbf", "not valid UTF-8" },
		{ "\xf4\x90\x80\x80", "not valid UTF-8" },
		{ "\xf5\x80\x80\x80", "not valid UTF-8" },
		{ "\x80", "not valid UTF-8" },
		{ "\xff", "not valid UTF-8" },
		{ "\xc3(", "not valid UTF-8" },
		{ "\xe2\x82(", "not valid UTF-8" },
		{ "\xe2\x82\xc0", "not valid UTF-8" },
		{ "\x1f", "a control character inside a string" },
		{ "\\x41", "an unknown escape" },
		{ "\\u00g0", "\\u is not followed by four hex digits" },
		{ "\\u00", "an escape is cut short" },
		{ "\\ud800", "half a surrogate pair" },
		{ "\\udc00\\ud800", "half a surrogate pair" },
		{ "\\udc00\\udc00", "half a surrogate pair" },
		{ "\\ud800\\ud800", "half a surrogate pair" },
		{ "\\ud800\\ue000", "half a surrogate pair" },
		{ "\\ud800x", "half a surrogate pair" },
		{ "\\u0000", "a name contains NUL" },
		{ "ab\\u0000", "a name contains NUL" },
		{ "\\", "a string does not end" },
	};
	char text[16];
	size_t length;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *error = read_string(cases[i].bytes, strlen(cases[i].bytes), text, sizeof text, &length);

		if (!error || strcmp(error, cases[i].error))
			fail_msg("case %zu: %s", i, error ? error : "nothing wrong");
	}
	assert_string_equal(read_string("a\0b", 3, text, sizeof text, &length), "a control character inside a string");
}

/* Texts truncated anywhere inside a token. */
static void texts_that_are_cut(void **state)
{
	static const char text[] = "{\"a\\u00e9\\ud83d\\ude00\xc3\xa9\": [true, null, -1.5e+3, {}, \"x\"], \"b\": 1}";
	char *held;
	struct xfp_json j;

	(void)state;
	for (size_t size = 0; size < sizeof text; size++) {
		j = begin(text, size, &held);
		assert_int_equal(xfp_json_skip(&j) && xfp_json_end(&j), size == sizeof text - 1);
		assert_int_equal(j.error == NULL, size == sizeof text - 1);
		free(held);
	}
}

static void numbers_to_the_last(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
		bool good;
	} cases[] = {
		{ "0", 0, true },
		{ "18446744073709551615", UINT64_MAX, true },
		{ "18446744073709551616", 0, false },
		{ "99999999999999999999", 0, false },
		{ "184467440737095516150", 0, false },
		{ "01", 0, false },
		{ "00", 0, false },
		{ "-1", 0, false },
		{ "1.0", 0, false },
		{ "1e3", 0, false },
		{ "1E3", 0, false },
		{ "", 0, false },
		{ "a", 0, false },
		{ "/", 0, false },
		{ ":", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *held;
		struct xfp_json j = begin(cases[i].text, strlen(cases[i].text), &held);
		uint64_t value = 7;

		assert_int_equal(xfp_json_u64(&j, &value), cases[i].good);
		assert_true(value == (cases[i].good ? cases[i].value : 7));
		free(held);
	}
}

static void values_nested_to_the_last(void **state)
{
	(void)state;
	for (size_t depth = XFP_JSON_DEPTH - 1; depth <= XFP_JSON_DEPTH + 1; depth++) {
		char text[2 * (XFP_JSON_DEPTH + 1)], *held;
		struct xfp_json j;

		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		j = begin(text, 2 * depth, &held);
		assert_int_equal(xfp_json_skip(&j) && xfp_json_end(&j), depth <= XFP_JSON_DEPTH);
		if (depth > XFP_JSON_DEPTH)
			assert_string_equal(j.error, "nested too deeply");
		free(held);
	}
}

/* Invalid JSON. */
static void what_is_refused(void **state)
{
	static const char *const texts[] = { "[1,]",  "[,1]", "{\"a\":1,}", "{\"a\"}", "{\"a\" 1}", "{1:2}",
					     "[1 2]", "[1}",  "{\"a\":1]",  "nul",     "truE",      "01",
					     "-",     "-a",   "1.",         "1.e1",    ".5",        "1e",
					     "1e+",   "+1",   "[1]]",       "[1] x",   "\"a",       "{",
					     "[",     "",     " ",          "'a'" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char *held;
		struct xfp_json j = begin(texts[i], strlen(texts[i]), &held);

		if (xfp_json_skip(&j) && xfp_json_end(&j))
			fail_msg("accepted: %s", texts[i]);
		assert_non_null(j.error);
		free(held);
	}
}

PROGRAM("test_json")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_of_the_size_of_their_buffer),
		cmocka_unit_test(characters_of_every_length),
		cmocka_unit_test(what_is_no_text),
		cmocka_unit_test(texts_that_are_cut),
		cmocka_unit_test(numbers_to_the_last),
		cmocka_unit_test(values_nested_to_the_last),
		cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
