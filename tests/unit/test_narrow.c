/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 8-bit entries of libraries: which libraries have them, and products with odd libraries and activations.
 */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "kernel-verify/trial/reference.h"
#include "kernels/common/instructions.h"
#include "kernels/common/number.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"

#define CODEBOOKS 4u
#define COLS 1100 /* whole chunks and a part of one */
#define ROWS 5
#define GROUPS ((COLS + 31) / 32)

/* A matrix in v2; in v2c, groups of 32; or in v2a, groups of 128 and only whole chunks. */
struct matrix {
	struct xfp_matvec w;
	uint16_t code[ROWS << 6];
	uint8_t index[ROWS * 1024], byte[ROWS * GROUPS], row[ROWS];
	uint16_t pair[ROWS * GROUPS * 2];
	float largest;
};

static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };
#define SETS (sizeof sets / sizeof *sets)

static void *tables(void)
{
	static _Alignas(64) uint8_t buffer[1 << 18];

	return buffer;
}

static bool make_tables(enum xfp_matvec_mode mode, unsigned k, const float *entry)
{
	uint16_t half[CODEBOOKS << 6], ratio[256 / CODEBOOKS];

	assert_true(xfp_matvec_tables_bytes(k) <= 1 << 18);
	for (size_t i = 0; i < CODEBOOKS << k; i++)
		half[i] = xfp_float_to_half(entry[i]);
	for (size_t i = 0; i < 256 / CODEBOOKS; i++)
		ratio[i] = xfp_float_to_half(1 - (float)i / 128);
	xfp_matvec_tables(k, CODEBOOKS, half, mode == XFP_MATVEC_V2C ? ratio : NULL, tables());
	return xfp_tables_head(tables())->narrow_fit;
}

static void make_matrix(struct matrix *m, enum xfp_matvec_mode mode, unsigned k, const float *entry)
{
	bool compact = mode == XFP_MATVEC_V2C;
	uint64_t seed = 5;

	make_tables(mode, k, entry);
	for (size_t i = 0; i < (size_t)ROWS << k; i++)
		m->code[i] = xfp_float_to_half(entry[i % (CODEBOOKS << k)]);
	m->w = (struct xfp_matvec){ .mode = mode,
				    .k = k,
				    .group = compact ? 5 : 7,
				    .rows = ROWS,
				    .cols = mode == XFP_MATVEC_V2A ? 1024 : COLS,
				    .unit = 1,
				    .index = m->index,
				    .code = m->code,
				    .pair = m->pair,
				    .byte = m->byte,
				    .row = m->row,
				    .tables = tables() };
	xfp_matvec_set_row_layout(&m->w);
	m->largest = 0;
	for (size_t i = 0; i < CODEBOOKS << k; i++)
		m->largest = fmaxf(m->largest, fabsf(entry[i]));
	for (size_t i = 0; i < sizeof m->index; i++)
		m->index[i] = (uint8_t)(test_random(&seed) >> 20);
	for (size_t i = 0; i < sizeof m->byte; i++)
		m->byte[i] = (uint8_t)((test_random(&seed) >> 20) % (compact ? 256 : CODEBOOKS));
	for (size_t i = 0; i < sizeof m->pair / 4; i++) {
		m->pair[2 * i] = xfp_float_to_half(1);
		m->pair[2 * i + 1] = xfp_float_to_half(.25f);
	}
	memset(m->row, 14 * 4, sizeof m->row); /* 1 */
}

/* Check the products of one to eight vectors by every instruction set. Every second vector is the first, reversed.
 * Results are within the bound with 8-bit entries; within that of f32 if `exact`. */
static void check(struct matrix *m, const float *x, bool exact)
{
	static _Alignas(64) uint8_t buffer[1 << 18];
	float all[XFP_MAX_BATCH * COLS], y[XFP_MAX_BATCH * ROWS], largest = 0;
	size_t cols = m->w.cols;
	double sum = 0;

	for (size_t c = 0; c < cols; c++) {
		for (size_t v = 0; v < XFP_MAX_BATCH; v++)
			all[v * cols + (v % 2 ? cols - 1 - c : c)] = x[c];
		largest = fmaxf(largest, fabsf(x[c]));
		sum += fabs((double)x[c]);
	}
	for (unsigned i = 0; i < 4 * SETS; i++) {
		unsigned count = 1u << i % 4;
		struct xfp_matvec_x prepared;

		if (!xfp_instruction_set_use(sets[i / 4]))
			continue;
		assert_true(xfp_matvec_x_bytes(m->w.k, cols, count) <= sizeof buffer);
		xfp_matvec_x_init(&prepared, m->w.k, cols, count, XFP_F32, all, cols, NULL, buffer);
		assert_true(xfp_matvec_rows(&m->w, &prepared, 0, ROWS, false, y, ROWS));
		for (size_t j = 0; j < (size_t)count * ROWS; j++) {
			double expected, magnitude, max;

			assert_true(
				xfp_matvec_reference(&m->w, j % ROWS, all + j / ROWS * cols, &expected, &magnitude));
			max = ((double)cols / 16 + 32) * 0x1p-24 * magnitude;
			if (!exact)
				max += m->largest * ((double)cols * largest * 0x1p-14 + sum / 254);
			if (isfinite(expected) ? !(fabs(y[j] - expected) <= max) : isfinite(y[j]))
				fail_msg("%s mode %d k %u, %u vectors: %g, not %g: more than %g off", sets[i / 4],
					 (int)m->w.mode, m->w.k, count, (double)y[j], expected, max);
		}
	}
}

static void check_modes(unsigned k, const float *entry, const float *x, bool exact)
{
	struct matrix m;

	for (enum xfp_matvec_mode mode = XFP_MATVEC_V2; mode <= XFP_MATVEC_V2C; mode++) {
		make_matrix(&m, mode, k, entry);
		check(&m, x, exact);
	}
}

/* Entries of all codebooks, evenly spaced. */
static void spread(unsigned k, float first, float last, float *entry)
{
	for (unsigned i = 0; i < CODEBOOKS << k; i++)
		entry[i] = first + (last - first) * (float)(i & ((1u << k) - 1)) / (float)((1u << k) - 1);
}

static void random_vector(float *x)
{
	uint64_t seed = 3;

	for (size_t c = 0; c < COLS; c++)
		x[c] = test_gaussian(&seed);
}

static void the_library_decides(void **state)
{
	float entry[CODEBOOKS << 6];

	(void)state;
	for (enum xfp_matvec_mode mode = XFP_MATVEC_V2A; mode <= XFP_MATVEC_V2C; mode++)
		for (unsigned k = 2; k <= 6; k++) {
			spread(k, -1, 1, entry);
			assert_int_equal(make_tables(mode, k, entry), k <= 4);
			entry[1] = 40; /* the others are within few steps */
			assert_false(make_tables(mode, k, entry));
			entry[1] = INFINITY;
			assert_false(make_tables(mode, k, entry));
			entry[1] = NAN;
			assert_false(make_tables(mode, k, entry));
			memset(entry, 0, sizeof entry);
			assert_int_equal(make_tables(mode, k, entry), k <= 4);
		}
}

static void libraries_of_zeros_and_of_one_sign(void **state)
{
	static const float ends[][2] = { { 0, 0 }, { .2f, 1 }, { -1, -.2f }, { -1, 0 }, { 1, 1 }, { -65504, 65504 } };
	float entry[CODEBOOKS << 6], x[COLS];

	(void)state;
	random_vector(x);
	for (unsigned k = 2; k <= 6; k++)
		for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
			spread(k, ends[i][0], ends[i][1], entry);
			check_modes(k, entry, x, i == 0);
		}
	/* infinite entries: rows that use them are not finite */
	for (unsigned k = 2; k <= 6; k++) {
		spread(k, -1, 1, entry);
		entry[3] = INFINITY;
		check_modes(k, entry, x, false);
	}
}

static void activations_that_integers_cannot_represent(void **state)
{
	static const float odd[] = { INFINITY, -INFINITY, NAN, 0x1p96f, 0x1p107f, 0x1p119f, 0x1p121f, -0x1p121f };
	float entry[CODEBOOKS << 6], x[COLS];

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		spread(k, -1, 1, entry);
		for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
			random_vector(x);
			x[300] = odd[i];
			check_modes(k, entry, x, true);
		}
		/* One large column is within the bound of its block. */
		random_vector(x);
		x[300] = 1e6f;
		check_modes(k, entry, x, false);
		x[300] = 0x1.fffffep95f;
		check_modes(k, entry, x, false);
	}
}

/* Blocks of tiny activations become integers, too, so that other vectors are not multiplied in f32 because of them. */
static void tiny_activations(void **state)
{
	static _Alignas(64) uint8_t buffer[1 << 18];
	static const float tiny[] = { 0, 0x1p-149f, 0x1p-127f, 0x1p-110f, 0x1p-100f };
	float entry[CODEBOOKS << 6], x[8 * COLS], y[8 * ROWS], expected[8 * ROWS];
	struct xfp_matvec_x prepared;
	struct matrix m;

	(void)state;
	spread(3, -1, 1, entry);
	make_matrix(&m, XFP_MATVEC_V2C, 3, entry);
	for (unsigned i = 0; i < SETS * 2 * sizeof tiny / sizeof *tiny; i++) {
		unsigned count = i / SETS % 2 ? 8 : 2;
		float number = tiny[i / SETS / 2];

		if (!xfp_instruction_set_use(sets[i % SETS]))
			continue;
		for (size_t v = 0; v < count; v++)
			random_vector(x + v * COLS);
		for (unsigned with = 0; with < 2; with++) {
			for (size_t c = 0; with && c < COLS; c++)
				x[c] = number;
			xfp_matvec_x_init(&prepared, 3, COLS, count, XFP_F32, x, COLS, NULL, buffer);
			assert_int_equal(prepared.bytes_fit, prepared.set->integers != NULL);
			assert_true(xfp_matvec_rows(&m.w, &prepared, 0, ROWS, false, with ? y : expected, ROWS));
		}
		assert_memory_equal(y + ROWS, expected + ROWS, (count - 1) * ROWS * sizeof *y);
		for (size_t r = 0; r < ROWS; r++)
			assert_true(fabsf(y[r]) <= COLS * fmaxf(number, 0x1p-100f));
	}
}

PROGRAM("test_narrow")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_decides),
		cmocka_unit_test(libraries_of_zeros_and_of_one_sign),
		cmocka_unit_test(activations_that_integers_cannot_represent),
		cmocka_unit_test(tiny_activations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
