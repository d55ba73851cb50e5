/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks: the search for the boundaries between garbage, what works and what fits, and the measures of garbage.
 */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "conversion/walk/judge.h"

#define POINTS 8

static struct xfp_walk_point points[POINTS];
static struct xfp_walk walk = { .point = points, .count = POINTS };

/* Points of 10, 20, ... bytes; 0: no limit. */
static void set_up(uint64_t limit)
{
	for (uint32_t i = 0; i < POINTS; i++)
		points[i] = (struct xfp_walk_point){ .bytes = 10 * (i + 1), .predicted = true };
	walk.limit.bytes = limit;
	walk.limit.goal = NULL;
	xfp_walk_sort(&walk);
}

/* Probe until the search ends: the first `garbage` points fail, others pass with less and less divergence. Bundles of
 * points from `large` on turn out to exceed the limit. Returns the points probed, as bits. */
static uint32_t probe(uint32_t garbage, uint32_t large, struct xfp_walk_boundaries *found)
{
	uint32_t probed = 0;

	while ((*found = xfp_walk_find_boundaries(&walk, true)).next != XFP_WALK_NONE) {
		struct xfp_walk_probe *p = &points[found->next].probe;

		assert_false(probed >> found->next & 1);
		probed |= 1u << found->next;
		*p = (struct xfp_walk_probe){ .verdict = found->next >= large    ? XFP_WALK_TOO_LARGE
							 : found->next < garbage ? XFP_WALK_GARBAGE
										 : XFP_WALK_PASSED,
					      .measured = true,
					      .kl = 1. / (found->next + 1) };
	}
	return probed;
}

static void finds_both_boundaries(void **state)
{
	struct xfp_walk_boundaries found;

	(void)state;
	set_up(65); /* six points fit */
	assert_int_equal(probe(2, POINTS, &found), 1 | 2 | 4 | 32);
	assert_int_equal(found.garbage, 1);
	assert_int_equal(found.passed, 2);
	assert_int_equal(found.largest, 5);
	assert_int_equal(found.best, 5);
}

static void stops_at_the_first_that_passes_without_a_limit(void **state)
{
	struct xfp_walk_boundaries found;

	(void)state;
	set_up(0);
	assert_int_equal(probe(3, POINTS, &found), 1 | 2 | 4 | 8);
	assert_int_equal(found.passed, 3);
	assert_int_equal(found.best, 3);
	assert_int_equal(found.largest, POINTS - 1);
}

static void bundles_that_are_too_large_move_the_boundary(void **state)
{
	struct xfp_walk_boundaries found;

	(void)state;
	set_up(65);
	assert_int_equal(probe(1, 4, &found), 1 | 2 | 32 | 16 | 8);
	assert_int_equal(found.largest, 3);
	assert_int_equal(found.best, 3);
}

static void nothing_passes_or_fits(void **state)
{
	struct xfp_walk_boundaries found;

	(void)state;
	set_up(35);
	assert_int_equal(probe(POINTS, POINTS, &found), 1 | 2 | 4);
	assert_int_equal(found.best, XFP_WALK_NONE);
	assert_int_equal(found.garbage, 2);
	assert_int_equal(xfp_walk_nearest(&walk), 2);
	set_up(5);
	assert_int_equal(probe(0, POINTS, &found), 0);
	assert_int_equal(found.best, XFP_WALK_NONE);
	assert_int_equal(found.largest, XFP_WALK_NONE);
	assert_int_equal(xfp_walk_nearest(&walk), 0);
	set_up(35);
	assert_int_equal(probe(0, 0, &found), 1 | 2 | 4);
	assert_int_equal(found.largest, XFP_WALK_NONE);
}

/* A larger bundle that works worse is not recommended. */
static void the_best_is_recommended(void **state)
{
	struct xfp_walk_boundaries found;

	(void)state;
	set_up(65);
	probe(0, POINTS, &found);
	assert_int_equal(found.best, 5);
	points[5].probe.kl = 2;
	assert_int_equal(xfp_walk_find_boundaries(&walk, true).best, 0);
	points[0].probe.scored = points[5].probe.scored = true;
	points[5].probe.score = .7;
	assert_int_equal(xfp_walk_find_boundaries(&walk, true).best, 5);
	/* A bundle that was built fits, whatever was predicted. */
	points[6].probe = (struct xfp_walk_probe){ .verdict = XFP_WALK_PASSED, .scored = true, .score = .8 };
	assert_int_equal(xfp_walk_find_boundaries(&walk, true).largest, 6);
	assert_int_equal(xfp_walk_find_boundaries(&walk, true).best, 6);
	points[6].probe.verdict = XFP_WALK_TOO_LARGE;
	points[5].probe.verdict = XFP_WALK_GARBAGE;
	found = xfp_walk_find_boundaries(&walk, true);
	assert_int_equal(found.next, 4);
}

static void without_probes_the_largest_that_fits(void **state)
{
	(void)state;
	set_up(65);
	assert_int_equal(xfp_walk_find_boundaries(&walk, false).best, 5);
	assert_int_equal(xfp_walk_find_boundaries(&walk, false).next, XFP_WALK_NONE);
	set_up(0);
	assert_int_equal(xfp_walk_find_boundaries(&walk, false).best, XFP_WALK_NONE);
}

static void sorts_by_size_then_floors(void **state)
{
	(void)state;
	set_up(0);
	for (uint32_t i = 0; i < POINTS; i++)
		points[i] = (struct xfp_walk_point){ .bytes = i & 1 ? 10 : 20, .lazy = POINTS - i };
	walk.limit.bytes = 15;
	xfp_walk_sort(&walk);
	assert_int_equal(points[0].bytes, 10);
	assert_int_equal(points[0].lazy, 1);
	assert_int_equal(points[3].margin, 5);
	assert_true(points[3].fits);
	assert_int_equal(points[4].margin, -5);
	assert_false(points[4].fits);
}

static double share(const uint32_t *ids, size_t count)
{
	uint64_t repeated = 0, total = 0;

	xfp_walk_count_repeats(ids, count, &repeated, &total);
	return total ? (double)repeated / (double)total : -1;
}

static void counts_repeated_4_grams(void **state)
{
	static const uint32_t once[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, same[] = { 7, 7, 7, 7, 7, 7, 7 },
			      twice[] = { 1, 2, 3, 4, 9, 1, 2, 3, 4 };
	uint64_t repeated = 0, total = 0;

	(void)state;
	assert_true(share(once, 8) == 0);
	assert_true(share(same, 7) == 3. / 4);
	assert_true(share(twice, 9) == 1. / 6);
	assert_true(share(once, 3) < 0);
	xfp_walk_count_repeats(same, 7, &repeated, &total);
	xfp_walk_count_repeats(same, 7, &repeated, &total); /* another text: nothing carries over */
	assert_int_equal(repeated, 6);
	assert_int_equal(total, 8);
}

static void garbage_by_repeats_or_agreement(void **state)
{
	struct xfp_walk_criteria criteria;
	struct xfp_walk_probe probe = { .repeats = .3, .agreement = .5 };

	(void)state;
	assert_true(xfp_walk_criteria_parse(".25,.5", &criteria));
	assert_false(xfp_walk_is_garbage(&criteria, &probe, .0625));
	assert_true(xfp_walk_is_garbage(&criteria, &probe, .03125));
	probe.repeats = .3125;
	assert_false(xfp_walk_is_garbage(&criteria, &probe, .0625)); /* exactly the limit */
	probe.agreement = .4375;
	assert_true(xfp_walk_is_garbage(&criteria, &probe, .3));
	probe.agreement = NAN;
	assert_true(xfp_walk_is_garbage(&criteria, &probe, .3));
	assert_false(xfp_walk_criteria_parse(".25", &criteria));
	assert_false(xfp_walk_criteria_parse(".25,", &criteria));
	assert_false(xfp_walk_criteria_parse("1.25,.5", &criteria));
	assert_false(xfp_walk_criteria_parse(".25,.5,.5", &criteria));
}

static void scores_are_last_words(void **state)
{
	double number = 0;

	(void)state;
	assert_true(xfp_walk_last_number("loading\naccuracy 0.62\n\n", &number));
	assert_true(number == .62);
	assert_true(xfp_walk_last_number("-3e2", &number));
	assert_true(number == -300);
	assert_false(xfp_walk_last_number("", &number));
	assert_false(xfp_walk_last_number(" \n", &number));
	assert_false(xfp_walk_last_number("0.5 percent", &number));
	assert_false(xfp_walk_last_number("nan", &number));
	assert_false(xfp_walk_last_number("inf", &number));
	assert_false(xfp_walk_last_number("12%", &number));
}

/* Prompts lie in the text, in order, and neither split words nor characters. */
static void prompts_are_words(void **state)
{
	static const char accents[] =
		"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4";
	struct xfp_walk_prompt prompts[XFP_WALK_PROMPTS];
	char text[8000], long_word[4000];
	unsigned count;

	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = i % 7 == 6 ? ' ' : 'a';
	count = xfp_walk_cut_prompts(text, sizeof text, prompts);
	assert_int_equal(count, XFP_WALK_PROMPTS);
	for (unsigned i = 0; i < count; i++) {
		assert_true(prompts[i].text == text || prompts[i].text[-1] == ' ');
		assert_int_equal(prompts[i].text[0], 'a');
		assert_int_equal(prompts[i].size % 7, 6);
		assert_true(prompts[i].size <= XFP_WALK_PROMPT_BYTES && prompts[i].size > XFP_WALK_PROMPT_BYTES - 8);
		assert_true(prompts[i].text + prompts[i].size <= text + sizeof text);
	}
	memset(long_word, 'x', sizeof long_word);
	assert_int_equal(xfp_walk_cut_prompts(long_word, sizeof long_word, prompts), XFP_WALK_PROMPTS);
	assert_int_equal(prompts[7].size, XFP_WALK_PROMPT_BYTES);
	for (size_t i = 0; i + 3 <= sizeof long_word; i += 3) /* characters of three bytes */
		memcpy(long_word + i, "\xe2\x82\xac", 3);
	assert_int_equal(xfp_walk_cut_prompts(long_word, sizeof long_word / 3 * 3, prompts), XFP_WALK_PROMPTS);
	for (unsigned i = 0; i < XFP_WALK_PROMPTS; i++)
		assert_true(xfp_utf8_valid(prompts[i].text, prompts[i].size));
	count = xfp_walk_cut_prompts(accents, sizeof accents - 1, prompts);
	for (unsigned i = 0; i < count; i++)
		assert_true(xfp_utf8_valid(prompts[i].text, prompts[i].size));
	assert_int_equal(xfp_walk_cut_prompts("  \n ", 4, prompts), 0);
	assert_int_equal(xfp_walk_cut_prompts("", 0, prompts), 0);
}

PROGRAM("test_walk_points")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_both_boundaries),
		cmocka_unit_test(stops_at_the_first_that_passes_without_a_limit),
		cmocka_unit_test(bundles_that_are_too_large_move_the_boundary),
		cmocka_unit_test(nothing_passes_or_fits),
		cmocka_unit_test(the_best_is_recommended),
		cmocka_unit_test(without_probes_the_largest_that_fits),
		cmocka_unit_test(sorts_by_size_then_floors),
		cmocka_unit_test(counts_repeated_4_grams),
		cmocka_unit_test(garbage_by_repeats_or_agreement),
		cmocka_unit_test(scores_are_last_words),
		cmocka_unit_test(prompts_are_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
