/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp8.c - 8-bit floats with one scale per block: w = code * scale.
 *
 *   codes       F8_E4M3 or F8_E5M2 [rows, cols]
 *   scales      F32, BF16, F16 or F8_E8M0; one per block of rows and columns, row-major. Blocks restart in each matrix
 *               of a stack, and the last ones of a matrix may be smaller.
 *   parameters  rows of a matrix; rows and columns of a block
 *
 * A scale of a whole tensor, matrix or row is that of one large block. Codes are always multiplied by scales, even if
 * these are named inverse. If a code or a scale is NaN, the weights are NaN.
 */
#include <math.h>

#include "base/bytes.h"
#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/fp8.h"
#include "checkpoints/packed/number.h"

#define CHUNK 256u

static uint64_t scale_size(const struct xfp_recipe_part *part)
{
	return xfp_dtype_bits(xfp_recipe_component(part, XFP_COMPONENT_SCALES)->dtype) / 8;
}

/* Return the line of scales of a stored row. */
static uint64_t scale_line(const struct xfp_recipe_part *part, uint64_t row)
{
	const uint64_t *p = part->parameters;

	return row / p[XFP_FP8_MATRIX_ROWS] * xfp_divide_up(p[XFP_FP8_MATRIX_ROWS], p[XFP_FP8_BLOCK_ROWS]) +
	       row % p[XFP_FP8_MATRIX_ROWS] / p[XFP_FP8_BLOCK_ROWS];
}

static bool fits(const struct xfp_recipe_part *part, enum xfp_dtype dtype)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	const uint64_t *p = part->parameters;
	uint64_t bytes, lines;

	if ((dtype != XFP_BF16 && dtype != XFP_F16) || !codes || !scales ||
	    (codes->dtype != XFP_F8_E4M3 && codes->dtype != XFP_F8_E5M2) || !xfp_dtype_is_scale(scales->dtype) ||
	    !part->rows || !part->cols || !p[XFP_FP8_MATRIX_ROWS] || !p[XFP_FP8_BLOCK_ROWS] || !p[XFP_FP8_BLOCK_COLS] ||
	    part->rows % p[XFP_FP8_MATRIX_ROWS])
		return false;
	lines = part->rows / p[XFP_FP8_MATRIX_ROWS] * xfp_divide_up(p[XFP_FP8_MATRIX_ROWS], p[XFP_FP8_BLOCK_ROWS]);
	return xfp_mul(part->rows, part->cols, &bytes) && bytes == codes->bytes &&
	       xfp_mul(lines, xfp_divide_up(part->cols, p[XFP_FP8_BLOCK_COLS]), &bytes) &&
	       xfp_mul(bytes, scale_size(part), &bytes) && bytes == scales->bytes;
}

static void grain(const struct xfp_recipe_part *part, uint64_t *rows, uint64_t *cols)
{
	(void)part;
	*rows = *cols = 1;
}

static struct xfp_window window(const struct xfp_recipe_part *part, enum xfp_component_role role,
				const struct xfp_rectangle *of)
{
	uint64_t columns = part->parameters[XFP_FP8_BLOCK_COLS], size;
	struct xfp_rectangle scales = *of;

	if (role == XFP_COMPONENT_CODES)
		return xfp_window_of_rows(of, part->cols, 1, 1);
	if (role != XFP_COMPONENT_SCALES)
		return (struct xfp_window){ 0 };
	size = scale_size(part);
	scales.row = scale_line(part, of->row);
	scales.rows = scale_line(part, of->row + of->rows - 1) - scales.row + 1;
	return xfp_window_of_rows(&scales, xfp_divide_up(part->cols, columns) * size, size, columns);
}

/* Branch-free, so that compilers vectorize it. Subnormal codes are converted as the smallest normals, and the
 * difference is subtracted, because arithmetic with subnormal f32 is slow. */
static inline float e4m3(uint8_t code)
{
	uint32_t size = code & 0x7f, is_small = 0u - (size < 8), is_nan = 0u - (size == 0x7f), bits;
	float value = xfp_bits_to_float(((size | (8 & is_small)) << 20) + (UINT32_C(120) << 23)) -
		      xfp_bits_to_float(UINT32_C(0x3c800000) & is_small); /* 2^-6 */

	memcpy(&bits, &value, sizeof bits);
	bits |= (uint32_t)(code & 0x80) << 24;
	return xfp_bits_to_float((bits & ~is_nan) | (UINT32_C(0x7fc00000) & is_nan));
}

static void multiply(enum xfp_dtype codes, const unsigned char *code, uint64_t count, float scale, float *out)
{
	if (codes == XFP_F8_E4M3) {
#pragma omp simd
		for (uint64_t i = 0; i < count; i++)
			out[i] = e4m3(code[i]) * scale;
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		out[i] = xfp_e5m2_to_float(code[i]) * scale;
}

static void decode(const struct xfp_recipe_part *part, enum xfp_dtype dtype, const struct xfp_fetched *from,
		   uint64_t row, uint64_t col, uint64_t cols, void *out)
{
	const struct xfp_component *codes = xfp_recipe_component(part, XFP_COMPONENT_CODES);
	const struct xfp_component *scales = xfp_recipe_component(part, XFP_COMPONENT_SCALES);
	uint64_t block = part->parameters[XFP_FP8_BLOCK_COLS], size = scale_size(part), end = col + cols, count;
	const unsigned char *line =
		from->bytes[XFP_COMPONENT_CODES] + (row - from->of.row) * from->pitch[XFP_COMPONENT_CODES];
	const unsigned char *scale =
		from->bytes[XFP_COMPONENT_SCALES] +
		(scale_line(part, row) - scale_line(part, from->of.row)) * from->pitch[XFP_COMPONENT_SCALES];
	unsigned char *to = out;
	float values[CHUNK];

	for (; col < end; col += count, to += count * sizeof(uint16_t)) {
		uint64_t left = block - col % block;

		count = left < CHUNK ? left : CHUNK;
		count = end - col < count ? end - col : count;
		multiply(codes->dtype, line + (col - from->of.col), count,
			 xfp_scale_to_float(scales->dtype, scale + (col / block - from->of.col / block) * size),
			 values);
		xfp_store_decoded(dtype, values, count, to);
	}
}

const struct xfp_codec_methods xfp_codec_fp8 = { fits, grain, window, decode, NULL, NULL };
