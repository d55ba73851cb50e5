/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/optimal.h"

#define COLS 700
#define PADDED 704

static struct xfp_lloyd_row row;
static struct xfp_optimal_buffers buffers;

static int prepare(void **state)
{
	(void)state;
	xfp_lloyd_init(&row);
	return 0;
}

static void load(const float *x, size_t marked, size_t cols)
{
	xfp_lloyd_load(&row, x, xfp_encoder()->rows->largest(x, cols), marked, cols);
}

static void fit(unsigned k, uint16_t *codebook)
{
	xfp_optimal_fit(&row, &k, 1, &buffers, &codebook);
}

static double error_of(const float *x, size_t cols, unsigned k, const uint16_t *codebook)
{
	double sum = 0;

	for (size_t c = 0; c < cols; c++) {
		double min = INFINITY;

		for (unsigned j = 0; j < 1u << k; j++) {
			double d = (double)x[c] - xfp_half_to_float(codebook[j]);

			min = d * d < min ? d * d : min;
		}
		sum += min;
	}
	return sum;
}

/* The least error of splitting the sorted numbers [from, n) into runs. */
static double by_force(const float *sorted, unsigned from, unsigned n, unsigned runs)
{
	double min = INFINITY, sum = 0, square = 0;

	for (unsigned to = from + 1; to <= n; to++) {
		double here, rest;

		sum += (double)sorted[to - 1];
		square += (double)sorted[to - 1] * sorted[to - 1];
		if (runs == 1 ? to < n : n - to < runs - 1)
			continue;
		here = square - sum * sum / (to - from);
		rest = runs > 1 ? by_force(sorted, to, n, runs - 1) : 0;
		min = here + rest < min ? here + rest : min;
	}
	return min;
}

/* Small integers: counted and stored exactly, means nearly so. */
static void no_other_codebook_is_better(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int test = 0; test < 400; test++) {
		unsigned n = 9 + (unsigned)(test_random(&seed) % 5), range = test % 3 ? 127 : 6;
		float x[XFP_LANES] = { 0 }, sorted[XFP_LANES];

		for (unsigned i = 0; i < n; i++)
			x[i] = (float)((int)(test_random(&seed) % (2 * range + 1)) - (int)range);
		memcpy(sorted, x, sizeof sorted);
		for (unsigned i = 1; i < n; i++)
			for (unsigned at = i; at && sorted[at - 1] > sorted[at]; at--) {
				float swap = sorted[at];

				sorted[at] = sorted[at - 1];
				sorted[at - 1] = swap;
			}
		load(x, 0, n);
		if (!row.count)
			continue;
		for (unsigned k = 2; k <= 3; k++) {
			uint16_t codebook[8];
			double min = by_force(sorted, 0, n, 1u << k);

			fit(k, codebook);
			assert_true(error_of(x, n, k, codebook) <= min * 1.001 + 0.01);
		}
	}
}

static void never_worse_than_lloyd(void **state)
{
	const unsigned all[] = { 2, 3, 4, 5, 6 };
	uint16_t ours[5][64], theirs[5][64], *out[5], *other[5], alone[64];
	float x[PADDED] = { 0 };
	uint64_t seed = 2;

	(void)state;
	for (int i = 0; i < 5; i++) {
		out[i] = ours[i];
		other[i] = theirs[i];
	}
	for (int test = 0; test < 20; test++) {
		for (size_t c = 0; c < COLS; c++) {
			/* Eight significant bits are counted exactly. */
			x[c] = xfp_bf16_to_float(xfp_float_to_bf16(test_gaussian(&seed) * 2000));
			if (test % 2)
				x[c] = xfp_bf16_to_float(xfp_float_to_bf16(x[c] * test_gaussian(&seed)));
		}
		load(x, 0, COLS);
		xfp_optimal_fit(&row, all, 5, &buffers, out);
		xfp_lloyd_fit(&row, all, 5, XFP_LLOYD_COMPANDED, 20, other);
		for (int i = 0; i < 5; i++) {
			assert_true(error_of(x, COLS, all[i], ours[i]) <=
				    error_of(x, COLS, all[i], theirs[i]) * 1.0001);
			for (unsigned j = 1; j < 1u << all[i]; j++)
				assert_true(xfp_half_to_float(ours[i][j - 1]) <= xfp_half_to_float(ours[i][j]));
			fit(all[i], alone);
			assert_memory_equal(ours[i], alone, sizeof *alone << all[i]);
		}
	}
}

static void few_numbers_are_entries_themselves(void **state)
{
	const float values[] = { -8960, -1, 0, 2.5f };
	uint16_t codebook[64];
	float x[PADDED] = { 0 };

	(void)state;
	for (size_t c = 0; c < COLS; c++)
		x[c] = values[c % 11 % 4];
	load(x, 0, COLS);
	for (unsigned k = 2; k <= 6; k++) {
		fit(k, codebook);
		for (unsigned j = 0; j < 1u << k; j++)
			assert_true(xfp_half_to_float(codebook[j]) == values[j < 4 ? j : 3]);
	}
}

static void marked_weights_do_not_exist(void **state)
{
	uint16_t with[16], without[16];
	float x[PADDED] = { 0 }, kept[PADDED] = { 0 };
	uint64_t seed = 5;
	size_t count = 0;

	(void)state;
	for (size_t c = 0; c < COLS; c++)
		if (c % 7 != 3)
			x[c] = kept[count++] = test_gaussian(&seed) * 100;
	load(x, COLS - count, COLS);
	fit(4, with);
	load(kept, 0, count);
	fit(4, without);
	assert_memory_equal(with, without, sizeof with);
	memset(x, 0, sizeof x);
	load(x, COLS, COLS);
	fit(4, with);
	load(x, 0, COLS);
	fit(4, without);
	for (int j = 0; j < 16; j++)
		assert_int_equal(with[j] | without[j], 0);
}

PROGRAM("test_optimal")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_other_codebook_is_better),
		cmocka_unit_test(never_worse_than_lloyd),
		cmocka_unit_test(few_numbers_are_entries_themselves),
		cmocka_unit_test(marked_weights_do_not_exist),
	};

	return cmocka_run_group_tests_name("optimal", tests, prepare, NULL);
}
