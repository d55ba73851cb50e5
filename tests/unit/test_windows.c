/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of calibration tokens: spread evenly over the text, without overlap.
 */
#include <stdlib.h>

#include "stages/calibrate/windows.h"
#include "tests/unit/unit.h"

/* A text of `count` tokens 1000, 1001, 1002 ... after a prefix of one or no token. */
static struct xfp_text_ids a_text(uint32_t *ids, size_t count, bool prefix)
{
	static uint32_t begin = 7;
	struct xfp_text_ids text = { .ids = { .id = ids, .count = count } };

	for (size_t i = 0; i < count; i++)
		ids[i] = (uint32_t)(1000 + i);
	if (prefix)
		text.prefix = (struct xfp_token_ids){ .id = &begin, .count = 1 };
	return text;
}

static void cut(size_t count, bool prefix, uint64_t length, uint64_t wanted, uint64_t windows)
{
	uint64_t own = length - prefix, end = 0, least = UINT64_MAX, most = 0;
	uint32_t ids[1000];
	struct xfp_text_ids text = a_text(ids, count, prefix);
	struct xfp_tokens cut;

	OK(xfp_windows_of_text(&text, length, wanted, &cut, &err));
	assert_int_equal(cut.sequences, windows);
	assert_int_equal(cut.length, length);
	for (uint64_t w = 0; w < windows; w++) {
		const uint32_t *window = cut.ids + w * length;
		uint64_t first = window[prefix] - 1000u;

		assert_true(!prefix || window[0] == 7);
		for (uint64_t i = 0; i < own; i++)
			assert_int_equal(window[prefix + i], 1000 + first + i);
		assert_true(first >= end);
		if (w) {
			least = first - end < least ? first - end : least;
			most = first - end > most ? first - end : most;
		}
		end = first + own;
	}
	assert_int_equal(cut.ids[prefix], 1000);
	assert_true(windows < 2 || (end == count && most - least <= 1));
	free(cut.ids);
}

/* An encoder's windows end with the token after a text. */
static void suffixes(void **state)
{
	uint32_t ids[10], end = 8;
	struct xfp_text_ids text = a_text(ids, 10, true);
	const uint32_t expected[] = { 7, 1000, 1001, 8, 7, 1004, 1005, 8, 7, 1008, 1009, 8 };
	struct xfp_tokens cut;

	(void)state;
	text.suffix = (struct xfp_token_ids){ .id = &end, .count = 1 };
	OK(xfp_windows_of_text(&text, 4, 12, &cut, &err));
	assert_int_equal(cut.sequences, 3);
	assert_memory_equal(cut.ids, expected, sizeof expected);
	free(cut.ids);
}

static void texts(void **state)
{
	(void)state;
	cut(1000, true, 10, 500, 50);
	cut(1000, false, 10, 500, 50);
	cut(1000, false, 10, 501, 51);
	cut(1000, false, 10, 1000, 100);
	cut(1000, true, 10, 5000, 111);
	cut(999, true, 10, 5000, 111);
	cut(998, true, 10, 5000, 110);
	cut(19, false, 10, 5000, 1);
	cut(20, false, 10, 20, 2);
	cut(1000, false, 7, 14, 2);
}

/* Of sequences that are given, some. */
static void selections(void **state)
{
	uint32_t *ids = malloc(20 * sizeof *ids);
	struct xfp_tokens tokens = { 10, 2, ids, 0 };

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		ids[i] = i;
	xfp_windows_select(&tokens, 100);
	assert_int_equal(tokens.sequences, 10);
	xfp_windows_select(&tokens, 5);
	assert_int_equal(tokens.sequences, 3);
	assert_true(ids[0] == 0 && ids[2] == 8 && ids[3] == 9 && ids[4] == 18 && ids[5] == 19);
	free(ids);
}

static void defaults(void **state)
{
	struct xfp_description d = { .experts = 0 };

	(void)state;
	assert_int_equal(xfp_default_tokens(&d), 32768);
	d.experts = 128;
	d.experts_per_token = 8;
	assert_int_equal(xfp_default_tokens(&d), 32768);
	d.experts = 512;
	d.experts_per_token = 10;
	assert_int_equal(xfp_default_tokens(&d), 52429);
}

PROGRAM("test_windows")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(suffixes),
		cmocka_unit_test(selections),
		cmocka_unit_test(defaults),
	};

	return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
