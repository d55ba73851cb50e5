/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every mode, k, number of vectors and instruction set against the reference in double, between guard pages.
 */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dtype.h"
#include "kernel-verify/trial/reference.h"
#include "kernels/common/instructions.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"
#include "schemas/layout/bundle_layout.h"

static const char *const set_names[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };
#define SETS (sizeof set_names / sizeof *set_names)

/* ---- buffers between inaccessible pages --------------------------------------------------------- */

struct guarded {
	uint8_t *map, *data;
	size_t mapped;
};

/* Return `bytes` that end at an inaccessible page, aligned to 64 bytes if `align`. */
static struct guarded guard(size_t bytes, bool align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), space = (bytes + 63 + page - 1) / page * page;
	struct guarded g = { .mapped = space + 2 * page };

	g.map = mmap(NULL, g.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g.map != MAP_FAILED);
	assert_int_equal(mprotect(g.map + page, space, PROT_READ | PROT_WRITE), 0);
	g.data = g.map + page + space - (align ? (bytes + 63) / 64 * 64 : bytes);
	return g;
}

static void release(struct guarded g)
{
	munmap(g.map, g.mapped);
}

/* ---- matrices ---------------------------------------------------------------------------------- */

struct matrix {
	struct xfp_matvec w;
	struct guarded index, code, pair, byte, row, tables, pointer, column, residual;
	double largest; /* largest stored weight, without outliers */
};

static uint16_t random_half(uint64_t *seed, float scale)
{
	return xfp_float_to_half(test_gaussian(seed) * scale);
}

static void fill_numbers(struct matrix *m, uint64_t *seed)
{
	size_t count = m->w.rows * m->w.cols;

	for (size_t i = 0; i < count; i++) {
		float value = test_gaussian(seed);
		uint16_t half = m->w.mode == XFP_MATVEC_F16 ? xfp_float_to_half(value) : xfp_float_to_bf16(value);

		if (m->w.mode == XFP_MATVEC_F32)
			memcpy(m->index.data + 4 * i, &value, 4);
		else if (m->w.mode == XFP_MATVEC_FP8)
			m->index.data[i] = xfp_float_to_e4m3(value * 60);
		else
			memcpy(m->index.data + 2 * i, &half, 2);
	}
	for (size_t r = 0; m->w.mode == XFP_MATVEC_FP8 && r < m->w.rows; r++) {
		float scale = 0.01f + 0.1f * (float)r;

		memcpy(m->code.data + 4 * r, &scale, 4);
	}
}

static void fill_library(struct matrix *m, uint64_t *seed)
{
	size_t all = m->w.rows * xfp_row_groups(m->w.cols, m->w.group), entries = (size_t)1 << m->w.k;
	unsigned codebooks = m->w.mode == XFP_MATVEC_V2A ? 32 : 8;
	uint16_t entry[32 * 64], ratio[32] = { 0 };
	double scale = 0;

	for (size_t i = 0; i < codebooks * entries; i++)
		entry[i] = random_half(seed, 1);
	for (size_t i = 1; i < 32; i++)
		ratio[i] = xfp_float_to_half((float)i / 31);
	xfp_matvec_tables(m->w.k, codebooks, entry, m->w.mode == XFP_MATVEC_V2A ? NULL : ratio, m->tables.data);
	m->largest = 0;
	for (size_t i = 0; i < codebooks * entries; i++)
		m->largest = fmax(m->largest, fabs(xfp_half_to_float(entry[i])));
	for (size_t g = 0; g < all; g++) {
		uint16_t pair[2] = { random_half(seed, 1), random_half(seed, 0.1f) };

		m->byte.data[g] = (uint8_t)(test_random(seed) % (m->w.mode == XFP_MATVEC_V2A ? 32 : 256));
		if (m->w.mode == XFP_MATVEC_V2A)
			memcpy(m->pair.data + 4 * g, pair, 4);
		scale = fmax(scale, fabsf(xfp_half_to_float(pair[0])));
	}
	if (m->w.mode == XFP_MATVEC_V2A)
		m->largest *= scale;
	if (m->w.mode == XFP_MATVEC_V2C) {
		for (size_t r = 0; r < m->w.rows; r++)
			m->row.data[r] = (uint8_t)(50 + test_random(seed) % 8);
		m->largest *= 0x1p14f * xfp_balance_down(50);
	}
}

static void fill_outliers(struct matrix *m, uint64_t *seed)
{
	uint32_t count = 0;

	for (size_t r = 0; r < m->w.rows; r++) {
		memcpy(m->pointer.data + 4 * r, &count, 4);
		for (size_t c = test_random(seed) % 40; c < m->w.cols; c += 1 + test_random(seed) % 40, count++) {
			uint16_t column = (uint16_t)c, residual = random_half(seed, 4);

			memcpy(m->column.data + 2 * count, &column, 2);
			memcpy(m->residual.data + 2 * count, &residual, 2);
		}
	}
	memcpy(m->pointer.data + 4 * m->w.rows, &count, 4);
	m->w.outliers = (struct xfp_outlier_rows){ .row = m->pointer.data,
						   .column = m->column.data,
						   .residual = m->residual.data,
						   .rows = m->w.rows,
						   .cols = m->w.cols,
						   .count = count };
}

static void make_matrix(struct matrix *m, enum xfp_matvec_mode mode, unsigned k, unsigned group, size_t rows,
			size_t cols, bool outliers, uint64_t *seed)
{
	bool library = mode == XFP_MATVEC_V2A || mode == XFP_MATVEC_V2C;
	size_t row_bytes = xfp_matvec_row_bytes(mode, k, cols),
	       groups = library ? rows * xfp_row_groups(cols, group) : 0;
	uint8_t *index = malloc(cols + 1);

	memset(m, 0, sizeof *m);
	m->index = guard(rows * row_bytes, false);
	m->code = guard(mode == XFP_MATVEC_V2 ? rows * 2 << k : rows * 4, false);
	m->pair = guard(groups * 4, false);
	m->byte = guard(groups, false);
	m->row = guard(rows, false);
	m->tables = guard(xfp_matvec_tables_bytes(k), true);
	m->pointer = guard(4 * rows + 4, false);
	m->column = guard(2 * rows * cols, false);
	m->residual = guard(2 * rows * cols, false);
	m->w = (struct xfp_matvec){ .mode = mode,
				    .k = k,
				    .group = group,
				    .rows = rows,
				    .cols = cols,
				    .unit = mode >= XFP_MATVEC_V2 ? 0x1p-9 : 1,
				    .index = m->index.data,
				    .code = m->code.data,
				    .pair = m->pair.data,
				    .byte = m->byte.data,
				    .row = m->row.data,
				    .tables = m->tables.data };
	xfp_matvec_set_row_layout(&m->w);
	m->largest = 1;
	if (mode < XFP_MATVEC_V2) {
		fill_numbers(m, seed);
	} else {
		for (size_t r = 0; r < rows; r++) {
			for (size_t c = 0; c < cols; c++)
				index[c] = (uint8_t)(test_random(seed) >> 20 & ((1u << k) - 1));
			xfp_lane_index_pack(k, index, cols, m->index.data + r * row_bytes);
		}
		for (size_t i = 0; mode == XFP_MATVEC_V2 && i < rows << k; i++) {
			uint16_t half = random_half(seed, 1000);

			memcpy(m->code.data + 2 * i, &half, 2);
			m->largest = fmax(m->largest, fabs(xfp_half_to_float(half)));
		}
		if (library)
			fill_library(m, seed);
	}
	if (outliers)
		fill_outliers(m, seed);
	free(index);
}

static void free_matrix(struct matrix *m)
{
	release(m->index);
	release(m->code);
	release(m->pair);
	release(m->byte);
	release(m->row);
	release(m->tables);
	release(m->pointer);
	release(m->column);
	release(m->residual);
}

/* ---- comparing --------------------------------------------------------------------------------- */

/* The error bound of a result. */
static double bound(const struct matrix *m, const char *set, const struct xfp_matvec_x *x, unsigned vector,
		    double magnitude)
{
	double floats = ((double)x->cols / 16 + 32) * 0x1p-24 * magnitude, largest = 0, sum = 0;

	if ((strcmp(set, "avx2") && strcmp(set, "vbmi") && strcmp(set, "dotprod")) || m->w.mode < XFP_MATVEC_V2)
		return floats;
	for (size_t c = 0; c < x->cols; c++) {
		largest = fmax(largest, fabsf(x->natural[vector * x->cols + c]));
		sum += fabsf(x->natural[vector * x->cols + c]);
	}
	if (strcmp(set, "vbmi") || m->w.mode == XFP_MATVEC_V2 || !xfp_tables_head(m->w.tables)->narrow_fit ||
	    x->tile > 2)
		sum = 0;
	return floats + m->largest * m->w.unit * ((double)x->cols * largest * 0x1p-14 + sum / 254);
}

static void compare(struct matrix *m, unsigned count, int dtype, bool balanced, uint64_t *seed)
{
	size_t cols = m->w.cols, rows = m->w.rows, size = dtype == XFP_F32 ? 4 : 2;
	unsigned k = m->w.mode >= XFP_MATVEC_V2 ? m->w.k : 0;
	struct guarded source = guard(count * cols * size, false), y = guard(count * rows * 4, false);
	struct guarded buffer = guard(xfp_matvec_x_bytes(k, cols, count), true);
	float *down = malloc(cols * sizeof *down + 1), *result = (float *)(void *)y.data;
	double *expected = malloc(rows * count * 2 * sizeof *expected);
	struct xfp_matvec_x x;

	for (size_t i = 0; i < count * cols; i++) {
		float value = test_gaussian(seed);
		uint16_t half = dtype == XFP_F16 ? xfp_float_to_half(value) : xfp_float_to_bf16(value);

		memcpy(source.data + i * size, dtype == XFP_F32 ? (void *)&value : (void *)&half, size);
	}
	for (size_t c = 0; c < cols; c++)
		down[c] = xfp_balance_down((uint8_t)(test_random(seed) % 9));
	xfp_matvec_x_init(&x, k, cols, count, dtype, source.data, cols, balanced ? down : NULL, buffer.data);
	for (unsigned v = 0; v < count; v++)
		for (size_t r = 0; r < rows; r++)
			assert_true(xfp_matvec_reference(&m->w, r, x.natural + v * cols, expected + 2 * (v * rows + r),
							 expected + 2 * (v * rows + r) + 1));
	for (size_t s = 0; s < SETS; s++) {
		size_t cut = rows / 3;

		if (!xfp_instruction_set_use(set_names[s]))
			continue;
		/* Vectors that were prepared for another set are multiplied as f32. */
		if (rows % 4)
			xfp_matvec_x_init(&x, k, cols, count, dtype, source.data, cols, balanced ? down : NULL,
					  buffer.data);
		memset(y.data, 0xff, count * rows * 4);
		assert_true(xfp_matvec_rows(&m->w, &x, 0, cut, false, result, rows));
		assert_true(xfp_matvec_rows(&m->w, &x, cut, rows - cut, false, result + cut, rows));
		for (int twice = 0; twice < 2; twice++) {
			for (size_t i = 0; i < count * rows; i++) {
				double off = fabs(result[i] - (1 + twice) * expected[2 * i]);
				double max = bound(m, set_names[s], &x, (unsigned)(i / rows), expected[2 * i + 1]);

				if (!(off <= (1 + twice) * max + 1e-30))
					fail_msg("%s mode %d k %u group %u %zux%zu, %u vectors: row %zu of vector "
						 "%zu is %g, not %g: %g off, not %g",
						 set_names[s], (int)m->w.mode, m->w.k, 1u << m->w.group, rows, cols,
						 count, i % rows, i / rows, result[i], (1 + twice) * expected[2 * i],
						 off, max);
			}
			if (!twice)
				assert_true(xfp_matvec_rows(&m->w, &x, 0, rows, true, result, rows));
		}
	}
	release(source);
	release(y);
	release(buffer);
	free(down);
	free(expected);
}

static const size_t widths[] = { 1,   15,  16,  17,  31,  32,  33,  63,  64,   96,   100,  128,  160,  250,  256,  257,
				 320, 384, 511, 512, 513, 640, 768, 800, 1000, 1024, 1441, 2048, 2560, 4608, 13000 };
#define WIDTHS (sizeof widths / sizeof *widths)

static void every_width(enum xfp_matvec_mode mode, unsigned k, unsigned group, uint64_t seed)
{
	for (size_t i = 0; i < WIDTHS; i++) {
		unsigned count = 1 + (unsigned)(i % XFP_MAX_BATCH);
		struct matrix m;

		make_matrix(&m, mode, k, group, 1 + i % 6, widths[i], i % 2, &seed);
		compare(&m, 1, i % 3 == 0 ? XFP_F32 : i % 3 == 1 ? XFP_F16 : XFP_BF16, i % 2, &seed);
		compare(&m, count, XFP_F32, false, &seed);
		free_matrix(&m);
	}
}

/* Vectors of one sign near `size`: their sums of products are as large as they can be. */
static void compare_large(struct matrix *m, unsigned count, float size, uint64_t *seed)
{
	struct guarded buffer = guard(xfp_matvec_x_bytes(m->w.k, m->w.cols, count), true);
	float *source = calloc(count * m->w.cols, sizeof *source), *y = calloc(count * m->w.rows, sizeof *y);

	for (size_t i = 0; i < count * m->w.cols; i++)
		source[i] = size * (1 - (float)(test_random(seed) % 64) / 256);
	for (size_t s = 0; s < SETS; s++) {
		struct xfp_matvec_x x;

		if (!xfp_instruction_set_use(set_names[s]))
			continue;
		xfp_matvec_x_init(&x, m->w.k, m->w.cols, count, XFP_F32, source, m->w.cols, NULL, buffer.data);
		assert_true(xfp_matvec_rows(&m->w, &x, 0, m->w.rows, false, y, m->w.rows));
		for (size_t i = 0; i < count * m->w.rows; i++) {
			unsigned vector = (unsigned)(i / m->w.rows);
			double sum, magnitude;

			assert_true(xfp_matvec_reference(&m->w, i % m->w.rows, source + vector * m->w.cols, &sum,
							 &magnitude));
			if (!(fabs(y[i] - sum) <= bound(m, set_names[s], &x, vector, magnitude)))
				fail_msg("%s mode %d k %u, %u vectors near %g: %g, not %g", set_names[s],
					 (int)m->w.mode, m->w.k, count, size, y[i], sum);
		}
	}
	release(buffer);
	free(source);
	free(y);
}

static void large_activations(void **state)
{
	const uint16_t pair[2] = { xfp_float_to_half(16384), 0 };
	uint64_t seed = 900;

	(void)state;
	for (enum xfp_matvec_mode mode = XFP_MATVEC_V2; mode <= XFP_MATVEC_V2C; mode++)
		for (unsigned k = 2; k <= 6; k++) {
			struct matrix m;

			make_matrix(&m, mode, k, mode == XFP_MATVEC_V2C ? 5 : 7, 3, 1024, false, &seed);
			for (size_t g = 0; mode == XFP_MATVEC_V2A && g < m.w.rows * m.w.row_groups; g++)
				memcpy(m.pair.data + 4 * g, pair, 4);
			m.largest *= mode == XFP_MATVEC_V2A ? 16384 : 1;
			for (int power = 60; power <= 100; power += 3)
				compare_large(&m, power % 4 ? 1u << power % 4 : 1, ldexpf(1, power), &seed);
			free_matrix(&m);
		}
}

static void numbers(void **state)
{
	(void)state;
	for (unsigned mode = XFP_MATVEC_F32; mode <= XFP_MATVEC_FP8; mode++)
		every_width(mode, 0, 0, 100 + mode);
}

static void v2(void **state)
{
	(void)state;
	for (unsigned k = 2; k <= 6; k++)
		every_width(XFP_MATVEC_V2, k, 0, 200 + k);
}

static void v2a(void **state)
{
	(void)state;
	for (unsigned k = 2; k <= 6; k++)
		for (unsigned group = 4; group <= 10; group += 3)
			every_width(XFP_MATVEC_V2A, k, group, 300 + 10 * k + group);
}

static void v2c(void **state)
{
	(void)state;
	for (unsigned k = 2; k <= 6; k++)
		for (unsigned group = 4; group <= 6; group++)
			every_width(XFP_MATVEC_V2C, k, group, 400 + 10 * k + group);
}

/* Values that bytes cannot represent. */
static void entries_and_activations_that_are_not_finite(void **state)
{
	uint64_t seed = 9;
	struct matrix m;
	struct guarded buffer;
	struct xfp_matvec_x x;
	float *source = calloc(512, sizeof *source), y[4];
	uint16_t infinite = 0x7c00;

	(void)state;
	make_matrix(&m, XFP_MATVEC_V2, 3, 0, 4, 512, false, &seed);
	memcpy(m.code.data + 2 * 8, &infinite, 2); /* of row 1 */
	for (size_t c = 0; c < 512; c++)
		source[c] = 1;
	buffer = guard(xfp_matvec_x_bytes(3, 512, 1), true);
	for (size_t s = 0; s < SETS; s++) {
		if (!xfp_instruction_set_use(set_names[s]))
			continue;
		source[7] = 1;
		xfp_matvec_x_init(&x, 3, 512, 1, XFP_F32, source, 512, NULL, buffer.data);
		assert_true(xfp_matvec_rows(&m.w, &x, 0, 4, false, y, 4));
		assert_true(isfinite(y[0]) && isinf(y[1]) && isfinite(y[2]) && isfinite(y[3]));
		source[7] = NAN;
		xfp_matvec_x_init(&x, 3, 512, 1, XFP_F32, source, 512, NULL, buffer.data);
		assert_true(xfp_matvec_rows(&m.w, &x, 0, 4, false, y, 4));
		for (int r = 0; r < 4; r++)
			assert_true(isnan(y[r]));
	}
	release(buffer);
	free_matrix(&m);
	free(source);
}

/* A library with a number that is not finite has no tables of bytes. The row that uses the number is not finite; others
 * are correct. */
static void a_library_that_is_not_finite(enum xfp_matvec_mode mode, unsigned group, unsigned count, bool of_ratios,
					 uint16_t odd)
{
	enum { K = 3, ENTRIES = 8, ROWS = 3, COLS = 512 };
	uint16_t entry[32 * ENTRIES], ratio[32];
	uint64_t seed = 21;
	size_t groups = xfp_row_groups(COLS, group);
	struct matrix m;
	struct guarded buffer = guard(xfp_matvec_x_bytes(K, COLS, count), true);
	float *source = malloc(count * COLS * sizeof *source), y[8 * ROWS];
	struct xfp_matvec_x x;

	make_matrix(&m, mode, K, group, ROWS, COLS, false, &seed);
	/* Codebook 0, or ratio 0, is used by row 1 alone: its bytes are 0, and both numbers of other bytes are not. */
	for (unsigned i = 0; i < 32 * ENTRIES; i++)
		entry[i] = i < ENTRIES && !of_ratios ? odd : random_half(&seed, 1);
	for (unsigned i = 0; i < 32; i++)
		ratio[i] = xfp_float_to_half((float)(i + 1) / 32);
	if (of_ratios)
		ratio[0] = odd;
	for (size_t g = 0; g < ROWS * groups; g++)
		m.byte.data[g] = g / groups == 1 ? 0 : (uint8_t)((mode == XFP_MATVEC_V2A ? 1 : 33) + g % 31);
	xfp_matvec_tables(K, mode == XFP_MATVEC_V2A ? 32 : 8, entry, mode == XFP_MATVEC_V2A ? NULL : ratio,
			  m.tables.data);
	for (size_t i = 0; i < count * COLS; i++)
		source[i] = test_gaussian(&seed);
	for (size_t s = 0; s < SETS; s++) {
		if (!xfp_instruction_set_use(set_names[s]))
			continue;
		xfp_matvec_x_init(&x, K, COLS, count, XFP_F32, source, COLS, NULL, buffer.data);
		assert_true(xfp_matvec_rows(&m.w, &x, 0, ROWS, false, y, ROWS));
		for (size_t i = 0; i < count * ROWS; i++) {
			double expected, size;

			xfp_matvec_reference(&m.w, i % ROWS, source + i / ROWS * COLS, &expected, &size);
			assert_int_equal(isfinite(expected), i % ROWS != 1);
			if (isfinite(expected) ? !(fabs(y[i] - expected) <= 1e-3 * size) : isfinite(y[i]))
				fail_msg("%s mode %d, %u vectors: row %zu is %g, not %g", set_names[s], (int)mode,
					 count, i % ROWS, (double)y[i], expected);
		}
	}
	release(buffer);
	free_matrix(&m);
	free(source);
}

static void libraries_that_are_not_finite(void **state)
{
	static const uint16_t odd[] = { 0x7c00, 0xfc00, 0x7e00 };

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		unsigned count = i % 3 * 3 + 1;

		for (unsigned group = 4; group <= 7; group++)
			a_library_that_is_not_finite(XFP_MATVEC_V2A, group, count, false, odd[i / 3]);
		for (unsigned group = 4; group <= 6; group++) {
			a_library_that_is_not_finite(XFP_MATVEC_V2C, group, count, false, odd[i / 3]);
			a_library_that_is_not_finite(XFP_MATVEC_V2C, group, count, true, odd[i / 3]);
		}
	}
}

/* The bound for bytes is the worst case; typical errors are far smaller, and smaller than those of bf16 activations. */
static void errors_are_far_below_those_of_bf16(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		struct guarded buffer = guard(xfp_matvec_x_bytes(k, 4096, 1), true);
		float *source = malloc(4096 * sizeof *source), y[64];
		struct xfp_matvec_x x;
		struct matrix m;

		make_matrix(&m, XFP_MATVEC_V2, k, 0, 64, 4096, false, &seed);
		for (size_t c = 0; c < 4096; c++)
			source[c] = test_gaussian(&seed);
		for (size_t s = 0; s < SETS; s++) {
			double error = 0, square = 0, expected, magnitude;

			if (!xfp_instruction_set_use(set_names[s]))
				continue;
			xfp_matvec_x_init(&x, k, 4096, 1, XFP_F32, source, 4096, NULL, buffer.data);
			assert_true(xfp_matvec_rows(&m.w, &x, 0, 64, false, y, 64));
			for (size_t r = 0; r < 64; r++) {
				assert_true(xfp_matvec_reference(&m.w, r, source, &expected, &magnitude));
				error += (y[r] - expected) * (y[r] - expected);
				square += expected * expected;
			}
			assert_true(sqrt(error / square) < 1e-4);
		}
		release(buffer);
		free_matrix(&m);
		free(source);
	}
}

static void outliers_outside_the_matrix(void **state)
{
	uint64_t seed = 10;
	struct matrix m;
	struct guarded buffer = guard(xfp_matvec_x_bytes(4, 100, 1), true);
	struct xfp_matvec_x x;
	float source[100] = { 0 }, y[3];
	uint16_t column = 100;

	(void)state;
	make_matrix(&m, XFP_MATVEC_V2, 4, 0, 3, 100, true, &seed);
	xfp_matvec_x_init(&x, 4, 100, 1, XFP_F32, source, 100, NULL, buffer.data);
	assert_true(xfp_matvec_rows(&m.w, &x, 0, 3, false, y, 3));
	memcpy(m.column.data, &column, 2);
	assert_false(xfp_matvec_rows(&m.w, &x, 0, 3, false, y, 3));
	assert_true(xfp_matvec_rows(&m.w, &x, 2, 1, false, y, 3));
	m.w.outliers.count--;
	assert_false(xfp_matvec_rows(&m.w, &x, 2, 1, false, y, 3));
	free_matrix(&m);
	release(buffer);
}

/* ---- the layout -------------------------------------------------------------------------------- */

static void indices_survive_a_round_trip(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (unsigned k = 2; k <= 6; k++)
		for (size_t cols = 1; cols < 1100; cols += 1 + cols % 7) {
			size_t bytes = xfp_index_row_bytes(cols, k);
			struct guarded packed = guard(bytes, false), index = guard(cols, false),
				       back = guard(cols, false);

			assert_int_equal(bytes, xfp_matvec_row_bytes(XFP_MATVEC_V2, k, cols));
			for (size_t c = 0; c < cols; c++)
				index.data[c] = (uint8_t)(test_random(&seed) >> 30 & ((1u << k) - 1));
			xfp_lane_index_pack(k, index.data, cols, packed.data);
			xfp_lane_index_unpack(k, packed.data, cols, back.data);
			assert_memory_equal(index.data, back.data, cols);
			release(packed);
			release(index);
			release(back);
		}
}

PROGRAM("test_matvec")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_survive_a_round_trip),
		cmocka_unit_test(numbers),
		cmocka_unit_test(v2),
		cmocka_unit_test(v2a),
		cmocka_unit_test(v2c),
		cmocka_unit_test(large_activations),
		cmocka_unit_test(entries_and_activations_that_are_not_finite),
		cmocka_unit_test(libraries_that_are_not_finite),
		cmocka_unit_test(errors_are_far_below_those_of_bf16),
		cmocka_unit_test(outliers_outside_the_matrix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
