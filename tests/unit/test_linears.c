/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of several linears in one call have the bits of separate calls.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/bundle_fixture.h"
#include "tests/unit/vectors.h"

#define COLS 20 /* of all slices */

static struct xfp_error err;

/* The linears of a bundle's units, with the same columns of each; the last one is also there with the next columns. */
struct linears {
	const struct xfp_linear *all[FIXTURE_UNITS + 1];
	struct xfp_output y[FIXTURE_UNITS + 1], separate[FIXTURE_UNITS + 1];
	size_t count;
};

static void add_unit(const struct xfp_bundle *bundle, uint32_t unit, uint64_t first_col, struct linears *l)
{
	const struct xfp_slice slice = { .first_col = first_col, .cols = COLS };
	struct xfp_linear *linear;

	assert_int_equal(xfp_linear_open(bundle, unit, &slice, &linear, &err), XFP_OK);
	l->all[l->count++] = linear;
}

static void open_units(const struct xfp_bundle *bundle, uint64_t first_col, uint32_t min_experts, size_t vectors,
		       struct linears *l)
{
	struct xfp_unit_info unit;
	uint32_t last = 0;

	l->count = 0;
	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
		if (unit.cols < first_col + COLS || unit.experts < min_experts)
			continue;
		add_unit(bundle, u, first_col, l);
		last = unit.cols < first_col + COLS + 1 ? last : u;
	}
	add_unit(bundle, last, first_col + 1, l);
	for (size_t i = 0; i < l->count; i++) {
		struct xfp_linear_info info;

		xfp_linear_describe(l->all[i], &info);
		l->y[i] = (struct xfp_output){ NULL, XFP_FLOAT32 + i % 3, vectors, info.rows + i };
		l->separate[i] = l->y[i];
		l->y[i].data = calloc(vectors * l->y[i].stride, 4);
		l->separate[i].data = calloc(vectors * l->y[i].stride, 4);
	}
}

static void close_units(struct linears *l)
{
	for (size_t i = 0; i < l->count; i++) {
		assert_memory_equal(l->y[i].data, l->separate[i].data, l->y[i].count * l->y[i].stride * 4);
		free(l->y[i].data);
		free(l->separate[i].data);
		xfp_linear_close((struct xfp_linear *)(uintptr_t)l->all[i]);
	}
}

/* Units of every mode, with different bits and balances. 32 vectors, for which rows are decoded first, are multiplied
 * by few units in one round; more are multiplied by one unit after the other. */
static void same_bits(void **state)
{
	static const size_t counts[] = { 1, 2, 4, 32, 700 };
	float *x = test_vectors(700 * COLS);
	struct xfp_team *teams[2] = { NULL };

	(void)state;
	assert_int_equal(xfp_team_start(3, &teams[1], &err), XFP_OK);
	for (int small = 0; small <= FIXTURE_TILES; small += FIXTURE_TILES) {
		struct fixture f;
		struct xfp_bundle *bundle;

		fixture_make_bundle(&f, small);
		bundle = fixture_open(f.out);
		for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
			struct xfp_input in = { x, XFP_FLOAT32, counts[c], COLS };
			struct linears l;

			open_units(bundle, c % 3, 1, counts[c], &l);
			for (size_t i = 0; i < l.count; i++)
				assert_int_equal(
					xfp_multiply(teams[1], l.all[i], 0, counts[c], &in, &l.separate[i], &err),
					XFP_OK);
			for (size_t i = 0, some; i < l.count; i += some) {
				some = counts[c] == 32 && i + 2 <= l.count ? 2 : l.count - i;
				assert_int_equal(xfp_multiply_linears(teams[c % 2], l.all + i, some, NULL, counts[c],
								      &in, l.y + i, &err),
						 XFP_OK);
			}
			close_units(&l);
		}
		xfp_bundle_close(bundle);
		fixture_free(&f);
	}
	xfp_team_end(teams[1]);
	free(x);
}

/* The same list of products for several stacks. */
static void stacks(void **state)
{
	static const struct xfp_product list[] = {
		{ 1, 0, 2, 0.5f }, { 0, 0, 0, 1 }, { 1, 2, 1, 1 }, { 0, 1, 2, 2 }, { 1, 1, 2, 1 }
	};
	float *x = test_vectors(3 * COLS);
	struct xfp_input in = { x, XFP_FLOAT32, 3, COLS };
	struct fixture f;
	struct xfp_bundle *bundle;
	struct linears l;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	open_units(bundle, 0, 2, 3, &l);
	assert_true(l.count > 2);
	for (size_t i = 0; i < l.count; i++)
		assert_int_equal(xfp_multiply_experts(NULL, l.all[i], list, 5, &in, &l.separate[i], &err), XFP_OK);
	assert_int_equal(xfp_multiply_linears(NULL, l.all, l.count, list, 5, &in, l.y, &err), XFP_OK);
	close_units(&l);
	xfp_bundle_close(bundle);
	fixture_free(&f);
	free(x);
}

static void refusals(void **state)
{
	float x[COLS + 1] = { 0 };
	struct xfp_input in = { x, XFP_FLOAT32, 1, COLS };
	struct xfp_product list = { 1, 0, 0, 1 };
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *wider;
	const struct xfp_linear *two[2];
	struct linears l;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	open_units(bundle, 0, 1, 1, &l);
	assert_int_equal(xfp_multiply_linears(NULL, NULL, 0, NULL, SIZE_MAX, &in, NULL, &err), XFP_OK);
	assert_int_equal(xfp_multiply_linears(NULL, l.all, l.count, NULL, 2, &in, l.y, &err), XFP_USAGE);
	assert_int_equal(xfp_multiply_linears(NULL, l.all, 1, &list, 1, &in, l.y, &err), XFP_USAGE); /* one matrix */
	assert_int_equal(xfp_multiply_linears(NULL, l.all, 1, &list, SIZE_MAX, &in, l.y, &err), XFP_USAGE);
	l.y[1].type = 0;
	assert_int_equal(xfp_multiply_linears(NULL, l.all, 2, NULL, 1, &in, l.y, &err), XFP_USAGE);
	l.y[1].type = XFP_FLOAT32;
	assert_int_equal(xfp_linear_open(bundle, xfp_bundle_find_unit(bundle, "e.k_proj.weight", NULL),
					 &(struct xfp_slice){ .cols = COLS + 1 }, &wider, &err),
			 XFP_OK);
	two[0] = l.all[0];
	two[1] = wider;
	assert_int_equal(xfp_multiply_linears(NULL, two, 2, NULL, 1, &in, l.y, &err), XFP_USAGE);
	assert_string_equal(err.text, "e.k_proj.weight: has 21 columns, but a_head.weight, in the same call, has 20");
	xfp_linear_close(wider);
	close_units(&l);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

PROGRAM("test_linears")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_bits),
		cmocka_unit_test(stacks),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
