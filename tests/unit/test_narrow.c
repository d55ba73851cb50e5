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

/* A matrix in v2c, groups of 32; or in v2a, groups of 128 and only whole chunks. */
struct matrix {
	struct xfp_matvec w;
	uint8_t index[ROWS * 1024], byte[ROWS * GROUPS], row[ROWS];
	uint16_t pair[ROWS * GROUPS * 2];
	float largest;
};

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
	m->w = (struct xfp_matvec){ .mode = mode,
				    .k = k,
				    .group = compact ? 5 : 7,
				    .rows = ROWS,
				    .cols = compact ? COLS : 1024,
				    .unit = 1,
				    .index = m->index,
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

/* Check the products of one and two vectors by every instruction set. The second vector is the first, reversed. Results
 * are within the bound with 8-bit entries; within that of f32 if `exact`. */
static void check(struct matrix *m, const float *x, bool exact)
{
	static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon" };
	static _Alignas(64) uint8_t buffer[1 << 16];
	float both[2 * COLS], y[2 * ROWS], largest = 0;
	size_t cols = m->w.cols;
	double sum = 0;

	for (size_t c = 0; c < cols; c++) {
		both[c] = x[c];
		both[2 * cols - 1 - c] = x[c];
		largest = fmaxf(largest, fabsf(x[c]));
		sum += fabs((double)x[c]);
	}
	for (unsigned i = 0; i < 2 * sizeof sets / sizeof *sets; i++) {
		unsigned count = 1 + i % 2;
		struct xfp_matvec_x prepared;

		if (!xfp_instruction_set_use(sets[i / 2]))
			continue;
		assert_true(xfp_matvec_x_bytes(m->w.k, cols, count) <= sizeof buffer);
		xfp_matvec_x_init(&prepared, m->w.k, cols, count, XFP_F32, both, cols, NULL, buffer);
		assert_true(xfp_matvec_rows(&m->w, &prepared, 0, ROWS, false, y, ROWS));
		for (size_t j = 0; j < (size_t)count * ROWS; j++) {
			double expected, magnitude, max;

			assert_true(
				xfp_matvec_reference(&m->w, j % ROWS, both + j / ROWS * cols, &expected, &magnitude));
			max = ((double)cols / 16 + 32) * 0x1p-24 * magnitude;
			if (!exact)
				max += m->largest * ((double)cols * largest * 0x1p-14 + sum / 254);
			if (isfinite(expected) ? !(fabs(y[j] - expected) <= max) : isfinite(y[j]))
				fail_msg("%s mode %d k %u, %u vectors: %g, not %g: more than %g off", sets[i / 2],
					 (int)m->w.mode, m->w.k, count, (double)y[j], expected, max);
		}
	}
}

static void check_modes(unsigned k, const float *entry, const float *x, bool exact)
{
	struct matrix m;

	for (enum xfp_matvec_mode mode = XFP_MATVEC_V2A; mode <= XFP_MATVEC_V2C; mode++) {
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
	for (unsigned k = 2; k <= 4; k++)
		for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
			spread(k, ends[i][0], ends[i][1], entry);
			check_modes(k, entry, x, i == 0);
		}
	/* infinite entries: rows that use them are not finite */
	spread(4, -1, 1, entry);
	entry[3] = INFINITY;
	check_modes(4, entry, x, true);
}

static void activations_that_integers_cannot_represent(void **state)
{
	static const float odd[] = { INFINITY, -INFINITY, NAN, 0x1p121f, -0x1p121f, 0x1p-110f };
	float entry[CODEBOOKS << 6], x[COLS];

	(void)state;
	for (unsigned k = 2; k <= 4; k++) {
		spread(k, -1, 1, entry);
		for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
			random_vector(x);
			x[300] = odd[i];
			for (size_t c = 0; odd[i] == 0x1p-110f && c < 512; c++)
				x[c] = odd[i];
			check_modes(k, entry, x, true);
		}
		/* One large column is within the bound of its block. */
		random_vector(x);
		x[300] = 1e6f;
		check_modes(k, entry, x, false);
	}
}

PROGRAM("test_narrow")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_library_decides),
		cmocka_unit_test(libraries_of_zeros_and_of_one_sign),
		cmocka_unit_test(activations_that_integers_cannot_represent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
