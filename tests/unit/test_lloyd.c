/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/lloyd.h"

#define COLS 700
#define PADDED 704

static double normal(double x)
{
	return 0.5 * erfc(-x / sqrt(2));
}

static double normal_inverse(double p)
{
	double low = -12, high = 12;

	for (int i = 0; i < 200; i++) {
		double middle = (low + high) / 2;

		if (normal(middle) < p)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void load(struct xfp_lloyd_row *row, const float *x, size_t marked, size_t cols)
{
	xfp_lloyd_load(row, x, xfp_encoder()->rows->largest(x, cols), marked, cols);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

/* Textbook Lloyd iteration, on the sorted row in long double. */
static void textbook(const float *x, size_t n, unsigned k, int start, unsigned rounds, uint16_t *codebook)
{
	unsigned m = 1u << k;
	float *sorted = malloc(n * sizeof *sorted);
	long double c[64];

	memcpy(sorted, x, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare);
	for (unsigned j = 0; j < m; j++) {
		double p = (j + 0.5) / m;

		if (start == XFP_LLOYD_COMPANDED)
			p = normal(sqrt(3) * normal_inverse(p));
		c[j] = start == XFP_LLOYD_MINMAX ? sorted[0] + ((long double)sorted[n - 1] - sorted[0]) * j / (m - 1)
						 : sorted[(size_t)(p * n)];
	}
	for (unsigned round = 0; round < rounds; round++) {
		long double sum[64] = { 0 };
		size_t count[64] = { 0 };

		for (size_t i = 0; i < n; i++) {
			unsigned j = 0;

			while (j + 1 < m && sorted[i] > (c[j] + c[j + 1]) / 2)
				j++;
			sum[j] += sorted[i];
			count[j]++;
		}
		for (unsigned j = 0; j < m; j++)
			if (count[j])
				c[j] = sum[j] / count[j];
	}
	for (unsigned j = 0; j < m; j++)
		codebook[j] = xfp_double_to_half((double)c[j]);
	free(sorted);
}

static struct xfp_lloyd_row row;

/* A weight as the fit counts it: eight significant bits, ties away from zero. */
static float eight_bits(float x)
{
	int e;
	double fraction = frexp(x, &e);

	return (float)ldexp(round(ldexp(fraction, 8)), e - 8);
}

static int prepare(void **state)
{
	(void)state;
	xfp_lloyd_init(&row);
	return 0;
}

static void fit(unsigned k, int start, uint16_t *codebook)
{
	xfp_lloyd_fit(&row, &k, 1, start, 20, &codebook);
}

static void fits_agree_with_the_textbook(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		for (int start = 0; start < 3; start++) {
			uint16_t ours[64], theirs[64];
			float x[PADDED] = { 0 }, rounded[COLS];

			for (size_t c = 0; c < COLS; c++)
				rounded[c] = eight_bits(x[c] = test_gaussian(&seed) * 3000);
			load(&row, x, 0, COLS);
			fit(k, start, ours);
			textbook(rounded, COLS, k, start, 20, theirs);
			assert_memory_equal(ours, theirs, sizeof *ours << k);
		}
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
	load(&row, x, COLS - count, COLS);
	assert_int_equal(row.count, count);
	fit(4, XFP_LLOYD_COMPANDED, with);
	load(&row, kept, 0, count);
	fit(4, XFP_LLOYD_COMPANDED, without);
	assert_memory_equal(with, without, sizeof with);
	memset(x, 0, sizeof x);
	load(&row, x, COLS, COLS);
	fit(4, XFP_LLOYD_COMPANDED, with);
	for (int j = 0; j < 16; j++)
		assert_int_equal(with[j], 0);
}

static void few_distinct_values_are_stored_exactly(void **state)
{
	const float values[] = { -8960, -1, 0, 2.5f };
	uint16_t codebook[64];
	float x[PADDED] = { 0 };

	(void)state;
	for (size_t c = 0; c < COLS; c++)
		x[c] = values[c % 11 % 4];
	for (unsigned k = 3; k <= 6; k++) {
		load(&row, x, 0, COLS);
		fit(k, XFP_LLOYD_QUANTILE, codebook);
		for (int v = 0; v < 4; v++) {
			int found = 0;

			for (unsigned j = 0; j < 1u << k; j++)
				found |= xfp_half_to_float(codebook[j]) == values[v];
			assert_true(found);
		}
		for (unsigned j = 1; j < 1u << k; j++)
			assert_true(xfp_half_to_float(codebook[j - 1]) <= xfp_half_to_float(codebook[j]));
	}
}

static void order_of_columns_does_not_matter(void **state)
{
	uint16_t forward[64], backward[64];
	float x[PADDED] = { 0 }, y[PADDED] = { 0 };
	uint64_t seed = 23;

	(void)state;
	for (size_t c = 0; c < COLS; c++)
		x[c] = y[COLS - 1 - c] = test_gaussian(&seed) * test_gaussian(&seed) * 1e-3f;
	for (unsigned k = 2; k <= 6; k++) {
		load(&row, x, 0, COLS);
		fit(k, XFP_LLOYD_COMPANDED, forward);
		load(&row, y, 0, COLS);
		fit(k, XFP_LLOYD_COMPANDED, backward);
		assert_memory_equal(forward, backward, sizeof *forward << k);
	}
}

static void codebooks_fitted_together_are_those_fitted_alone(void **state)
{
	const unsigned all[] = { 2, 3, 4, 5, 6 };
	uint16_t together[5][64], *out[5], alone[64];
	float x[PADDED] = { 0 };
	uint64_t seed = 31;

	(void)state;
	for (size_t c = 0; c < COLS; c++)
		x[c] = test_gaussian(&seed) * test_gaussian(&seed) * 900;
	load(&row, x, 0, COLS);
	for (int start = 0; start < 3; start++) {
		for (int i = 0; i < 5; i++)
			out[i] = together[i];
		xfp_lloyd_fit(&row, all, 5, start, 20, out);
		for (int i = 0; i < 5; i++) {
			fit(all[i], start, alone);
			assert_memory_equal(together[i], alone, sizeof *alone << all[i]);
		}
	}
}

static void a_single_weight_is_its_own_entry(void **state)
{
	const float x[XFP_LANES] = { -12352 };
	uint16_t codebook[4];

	(void)state;
	for (int start = 0; start < 3; start++) {
		load(&row, x, 0, 1);
		fit(2, start, codebook);
		for (int j = 0; j < 4; j++)
			assert_int_equal(codebook[j], xfp_float_to_half(-12352));
	}
}

/* Sixteen octaves and more in one row: weights too small to count become zero, the others are found. */
static void small_weights_beside_large_ones(void **state)
{
	float x[PADDED] = { 0 };
	uint16_t codebook[4];

	(void)state;
	for (size_t c = 0; c < COLS; c++)
		x[c] = c == 5 ? 16256 : c == 6 ? -16256 : c % 2 ? 0x1p-3f : -0x1p-3f;
	load(&row, x, 0, COLS);
	fit(2, XFP_LLOYD_MINMAX, codebook);
	assert_true(xfp_half_to_float(codebook[0]) == -16256 && xfp_half_to_float(codebook[3]) == 16256);
	/* 2^-3 is 16 octaves below. */
	for (size_t c = 0; c < COLS; c++)
		x[c] = c == 5 ? 16256 : 0x1p-3f;
	load(&row, x, 0, COLS);
	fit(2, XFP_LLOYD_QUANTILE, codebook);
	assert_int_equal(codebook[0], 0);
	for (size_t c = 0; c < COLS; c++)
		x[c] = 0x1p-26f;
	load(&row, x, 0, COLS);
	fit(2, XFP_LLOYD_QUANTILE, codebook);
	assert_int_equal(codebook[0] | codebook[3], 0);
}

PROGRAM("test_lloyd")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits_agree_with_the_textbook),
		cmocka_unit_test(marked_weights_do_not_exist),
		cmocka_unit_test(few_distinct_values_are_stored_exactly),
		cmocka_unit_test(order_of_columns_does_not_matter),
		cmocka_unit_test(codebooks_fitted_together_are_those_fitted_alone),
		cmocka_unit_test(a_single_weight_is_its_own_entry),
		cmocka_unit_test(small_weights_beside_large_ones),
	};

	return cmocka_run_group_tests_name("lloyd", tests, prepare, NULL);
}
