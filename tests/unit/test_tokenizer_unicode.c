/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token ids of every assigned code point and of random regular expressions, compared with those of Hugging Face
 * tokenizers in tests/tokenizer_unicode.json. The step limit of a regular expression, and interruptions of a search.
 */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode/unicode.h"

#define LINES 10000

static json_t *stored;

static int read_stored(void **state)
{
	char path[4096];

	(void)state;
	snprintf(path, sizeof path, "%s/tests/tokenizer_unicode.json", getenv("srcdir"));
	stored = json_load_file(path, 0, NULL);
	return !stored;
}

static int drop_stored(void **state)
{
	(void)state;
	json_decref(stored);
	return 0;
}

static enum xfp_status open_file(json_t *file, struct xfp_tokenizer **t, struct xfp_error *err)
{
	char *text = json_dumps(file, 0);
	enum xfp_status status = xfp_tokenizer_open(text, strlen(text), "t.json", t, err);

	free(text);
	json_decref(file);
	return status;
}

/* Each piece begins with the token of U+2581. */
static json_t *metaspace(void)
{
	return json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement", "\xe2\x96\x81", "prepend_scheme",
			 "always", "split", 0);
}

/* A tokenizer that splits by an expression. */
static struct xfp_tokenizer *cutting_at(const char *expression)
{
	struct xfp_tokenizer *t = NULL;
	struct xfp_error err = { 0 };
	json_t *split = json_pack("{s:s, s:{s:s}, s:s}", "type", "Split", "pattern", "Regex", expression, "behavior",
				  "Isolated");

	if (open_file(json_pack("{s:O, s:{s:s, s:[o, o]}}", "model", json_object_get(stored, "model"), "pre_tokenizer",
				"type", "Sequence", "pretokenizers", split, metaspace()),
		      &t, &err))
		fail_msg("%s: %s", expression, err.text);
	return t;
}

/* Code point number `k` of the ranges that hold all assigned ones; 0: no more. */
static uint32_t code_point(uint32_t k)
{
	static const uint32_t range[][2] = { { 1, 0xd800 }, { 0xe000, 0x323b0 }, { 0xe0001, 0xe01f0 } };

	for (size_t i = 0; i < 3; i++) {
		if (k < range[i][1] - range[i][0])
			return range[i][0] + k;
		k -= range[i][1] - range[i][0];
	}
	return 0;
}

static size_t make_line(uint32_t line, char *text)
{
	static const char *const fill[] = { "", "a", " ", "'", "1", "\n", "S", "  " };
	size_t size = 0;

	for (uint32_t k = line, c; (c = code_point(k)); k += LINES) {
		const char *more = fill[(k * 7 + line) % 8];

		size += xfp_utf8_put(c, text + size);
		memcpy(text + size, more, strlen(more));
		size += strlen(more);
	}
	return size;
}

static void every_code_point(void **state)
{
	size_t index;
	json_t *one;

	(void)state;
	assert_true(json_array_size(json_object_get(stored, "cases")) > 10);
	json_array_foreach(json_object_get(stored, "cases"), index, one)
	{
		struct xfp_token_ids ids = { 0 };
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };
		uint64_t digest = 0xcbf29ce484222325;
		char text[1024], hex[32];

		if (open_file(json_pack("{s:O, s:O, s:O}", "model", json_object_get(stored, "model"), "normalizer",
					json_object_get(one, "normalizer"), "pre_tokenizer",
					json_object_get(one, "pre_tokenizer")),
			      &t, &err))
			fail_msg("%s", err.text);
		for (uint32_t line = 0; line < LINES; line++) {
			ids.count = 0;
			assert_int_equal(xfp_tokenizer_encode(t, text, make_line(line, text), true, &ids, NULL),
					 XFP_OK);
			for (size_t i = 0; i <= ids.count; i++)
				digest = (digest ^ (i < ids.count ? ids.id[i] : 0xffff)) * 0x100000001b3;
		}
		snprintf(hex, sizeof hex, "%016llx", (unsigned long long)digest);
		if (strcmp(hex, json_string_value(json_object_get(one, "digest"))))
			fail_msg("%s: ids differ", json_string_value(json_object_get(one, "name")));
		free(ids.id);
		xfp_tokenizer_free(t);
	}
}

/* Encode texts, each in a row with its ids. */
static void compare(const struct xfp_tokenizer *t, const json_t *one)
{
	const char *name = json_string_value(json_array_get(one, 0));
	size_t row, at;
	json_t *text, *id;

	json_array_foreach(json_array_get(one, 1), row, text)
	{
		const char *bytes = json_string_value(json_array_get(text, 0));
		struct xfp_token_ids ids = { 0 };

		assert_int_equal(xfp_tokenizer_encode(t, bytes, strlen(bytes), true, &ids, NULL), XFP_OK);
		if (ids.count != json_array_size(json_array_get(text, 1)))
			fail_msg("%s: \"%s\": %zu ids", name, bytes, ids.count);
		json_array_foreach(json_array_get(text, 1), at, id) if (ids.id[at] != json_integer_value(id))
			fail_msg("%s: \"%s\": id %d is %u", name, bytes, (int)at, ids.id[at]);
		free(ids.id);
	}
}

static void expressions(void **state)
{
	size_t index;
	json_t *one;

	(void)state;
	assert_true(json_array_size(json_object_get(stored, "expressions")) > 100);
	json_array_foreach(json_object_get(stored, "expressions"), index, one)
	{
		struct xfp_tokenizer *t = cutting_at(json_string_value(json_array_get(one, 0)));

		compare(t, one);
		xfp_tokenizer_free(t);
	}
}

/* Random sequences of letters, marks and jamo. */
static void normal_forms(void **state)
{
	size_t index;
	json_t *one;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(stored, "normal_forms")), 2);
	json_array_foreach(json_object_get(stored, "normal_forms"), index, one)
	{
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };

		if (open_file(json_pack("{s:O, s:{s:O}, s:o}", "model", json_object_get(stored, "model"), "normalizer",
					"type", json_array_get(one, 0), "pre_tokenizer", metaspace()),
			      &t, &err))
			fail_msg("%s", err.text);
		compare(t, one);
		xfp_tokenizer_free(t);
	}
}

/* Exponential expressions: 19 letters are within the step limit, 59 are not, except for the second expression. */
static void too_many_steps(void **state)
{
	static const char *const all[] = { "(a|aa)+$", "(?:a*)*b", "(?=(a|aa)+$)a",
					   "(?<=(?:a|aa)+c)b|(?>(a|aa)+)$|(a|aa)+$" };
	char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct xfp_tokenizer *t = cutting_at(all[i]);
		struct xfp_token_ids ids = { 0 };
		struct xfp_error err = { 0 };

		assert_int_equal(xfp_tokenizer_encode(t, text + strlen(text) - 20, 19, true, &ids, &err), XFP_OK);
		ids.count = 0;
		if (i != 1) {
			assert_int_equal(xfp_tokenizer_encode(t, text, strlen(text), true, &ids, &err), XFP_BAD_INPUT);
			assert_int_equal(ids.count, 0);
			if (strncmp(err.text, "t.json: pre_tokenizer", 21) || !strstr(err.text, "too many steps") ||
			    !strstr(err.text, "; use a tokenizer.json"))
				fail_msg("%s", err.text);
		}
		free(ids.id);
		xfp_tokenizer_free(t);
	}
}

/* The limit is for the whole text, not for each piece made by another part of the tokenizer. */
static void many_pieces(void **state)
{
	static const char expression[] =
		"(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)"
		"(?:|)(?:|)(?:|)b";
	struct xfp_tokenizer *t = NULL;
	struct xfp_token_ids ids = { 0 };
	struct xfp_error err = { 0 };
	char text[70];
	json_t *parts = json_pack("[{s:s, s:b}, {s:s, s:{s:s}, s:s}, o]", "type", "Digits", "individual_digits", 1,
				  "type", "Split", "pattern", "Regex", expression, "behavior", "Isolated", metaspace());

	(void)state;
	memset(text, '1', sizeof text);
	assert_int_equal(open_file(json_pack("{s:O, s:{s:s, s:o}}", "model", json_object_get(stored, "model"),
					     "pre_tokenizer", "type", "Sequence", "pretokenizers", parts),
				   &t, &err),
			 XFP_OK);
	assert_int_equal(xfp_tokenizer_encode(t, text, 2, true, &ids, &err), XFP_OK);
	assert_int_equal(xfp_tokenizer_encode(t, text, sizeof text, true, &ids, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "too many steps"));
	xfp_tokenizer_free(t);

	/* Nor for each part of a text between added tokens, which are normalized one by one. */
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = i % 2 ? '1' : '2';
	t = NULL;
	ids.count = 0;
	parts = json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "Regex", expression, "content", "x");
	assert_int_equal(
		open_file(json_pack("{s:O, s:o, s:[{s:s, s:i, s:b}]}", "model", json_object_get(stored, "model"),
				    "normalizer", parts, "added_tokens", "content", "1", "id", 300, "special", 1),
			  &t, &err),
		XFP_OK);
	assert_int_equal(xfp_tokenizer_encode(t, text, 2, true, &ids, &err), XFP_OK);
	assert_int_equal(xfp_tokenizer_encode(t, text, sizeof text, true, &ids, &err), XFP_BAD_INPUT);
	free(ids.id);
	xfp_tokenizer_free(t);
}

/* Opening a tokenizer takes at most a second, for any expressions. */
static void many_classes(void **state)
{
	static const struct {
		const char *part;
		size_t times;
		const char *refused; /* NULL: it is not */
	} cases[] = { { "\\p{L}{0}", 5000, NULL },
		      { "\\p{L}{0}", 5001, "more classes of characters" },
		      { "[\\w-]{0}", 40000, "more classes of characters" },
		      { "(?i:a{0})", 5001, "more classes of characters" },
		      { "(?:){100000}", 80000, NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t length = strlen(cases[i].part);
		char *text = malloc(cases[i].times * length + 1);
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };
		enum xfp_status status;

		for (size_t n = 0; n < cases[i].times; n++)
			memcpy(text + n * length, cases[i].part, length + 1);
		status = open_file(json_pack("{s:O, s:{s:s, s:{s:s}, s:s}}", "model", json_object_get(stored, "model"),
					     "pre_tokenizer", "type", "Split", "pattern", "Regex", text, "behavior",
					     "Isolated"),
				   &t, &err);
		assert_int_equal(status, cases[i].refused ? XFP_BAD_INPUT : XFP_OK);
		if (cases[i].refused)
			assert_non_null(strstr(err.text, cases[i].refused));
		xfp_tokenizer_free(t);
		free(text);
	}
}

static bool third_time(void *context)
{
	return ++*(unsigned *)context < 3;
}

static bool always(void *context)
{
	++*(unsigned *)context;
	return true;
}

/* The watch is asked during a search, and while a long list of pieces is encoded. */
static void interrupted(void **state)
{
	struct xfp_tokenizer *t = cutting_at("(a|aa)+$");
	size_t size = 100000;
	char *text = malloc(size);
	struct xfp_token_ids ids = { 0 };
	struct xfp_error err = { 0 };
	unsigned asked = 0;

	(void)state;
	memset(text, 'a', 59);
	text[59] = 'b';
	xfp_tokenizer_watch(t, third_time, &asked);
	assert_int_equal(xfp_tokenizer_encode(t, text, 60, true, &ids, &err), XFP_FAILED);
	assert_string_equal(err.text, "interrupted");
	assert_int_equal(asked, 3);
	asked = 0;
	xfp_tokenizer_watch(t, always, &asked);
	assert_int_equal(xfp_tokenizer_encode(t, text, 60, true, &ids, &err), XFP_BAD_INPUT);
	assert_in_range(asked, 10, 200);   /* so that a signal takes effect soon */
	memset(text + 60, 'c', size - 60); /* a long text hardly raises the limit of one position */
	asked = 0;
	assert_int_equal(xfp_tokenizer_encode(t, text, size, true, &ids, &err), XFP_BAD_INPUT);
	assert_in_range(asked, 10, 50);
	xfp_tokenizer_free(t);

	t = cutting_at("b");
	memset(text, 'b', size);
	asked = 0;
	xfp_tokenizer_watch(t, third_time, &asked);
	assert_int_equal(xfp_tokenizer_encode(t, text, size, true, &ids, &err), XFP_FAILED);
	assert_int_equal(asked, 3);
	asked = 0;
	ids.count = 0;
	xfp_tokenizer_watch(t, always, &asked);
	assert_int_equal(xfp_tokenizer_encode(t, text, size, true, &ids, &err), XFP_OK);
	assert_int_equal(asked, 2 * (size / 4096)); /* once for the Metaspace, and once when pieces are encoded */
	free(text);
	free(ids.id);
	xfp_tokenizer_free(t);
}

PROGRAM("test_tokenizer_unicode")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point), cmocka_unit_test(expressions), cmocka_unit_test(normal_forms),
		cmocka_unit_test(too_many_steps),   cmocka_unit_test(many_pieces), cmocka_unit_test(many_classes),
		cmocka_unit_test(interrupted),
	};

	return cmocka_run_group_tests_name("tokenizer_unicode", tests, read_stored, drop_stored);
}
