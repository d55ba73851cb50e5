/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouped.h - codes in groups, each row of a group with a scale and a zero: w = (code - zero) * scale. Private to
 * checkpoints/packed/.
 */
#ifndef XFP_GROUPED_H
#define XFP_GROUPED_H

#include "checkpoints/packed/codec.h"
#include "checkpoints/packed/nibbles.h"
#include "checkpoints/packed/number.h"

#define XFP_GROUPED_RUN 128u  /* codes per run */
#define XFP_GROUPED_LEVELS 16 /* for codes of up to four bits */

/* Maximum rows that are decoded at once by codecs whose codes are stored by columns. */
#define XFP_GROUPED_ROWS 1024u

enum xfp_gptq_parameter { XFP_GPTQ_BITS, XFP_GPTQ_GROUP, XFP_GPTQ_ZEROS_LESS_ONE };
enum xfp_awq_parameter { XFP_AWQ_GROUP };

/* Return the dtype of weights with such scales. */
static inline enum xfp_dtype xfp_grouped_dtype(enum xfp_dtype scales)
{
	return scales == XFP_F16 ? XFP_F16 : XFP_BF16;
}
static inline bool xfp_grouped_is_scale(enum xfp_dtype dtype)
{
	return dtype == XFP_F16 || dtype == XFP_BF16 || dtype == XFP_F32;
}

/* Return the words of eight codes in a row of zeros of the form gemv, padded like AWQ's kernels expect; 0 if they do
 * not support the group size. */
static inline uint64_t xfp_awq_gemv_words(uint64_t cols, uint64_t group)
{
	uint64_t multiple = group >= 128 ? 1 : group == 64 ? 2 : group == 32 ? 4 : 0;
	uint64_t words = (cols / group + 7) / 8;

	return multiple ? (words + multiple - 1) / multiple * multiple : 0;
}

/* Return whether a component has rows * cols elements. */
static inline bool xfp_grouped_has(const struct xfp_component *component, uint64_t rows, uint64_t cols)
{
	uint64_t bytes;

	return component && xfp_mul(rows, cols, &bytes) &&
	       xfp_mul(bytes, xfp_dtype_bits(component->dtype) / 8, &bytes) && bytes == component->bytes;
}

/* Return the window of a component [cols / group, rows..], whose lines are groups of columns, with `unit` bytes per
 * `rows` rows. */
static inline struct xfp_window xfp_window_of_groups(const struct xfp_rectangle *of, uint64_t group, uint64_t line,
						     uint64_t unit, uint64_t rows)
{
	uint64_t first = of->col / group, end = (of->col + of->cols + group - 1) / group;
	uint64_t left = of->row / rows, right = (of->row + of->rows + rows - 1) / rows;

	return (struct xfp_window){ first * line + left * unit, (right - left) * unit, line, end - first, true };
}

/* Compute the values of the codes of a group, at most four bits; always sixteen, a constant for compilers. */
static inline void xfp_grouped_levels(enum xfp_dtype dtype, float zero, float scale, uint16_t *level)
{
	float w[XFP_GROUPED_LEVELS];

	for (int q = 0; q < XFP_GROUPED_LEVELS; q++)
		w[q] = ((float)q - zero) * scale;
	xfp_store_decoded(dtype, w, XFP_GROUPED_LEVELS, (unsigned char *)level);
}

/* Look up codes that are `step` apart. */
static inline void xfp_grouped_look_up(const uint16_t *level, const uint8_t *code, uint64_t step, uint64_t count,
				       unsigned char *out)
{
	for (uint64_t i = 0; i < count; i++)
		xfp_store16(out + 2 * i, level[code[i * step]]);
}

/* Decode a run of at most XFP_GROUPED_RUN codes of one group. */
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

/* Return how many columns from `col` on, before `end`, belong to its group, limited to a run. */
static inline uint64_t xfp_grouped_length(uint64_t col, uint64_t end, uint64_t group)
{
	uint64_t length = group - col % group;

	length = end - col < length ? end - col : length;
	return length < XFP_GROUPED_RUN ? length : XFP_GROUPED_RUN;
}

#endif
