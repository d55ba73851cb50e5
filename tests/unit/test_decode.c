/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/outlier_rows.h"

#define MAX_COLS 2200

static const size_t lengths[] = { 1,  15,  16,   17,   31,   32,   33,   47,   63,
				  64, 100, 1000, 1023, 1024, 1025, 2048, 2100, MAX_COLS };
#define LENGTHS (sizeof lengths / sizeof *lengths)

static void random_index(uint64_t *seed, unsigned k, uint8_t *index)
{
	for (size_t c = 0; c < MAX_COLS; c++)
		index[c] = (uint8_t)(test_random(seed) >> 30 & ((1u << k) - 1));
}

/* A library and a row of groups, all random, fp16 of any size among them. */
struct subject {
	uint8_t index[MAX_COLS], packed[MAX_COLS * 6 / 8 + 32];
	uint16_t code[256 * 64 + 64], pair[2 * MAX_COLS / 16 + 4];
	uint8_t number[MAX_COLS / 16 + 2];
	float value[256 * 64 + 64], x[MAX_COLS + 1];
};

static uint16_t random_half(uint64_t *seed)
{
	uint16_t half = (uint16_t)(test_random(seed) >> 13);

	return (half & 0x7c00) == 0x7c00 ? half & 0x83ff : half; /* infinities and NaN: subnormal instead */
}

static void fill(struct subject *s, uint64_t *seed, unsigned k, unsigned codebooks)
{
	size_t halves = ((size_t)codebooks << k) + 64;

	for (size_t i = 0; i < halves; i++)
		s->code[i] = random_half(seed);
	xfp_decode_halves(s->code, halves, s->value);
	for (size_t i = 0; i < halves; i++)
		assert_true(s->value[i] == xfp_half_to_float(s->code[i]));
	for (size_t i = 0; i < sizeof s->pair / sizeof *s->pair; i++)
		s->pair[i] = random_half(seed);
	for (size_t i = 0; i < sizeof s->number; i++)
		s->number[i] = (uint8_t)(test_random(seed) >> 9);
	random_index(seed, k, s->index);
}

static void v2_looks_entries_up(void **state)
{
	struct subject *s = calloc(1, sizeof *s);
	const uint16_t residual[2] = { 0x3c00, 0xb800 };
	uint64_t seed = 9;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		uint16_t codebook[64];

		for (unsigned j = 0; j < 64; j++)
			codebook[j] = xfp_float_to_half((float)j * 3 - 17);
		random_index(&seed, k, s->index);
		for (size_t l = 0; l < LENGTHS; l++) {
			size_t cols = lengths[l];
			uint16_t column[2] = { 0, (uint16_t)(cols - 1) };
			struct xfp_outlier_rows outliers = { .column = (uint8_t *)column,
							     .residual = (uint8_t *)residual,
							     .cols = cols };
			struct xfp_matvec w = { .mode = XFP_MATVEC_V2,
						.k = k,
						.rows = 1,
						.cols = cols,
						.unit = 1,
						.index = s->packed,
						.code = codebook };
			struct xfp_outlier_row all = { 0, cols > 1 ? 2 : 1 };

			xfp_lane_index_pack(k, s->index, cols, s->packed);
			s->x[cols] = -1;
			xfp_matvec_set_row_layout(&w);
			xfp_matvec_decode(&w, 0, s->x);
			assert_true(s->x[cols] == -1);
			for (size_t c = 0; c < cols; c++)
				assert_true(s->x[c] == (float)s->index[c] * 3 - 17);
			assert_true(xfp_outlier_rows_add(&outliers, &all, s->x, 0, cols));
			assert_true(s->x[0] == (float)s->index[0] * 3 - 16);
			assert_true(cols < 2 || s->x[cols - 1] == (float)s->index[cols - 1] * 3 - 17.5f);
		}
	}
	free(s);
}

/* Library times scale plus midpoint, rounded once. */
static void v2a_rounds_once(void **state)
{
	struct subject *s = calloc(1, sizeof *s);
	uint64_t seed = 11;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		for (unsigned group = 4; group <= 10; group++) {
			unsigned codebooks = 1u << (k + group) % 9;
			struct xfp_library library = { k, group, codebooks, s->value, NULL };

			fill(s, &seed, k, codebooks);
			for (size_t i = 0; i < sizeof s->number; i++)
				s->number[i] &= (uint8_t)(codebooks - 1);
			for (size_t l = 0; l < LENGTHS; l++) {
				size_t cols = lengths[l];

				xfp_lane_index_pack(k, s->index, cols, s->packed);
				s->x[cols] = -1;
				assert_true(xfp_decode_v2a(&library, s->packed, s->pair, s->number, cols, s->x));
				assert_true(s->x[cols] == -1);
				for (size_t c = 0; c < cols; c++) {
					size_t g = c >> group;
					float entry = s->value[((size_t)s->number[g] << k) + s->index[c]];
					float scale = xfp_half_to_float(s->pair[2 * g]);
					float midpoint = xfp_half_to_float(s->pair[2 * g + 1]);
					double sum = (double)entry * scale + midpoint;

					assert_true(s->x[c] == fmaf(entry, scale, midpoint));
					assert_true(fabs(s->x[c] - sum) <= 0x1p-24 * fabs(sum));
				}
			}
		}
	}
	free(s);
}

static void v2c_rounds_once(void **state)
{
	struct subject *s = calloc(1, sizeof *s);
	uint64_t seed = 13;

	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		for (unsigned group = 4; group <= 6; group++) {
			for (unsigned codebooks = 4; codebooks <= 16; codebooks *= 2) {
				const float *ratio = s->value + ((size_t)codebooks << k);
				struct xfp_library library = { k, group, codebooks, s->value, ratio };

				fill(s, &seed, k, codebooks);
				for (size_t l = 0; l < LENGTHS; l++) {
					size_t cols = lengths[l];
					uint8_t row = (uint8_t)(l == 1 ? 255 : test_random(&seed) >> 8);

					xfp_lane_index_pack(k, s->index, cols, s->packed);
					s->x[cols] = -1;
					xfp_decode_v2c(&library, s->packed, s->number, row, cols, s->x);
					assert_true(s->x[cols] == -1);
					for (size_t c = 0; c < cols; c++) {
						unsigned b = s->number[c >> group], ratios = 256 / codebooks;
						double x = s->value[(b / ratios << k) + s->index[c]];

						/* 11 + 11 + 24 bits: exact in double */
						x = x * ratio[b % ratios] * (16384.0 * xfp_balance_down(row));
						assert_true(s->x[c] == (float)x);
					}
				}
			}
		}
	}
	free(s);
}

static void a_codebook_that_is_not_there_is_refused(void **state)
{
	struct subject *s = calloc(1, sizeof *s);
	struct xfp_library library = { 4, 4, 32, s->value, NULL };

	(void)state;
	for (size_t at = 0; at < 7; at++) {
		s->number[at] = 31;
		assert_true(xfp_decode_v2a(&library, s->packed, s->pair, s->number, 100, s->x));
		s->number[at] = 32;
		assert_false(xfp_decode_v2a(&library, s->packed, s->pair, s->number, 100, s->x));
		s->number[at] = 0;
	}
	s->number[7] = 32; /* a group without a codebook */
	assert_true(xfp_decode_v2a(&library, s->packed, s->pair, s->number, 100, s->x));
	free(s);
}

/* Numbers that are not finite stay so, so that verify finds them. */
static void infinities_come_through(void **state)
{
	struct subject *s = calloc(1, sizeof *s);
	struct xfp_library library = { 2, 4, 4, s->value, s->value + 16 };

	(void)state;
	s->value[0] = xfp_half_to_float(0x7c00);
	s->value[16] = 1;
	xfp_decode_v2c(&library, s->packed, s->number, 0, 16, s->x);
	assert_true(isinf(s->x[3]));
	s->value[16] = 0;
	xfp_decode_v2c(&library, s->packed, s->number, 0, 16, s->x);
	assert_true(isnan(s->x[3]));
	s->value[0] = 1;
	s->pair[1] = 0x7e00;
	assert_true(xfp_decode_v2a(&library, s->packed, s->pair, s->number, 16, s->x));
	assert_true(isnan(s->x[3]));
	free(s);
}

PROGRAM("test_decode")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v2_looks_entries_up),     cmocka_unit_test(v2a_rounds_once),
		cmocka_unit_test(v2c_rounds_once),         cmocka_unit_test(a_codebook_that_is_not_there_is_refused),
		cmocka_unit_test(infinities_come_through),
	};

	return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
