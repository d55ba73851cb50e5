/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled tokens compared with known probabilities.
 */
#include <math.h>
#include <string.h>

#include "model/sample.h"
#include "tests/unit/unit.h"

#define WORDS 6
#define DRAWS 60000

/* e^logit is 1, 2, 3, 4, 5 and 5 parts of 20. */
static const float logits[WORDS] = { 0, 0.693147182f, 1.09861231f, 1.38629436f, 1.60943794f, 1.60943794f };

static void draw(struct xfp_sampling sampling, double share[WORDS])
{
	struct xfp_token_candidate room[WORDS];

	memset(share, 0, WORDS * sizeof *share);
	for (unsigned i = 0; i < DRAWS; i++) {
		uint32_t id;

		sampling.seed = i;
		id = xfp_sample(&sampling, 3, 17, logits, WORDS, room);
		assert_true(id < WORDS);
		share[id] += 1.0 / DRAWS;
	}
}

/* Within five standard deviations. */
static void expect_shares(struct xfp_sampling sampling, const double expected[WORDS])
{
	double share[WORDS];

	draw(sampling, share);
	for (unsigned v = 0; v < WORDS; v++) {
		double max = 5 * sqrt(expected[v] * (1 - expected[v]) / DRAWS) + 1e-9;

		if (fabs(share[v] - expected[v]) > max)
			fail_msg("token %u: %g of %g", v, share[v], expected[v]);
	}
}

static void shares_are_probabilities(void **state)
{
	const double at_one[WORDS] = { 0.05, 0.1, 0.15, 0.2, 0.25, 0.25 };
	const double at_half[WORDS] = { 1 / 80.0, 4 / 80.0, 9 / 80.0, 16 / 80.0, 25 / 80.0, 25 / 80.0 };

	(void)state;
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 1 }, at_one);
	expect_shares((struct xfp_sampling){ .temperature = 0.5, .top_p = 1 }, at_half);
}

static void the_most_probable_are_kept(void **state)
{
	const double three[WORDS] = { 0, 0, 0, 4 / 14.0, 5 / 14.0, 5 / 14.0 }, one[WORDS] = { 0, 0, 0, 0, 1, 0 };
	const double two[WORDS] = { 0, 0, 0, 0, 0.5, 0.5 }, all[WORDS] = { 0.05, 0.1, 0.15, 0.2, 0.25, 0.25 };

	(void)state;
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 1, .top_k = 3 }, three);
	/* Ties go to the lower number. */
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 1, .top_k = 1 }, one);
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 1, .top_k = 6 }, all);
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 1, .top_k = 99 }, all);
	/* Two words have half of the probability, up to rounding; slightly more needs a third. */
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 0.4999 }, two);
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 0.5001 }, three);
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 0.2 }, one);
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 1e-300 }, one);
	/* A share of those that top-k left: 10 of 14 parts, not of 20. */
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 0.71, .top_k = 3 }, two);
	expect_shares((struct xfp_sampling){ .temperature = 1, .top_p = 0.72, .top_k = 3 }, three);
}

static void without_a_temperature_the_largest_is_taken(void **state)
{
	struct xfp_sampling greedy = { .top_p = 1 }, cold = { .temperature = 1e-9, .top_p = 1, .top_k = 1 };
	struct xfp_token_candidate room[WORDS];
	const float below[WORDS] = { -3e38f, -2, -1, -1, -2, -3e38f };

	(void)state;
	assert_int_equal(xfp_sample(&greedy, 0, 0, logits, WORDS, room), 4);
	assert_int_equal(xfp_sample(&greedy, 0, 0, below, WORDS, room), 2);
	assert_int_equal(xfp_sample(&cold, 0, 0, below, WORDS, room), 2);
	assert_int_equal(xfp_sample(&greedy, 0, 0, below, 1, room), 0);
}

/* Random numbers of adjacent seeds, sequences and positions are independent. */
static void numbers_are_spread(void **state)
{
	double sum = 0, squares = 0, products = 0, last = 0.5;
	unsigned count = 0;

	(void)state;
	for (unsigned seed = 0; seed < 30; seed++) {
		for (unsigned sequence = 0; sequence < 30; sequence++) {
			for (unsigned position = 0; position < 30; position++, count++) {
				double x = xfp_random_uniform(seed, sequence, position) - 0.5;

				assert_true(x >= -0.5 && x < 0.5);
				sum += x;
				squares += x * x;
				products += x * last;
				last = x;
			}
		}
	}
	assert_true(fabs(sum / count) < 5 * sqrt(1 / 12.0 / count));
	assert_true(fabs(squares / count - 1 / 12.0) < 5 * sqrt(1 / 180.0 / count));
	assert_true(fabs(products / count) < 5 / 12.0 / sqrt(count));
	assert_true(xfp_random_uniform(1, 2, 3) == xfp_random_uniform(1, 2, 3));
	assert_true(xfp_random_uniform(1, 2, 3) != xfp_random_uniform(2, 1, 3));
}

PROGRAM("test_sample")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_probabilities),
		cmocka_unit_test(the_most_probable_are_kept),
		cmocka_unit_test(without_a_temperature_the_largest_is_taken),
		cmocka_unit_test(numbers_are_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
