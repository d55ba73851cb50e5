/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouped.h - codes of which a group of a row has a scale and a zero: w = (code - zero) * scale. Private to
 * checkpoints/packed/.
 */
#ifndef XFP_GROUPED_H
#define XFP_GROUPED_H

#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/nibbles.h"
#include "checkpoints/packed/number.h"

#define XFP_GROUPED_RUN 128u  /* codes that are taken at once */
#define XFP_GROUPED_LEVELS 16 /* of codes that have up to four bits */

/* Rows of a codec whose codes lie by columns that are decoded at once. */
#define XFP_GROUPED_ROWS 1024u

enum xfp_gptq_parameter { XFP_GPTQ_BITS, XFP_GPTQ_GROUP, XFP_GPTQ_ZEROS_LESS_ONE };
enum xfp_awq_parameter { XFP_AWQ_GROUP };

/* The dtype that weights with such scales have. */
static inline enum xfp_dtype xfp_grouped_dtype(enum xfp_dtype scales)
{
	return scales == XFP_F16 ? XFP_F16 : XFP_BF16;
}
static inline bool xfp_grouped_is_scale(enum xfp_dtype dtype)
{
	return dtype == XFP_F16 || dtype == XFP_BF16 || dtype == XFP_F32;
}

/* Words of eight codes in a row of zeros of the form gemv: padded, as its kernels want them. 0: they know no such
 * group. */
static inline uint64_t xfp_awq_gemv_words(uint64_t cols, uint64_t group)
{
	uint64_t multiple = group >= 128 ? 1 : group == 64 ? 2 : group == 32 ? 4 : 0;
	uint64_t words = (cols / group + 7) / 8;

	return multiple ? (words + multiple - 1) / multiple * multiple : 0;
}

/* A component of `count` elements. */
static inline bool xfp_grouped_has(const struct xfp_component *component, uint64_t rows, uint64_t cols)
{
	uint64_t bytes;

	return component && xfp_mul(rows, cols, &bytes) &&
	       xfp_mul(bytes, xfp_dtype_bits(component->dtype) / 8, &bytes) && bytes == component->bytes;
}

/* The window of a component [cols / group, rows..], whose lines are groups of columns; `unit` bytes for each `rows` of
 * them. */
static inline struct xfp_window xfp_window_of_groups(const struct xfp_rectangle *of, uint64_t group, uint64_t line,
						     uint64_t unit, uint64_t rows)
{
	uint64_t first = of->col / group, end = (of->col + of->cols + group - 1) / group;
	uint64_t left = of->row / rows, right = (of->row + of->rows + rows - 1) / rows;

	return (struct xfp_window){ first * line + left * unit, (right - left) * unit, line, end - first, true };
}

/* What the codes of a group stand for, whose bits are at most four: of all sixteen, so that compilers know how many. */
static inline void xfp_grouped_levels(enum xfp_dtype dtype, float zero, float scale, uint16_t *level)
{
	float w[XFP_GROUPED_LEVELS];

	for (int q = 0; q < XFP_GROUPED_LEVELS; q++)
		w[q] = ((float)q - zero) * scale;
	xfp_store_decoded(dtype, w, XFP_GROUPED_LEVELS, (unsigned char *)level);
}

/* Codes that are `step` apart. */
static inline void xfp_grouped_look_up(const uint16_t *level, const uint8_t *code, uint64_t step, uint64_t count,
				       unsigned char *out)
{
	for (uint64_t i = 0; i < count; i++)
		xfp_store16(out + 2 * i, level[code[i * step]]);
}

/* A run of at most XFP_GROUPED_RUN codes of one group. */
static inline void xfp_grouped_run(enum xfp_dtype dtype, unsigned bits, float zero, float scale, const uint8_t *code,
				   uint64_t count, unsigned char *out)
{
	float w[XFP_GROUPED_RUN];

	if (bits <= 4) {
		uint16_t level[XFP_GROUPED_LEVELS];

		xfp_grouped_levels(dtype, zero, scale, level);
		xfp_grouped_look_up(level, code, 1, count, out);
		return;
	}
#pragma omp simd
	for (uint64_t i = 0; i < count; i++)
		w[i] = ((float)code[i] - zero) * scale;
	xfp_store_decoded(dtype, w, count, out);
}

/* How many columns from `col` on, before `end`, are of its group, and no more than a run. */
static inline uint64_t xfp_grouped_length(uint64_t col, uint64_t end, uint64_t group)
{
	uint64_t length = group - col % group;

	length = end - col < length ? end - col : length;
	return length < XFP_GROUPED_RUN ? length : XFP_GROUPED_RUN;
}

#endif
