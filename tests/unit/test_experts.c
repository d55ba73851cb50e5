/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a stack's selected experts: lists, in rounds and batches.
 */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/multiply/matvec.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/vectors.h"

static struct xfp_error err;

/* The first of every y, then the second of every y, and so on. */
static void interleave(struct xfp_product *products, size_t tokens, size_t chosen)
{
	struct xfp_product *all = malloc(tokens * chosen * sizeof *all);

	for (size_t i = 0; i < tokens * chosen; i++)
		all[i % chosen * tokens + i / chosen] = products[i];
	memcpy(products, all, tokens * chosen * sizeof *all);
	free(all);
}

/* Products in any order of experts, with weights, some with the same result: equal to separate products, added in
 * order. */
static void chosen_experts(void **state)
{
	enum { TOKENS = 150, CHOSEN = 3 };
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_team *team;
	uint64_t seed = 3;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	xfp_bundle_describe(bundle, &info);
	assert_int_equal(xfp_team_start(2, &team, &err), XFP_OK);
	for (uint32_t u = 0; u < info.units; u++) {
		struct xfp_unit_info unit;
		struct xfp_linear *linear;
		struct xfp_product products[TOKENS * CHOSEN];
		float *x, *y, *one, *expected, *again;
		struct xfp_input in;
		struct xfp_output out;

		xfp_bundle_unit(bundle, u, &unit);
		if (unit.experts == 1)
			continue;
		x = test_vectors(TOKENS * unit.cols);
		y = malloc(TOKENS * unit.rows * sizeof *y);
		one = malloc(unit.rows * sizeof *one);
		expected = calloc(TOKENS * unit.rows, sizeof *expected);
		in = (struct xfp_input){ x, XFP_FLOAT32, TOKENS, unit.cols };
		out = (struct xfp_output){ y, XFP_FLOAT32, TOKENS, unit.rows };
		assert_int_equal(xfp_linear_open(bundle, u, NULL, &linear, &err), XFP_OK);
		for (size_t i = 0; i < TOKENS * CHOSEN; i++) {
			struct xfp_product *p = &products[i];
			struct xfp_output alone = { one, XFP_FLOAT32, 1, unit.rows };

			*p = (struct xfp_product){ (uint32_t)(test_random(&seed) % unit.experts),
						   (uint32_t)(test_random(&seed) % TOKENS), (uint32_t)(i / CHOSEN),
						   i % 4 ? test_gaussian(&seed) : 1 };
			assert_int_equal(xfp_multiply_experts(NULL, linear,
							      &(struct xfp_product){ p->expert, p->x, 0, 1 }, 1, &in,
							      &alone, &err),
					 XFP_OK);
			for (size_t r = 0; r < unit.rows; r++)
				expected[p->y * unit.rows + r] += p->weight * one[r];
		}
		assert_int_equal(xfp_multiply_experts(team, linear, products, TOKENS * CHOSEN, &in, &out, &err),
				 XFP_OK);
		for (size_t i = 0; i < TOKENS * unit.rows; i++)
			assert_true(fabs(y[i] - expected[i]) <= 1e-3 * (fabs(expected[i]) + 1000));
		/* the list in any order, but products with the same y in theirs: by expert, like engines */
		again = malloc(TOKENS * unit.rows * sizeof *again);
		memcpy(again, y, TOKENS * unit.rows * sizeof *again);
		interleave(products, TOKENS, CHOSEN);
		memset(y, 0xff, TOKENS * unit.rows * sizeof *y);
		assert_int_equal(xfp_multiply_experts(team, linear, products, TOKENS * CHOSEN, &in, &out, &err),
				 XFP_OK);
		assert_memory_equal(y, again, TOKENS * unit.rows * sizeof *y);
		free(again);
		/* a few at a time use the same kernels */
		assert_int_equal(xfp_multiply_experts(team, linear, products, 6, &in, &out, &err), XFP_OK);
		xfp_linear_close(linear);
		free(x);
		free(y);
		free(one);
		free(expected);
	}
	xfp_team_end(team);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- batches of the same vectors ----------------------------------------------------------------- */

/* The result of a product in plain arithmetic, and its error bound: a matrix in another order exceeds it. */
static void expect_near(const float *y, const float *w, const float *x, uint64_t rows, uint64_t cols)
{
	for (uint64_t r = 0; r < rows; r++, w += cols) {
		double sum = 0, size = 0;

		for (uint64_t c = 0; c < cols; c++) {
			sum += (double)w[c] * x[c];
			size += fabs((double)w[c] * x[c]);
		}
		if (!(fabs(y[r] - sum) <= 2e-3 * size + 1e-7))
			fail_msg("row %u is %g, not %g", (unsigned)r, (double)y[r], sum);
	}
}

/*
 * An expert with so many products that its rows are decoded first, in whole batches, and after it one with a single
 * batch of the last vectors: the same vectors, but in the order of stored indices, so they must be prepared again.
 */
static void decoded_and_stored(const struct xfp_bundle *bundle, uint32_t u, struct xfp_team *team, size_t first,
			       float *const *decoded)
{
	struct xfp_product products[64 + XFP_MAX_BATCH];
	size_t count = first + XFP_MAX_BATCH;
	struct xfp_unit_info unit;
	struct xfp_linear *linear;
	float *x, *y;

	assert_true(first <= 64 && first % XFP_MAX_BATCH == 0);
	xfp_bundle_unit(bundle, u, &unit);
	x = test_vectors(first * unit.cols);
	y = malloc(count * unit.rows * sizeof *y);
	for (uint32_t i = 0; i < count; i++)
		products[i] = i < first ? (struct xfp_product){ 0, i, i, 1 }
					: (struct xfp_product){ 1, i - XFP_MAX_BATCH, i, 1 };
	assert_int_equal(xfp_linear_open(bundle, u, NULL, &linear, &err), XFP_OK);
	assert_int_equal(xfp_multiply_experts(team, linear, products, count,
					      &(struct xfp_input){ x, XFP_FLOAT32, first, unit.cols },
					      &(struct xfp_output){ y, XFP_FLOAT32, count, unit.rows }, &err),
			 XFP_OK);
	for (size_t i = 0; i < count; i++)
		expect_near(y + i * unit.rows, decoded[unit.first_matrix + products[i].expert],
			    x + products[i].x * unit.cols, unit.rows, unit.cols);
	xfp_linear_close(linear);
	free(x);
	free(y);
}

static void the_same_vectors_for_two_experts(void **state)
{
	static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };
	const char *best = xfp_instructions();
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_team *team;
	unsigned stacks = 0;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	xfp_bundle_describe(bundle, &info);
	assert_int_equal(xfp_team_start(2, &team, &err), XFP_OK);
	for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
		if (!xfp_use_instructions(sets[set])) {
			print_message("# not here: %s\n", sets[set]);
			continue;
		}
		for (uint32_t u = 0; u < info.units; u++) {
			struct xfp_unit_info unit;

			xfp_bundle_unit(bundle, u, &unit);
			for (size_t first = 24; unit.experts > 1 && first <= 64; first += 8) {
				decoded_and_stored(bundle, u, first % 16 ? NULL : team, first, f.decoded);
				stacks++;
			}
		}
	}
	assert_true(stacks >= 5 * 6);
	assert_true(xfp_use_instructions(best));
	xfp_team_end(team);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* A few of the same vectors for experts with different bits per index: their stored orders differ. */
static void the_same_vectors_for_two_sizes(void **state)
{
	static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };
	const char *best = xfp_instructions();
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *linear;
	float *x = test_vectors(3 * 300), y[9 * 7];

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TWO_SIZES);
	bundle = fixture_open(f.out);
	assert_int_equal(xfp_linear_open(bundle, 0, NULL, &linear, &err), XFP_OK);
	for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
		struct xfp_product products[9];

		if (!xfp_use_instructions(sets[set]))
			continue;
		for (uint32_t i = 0; i < 9; i++)
			products[i] = (struct xfp_product){ i / 3, i % 3, i, 1 };
		assert_int_equal(xfp_multiply_experts(NULL, linear, products, 9,
						      &(struct xfp_input){ x, XFP_FLOAT32, 3, 300 },
						      &(struct xfp_output){ y, XFP_FLOAT32, 9, 7 }, &err),
				 XFP_OK);
		for (size_t i = 0; i < 9; i++)
			expect_near(y + i * 7, f.decoded[i / 3], x + i % 3 * 300, 7, 300);
	}
	assert_true(xfp_use_instructions(best));
	xfp_linear_close(linear);
	xfp_bundle_close(bundle);
	free(x);
	fixture_free(&f);
}

PROGRAM("test_experts")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen_experts),
		cmocka_unit_test(the_same_vectors_for_two_experts),
		cmocka_unit_test(the_same_vectors_for_two_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
