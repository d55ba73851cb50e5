/* SPDX-License-Identifier: Apache-2.0 */
/* Every instruction set gives the bits that plain C gives. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/lloyd.h"

#define MAX_COLS 700 /* columns: more than a tile of 512 */
#define CAPACITY (MAX_COLS + XFP_LANES)

enum { F64, F32, F16, BF16 }; /* base/dtype.h */

static const struct xfp_encoder *others[3];
static int other_count;

static int find_others(void **state)
{
	static const char *const names[] = { "avx2", "avx512", "neon" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		if (!xfp_encoder_use(names[i])) {
			printf("# this machine or build has no %s: not compared\n", names[i]);
			continue;
		}
		others[other_count] = xfp_encoder();
		assert_string_equal(others[other_count++]->name, names[i]);
	}
	assert_false(xfp_encoder_use("none such"));
	assert_true(xfp_encoder_use("plain"));
	return 0;
}

/* A source row with all kinds of numbers: zeros, subnormals, infinities, NaNs. */
static void fill(uint64_t *seed, int dtype, size_t count, void *source)
{
	for (size_t i = 0; i < count; i++) {
		float x = test_gaussian(seed);
		uint64_t any = test_random(seed);
		double wide = x;

		if (any % 16 == 0)
			x = (any >> 8) % 2 ? 0 : -0.0f;
		if (dtype == F16)
			((uint16_t *)source)[i] = any % 8 == 1 ? (uint16_t)(any >> 32) : xfp_float_to_half(x);
		else if (dtype == BF16)
			((uint16_t *)source)[i] = any % 8 == 1 ? (uint16_t)(any >> 32) : xfp_float_to_bf16(x);
		else if (dtype == F32)
			memcpy((float *)source + i, &x, sizeof x);
		else
			((double *)source)[i] = any % 8 == 1 ? wide * 1e-300 : wide;
	}
}

/* In one call and in several, whether norm and magnitudes are finite or not. */
static void loads_and_scales_alike(const struct xfp_encoder *other, int dtype, const void *source, size_t cols,
				   const float *loaded)
{
	float factor[CAPACITY] = { 0 }, w[2][CAPACITY], x[2][CAPACITY], want[CAPACITY];
	struct xfp_row_start start[2];

	for (size_t c = 0; c < cols; c++)
		factor[c] = (float)(c % 7 + 1) / 4;
	start[0] = xfp_encoder_plain.rows->load_scaled(dtype, source, cols, factor, 0.5f, w[0], x[0]);
	start[1] = other->rows->load_scaled(dtype, source, cols, factor, 0.5f, w[1], x[1]);
	assert_memory_equal(w[0], w[1], xfp_padded(cols) * sizeof **w);
	assert_memory_equal(x[0], x[1], xfp_padded(cols) * sizeof **x);
	assert_memory_equal(&start[0].largest, &start[1].largest, sizeof start[0].largest);
	assert_true(start[0].norm == start[1].norm || start[0].norm != start[0].norm);
	for (size_t c = 0; c < cols; c++)
		assert_true(w[0][c] == loaded[c] / 2 || w[0][c] != w[0][c]);
	xfp_encoder_plain.rows->scale(loaded, factor, cols, want);
	assert_memory_equal(x[0], want, xfp_padded(cols) * sizeof **x);
	other->rows->load_scaled(dtype, source, cols, factor, 1, NULL, x[1]);
	assert_memory_equal(x[1], want, xfp_padded(cols) * sizeof **x);
}

static void rows_load_and_scan_alike(void **state)
{
	uint64_t seed = 1;
	double *source = malloc(3 * MAX_COLS * sizeof *source);

	(void)state;
	for (int dtype = F64; dtype <= BF16; dtype++) {
		for (size_t cols = 1; cols <= MAX_COLS; cols += cols < 40 ? 1 : 131) {
			float w[2][CAPACITY], largest[2][CAPACITY] = { { 0 } };
			double square[2][CAPACITY] = { { 0 } };
			size_t bad;

			fill(&seed, dtype, 3 * cols, source);
			xfp_encoder_plain.rows->load(dtype, source, cols, w[0]);
			bad = xfp_encoder_plain.rows->column_scan(dtype, source, 3, cols, square[0], largest[0]);
			for (size_t c = cols; c < xfp_padded(cols); c++)
				assert_true(w[0][c] == 0);
			for (int i = 0; i < other_count; i++) {
				memset(largest[1], 0, sizeof largest[1]);
				others[i]->rows->load(dtype, source, cols, w[1]);
				assert_memory_equal(w[0], w[1], xfp_padded(cols) * sizeof **w);
				loads_and_scales_alike(others[i], dtype, source, cols, w[0]);
				assert_int_equal(
					others[i]->rows->column_scan(dtype, source, 3, cols, square[1], largest[1]),
					bad);
				assert_memory_equal(largest[0], largest[1], cols * sizeof **largest);
				for (size_t c = 0; c < cols; c++) /* which NaN it is does not matter */
					assert_true(square[0][c] == square[1][c] ||
						    (square[0][c] != square[0][c] && square[1][c] != square[1][c]));
			}
		}
	}
	free(source);
}

/* Scaled weights, padded: some at the ends of the range, some halfway between two cells. */
static void scaled(uint64_t *seed, size_t cols, float *x)
{
	memset(x, 0, CAPACITY * sizeof *x);
	for (size_t c = 0; c < cols; c++) {
		uint64_t any = test_random(seed);

		x[c] = test_gaussian(seed) * 2000;
		if (any % 8 == 0)
			x[c] = (float)(int)(any >> 40) / 65536;
		if (any % 64 == 1)
			x[c] = any >> 63 ? 16384 : -16384;
	}
}

static void fit(const struct xfp_lloyd_row *row, uint16_t codebook[5][64])
{
	const unsigned k[] = { 2, 3, 4, 5, 6 };
	uint16_t *out[5] = { codebook[0], codebook[1], codebook[2], codebook[3], codebook[4] };

	memset(codebook, 0, 5 * sizeof *codebook);
	xfp_lloyd_fit(row, k, 5, XFP_LLOYD_COMPANDED, 20, out);
}

static void sums_and_cells_agree(void **state)
{
	static struct xfp_lloyd_row row[2];
	uint64_t seed = 2;

	(void)state;
	for (size_t cols = 1; cols <= MAX_COLS; cols += cols < 40 ? 1 : 131) {
		float x[CAPACITY], y[2][CAPACITY];
		uint32_t column[2][CAPACITY];
		uint16_t codebook[2][5][64];
		int64_t sum[2], square[2];
		size_t found;

		scaled(&seed, cols, x);
		found = xfp_encoder_plain.rows->survey(x, cols, 1 + (int32_t)cols, 2500000, column[0], &sum[0],
						       &square[0]);
		xfp_encoder_plain.rows->scale(x, x, cols, y[0]);
		xfp_encoder_use("plain");
		xfp_lloyd_init(&row[0]);
		xfp_lloyd_load(&row[0], x, xfp_encoder()->rows->largest(x, cols), 0, cols);
		fit(&row[0], codebook[0]);
		for (int i = 0; i < other_count; i++) {
			assert_int_equal(others[i]->rows->survey(x, cols, 1 + (int32_t)cols, 2500000, column[1],
								 &sum[1], &square[1]),
					 found);
			assert_true(sum[0] == sum[1] && square[0] == square[1]);
			assert_memory_equal(column[0], column[1], found * sizeof **column);
			others[i]->rows->scale(x, x, cols, y[1]);
			assert_memory_equal(y[0], y[1], xfp_padded(cols) * sizeof **y);
			assert_true(others[i]->rows->largest(x, cols) == xfp_encoder_plain.rows->largest(x, cols));
			assert_true(xfp_encoder_use(others[i]->name));
			xfp_lloyd_init(&row[1]);
			xfp_lloyd_load(&row[1], x, xfp_encoder()->rows->largest(x, cols), 0, cols);
			assert_memory_equal(&row[0], &row[1], sizeof row[0]);
			fit(&row[1], codebook[1]);
			assert_memory_equal(codebook[0], codebook[1], sizeof codebook[0]);
		}
		xfp_encoder_use("plain");
	}
}

static void assignments_and_comparisons_agree(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (size_t cols = 1; cols <= MAX_COLS; cols += cols < 40 ? 1 : 131) {
		float x[CAPACITY], down[CAPACITY], value[2][CAPACITY];
		uint8_t index[2][CAPACITY];

		scaled(&seed, cols, x);
		for (size_t c = 0; c < CAPACITY; c++)
			down[c] = test_gaussian(&seed);
		for (unsigned k = 2; k <= 6; k++) {
			float entry[64], edge[64] = { 0 };
			struct xfp_row_sums sums[3];

			for (unsigned j = 0; j < 1u << k; j++)
				entry[j] = ((float)j - (float)(1u << k) / 2) * 200;
			for (unsigned j = 0; j + 1 < 1u << k; j++)
				edge[j] = j % 5 ? (entry[j] + entry[j + 1]) / 2 : x[j % cols];
			for (unsigned j = 1; j + 1 < 1u << k; j++) /* ascending */
				edge[j] = edge[j] < edge[j - 1] ? edge[j - 1] : edge[j];
			xfp_encoder_plain.codebooks->assign(k, entry, edge, x, cols, value[0]);
			xfp_encoder_plain.codebooks->index(k, edge, x, cols, index[0]);
			sums[0] = xfp_encoder_plain.rows->compare(x, value[0], 0.25f, cols);
			sums[1] = xfp_encoder_plain.codebooks->measure(k, entry, edge, x, down, x, cols);
			for (size_t c = 0; c < cols; c++) {
				unsigned at = index[0][c];

				assert_true(value[0][c] == entry[at]);
				assert_true(at == 0 || x[c] > edge[at - 1]);
				assert_true(at + 1 == 1u << k || x[c] <= edge[at]);
			}
			for (int i = 0; i < other_count; i++) {
				others[i]->codebooks->assign(k, entry, edge, x, cols, value[1]);
				assert_memory_equal(value[0], value[1], cols * sizeof **value);
				others[i]->codebooks->index(k, edge, x, cols, index[1]);
				assert_memory_equal(index[0], index[1], cols);
				sums[2] = others[i]->rows->compare(x, value[0], 0.25f, cols);
				assert_memory_equal(&sums[0], &sums[2], sizeof sums[0]);
				sums[2] = others[i]->codebooks->measure(k, entry, edge, x, down, x, cols);
				assert_memory_equal(&sums[1], &sums[2], sizeof sums[0]);
				assert_true(others[i]->rows->norm(x, cols) == xfp_encoder_plain.rows->norm(x, cols));
			}
		}
	}
}

PROGRAM("test_encode")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_load_and_scan_alike),
		cmocka_unit_test(sums_and_cells_agree),
		cmocka_unit_test(assignments_and_comparisons_agree),
	};

	return cmocka_run_group_tests_name("encode", tests, find_others, NULL);
}
