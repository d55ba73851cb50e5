/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback_set.h - the inner loops of feedback.h, compiled from the same source (feedback_lanes.h) for each instruction
 * set. The set is that of the encoder in use (encode.h).
 */
#ifndef XFP_FEEDBACK_SET_H
#define XFP_FEEDBACK_SET_H

#include "kernels/encode/encode.h"
#include "kernels/feedback/feedback.h"

/* A group of columns in a tile of sixteen rows; sixteen values, one a row, per column. */
struct xfp_feedback_group {
	const struct xfp_compact_book *book;
	unsigned cols;         /* padding excluded */
	unsigned size;         /* padding included */
	const double *sum;     /* sum over columns of other groups, for t or for v */
	const double *own;     /* R[j][c] / R[c][c], or H[j][c]: [size / 16][size][16], by c / 16, j and c % 16 */
	const float *diagonal; /* R[c][c], or H[c][c] */
	const float *y;
	const uint16_t *mark;
	const float *row, *inverse; /* [16] */
	/* results; for a pass, also the values before it */
	float *error, *target;
	uint8_t *index, *byte;
};

struct xfp_feedback_set {
	/* sum[c][lane] += the sum over steps of a[c] * b[lane], in order; c and lane < 16. a and b advance by step, 16
	 * or -16, after each. `next` are as many numbers as b has, to be prefetched, or NULL. */
	void (*multiply)(size_t steps, const double *a, const double *b, ptrdiff_t step, double *sum,
			 const float *next);

	/* Convert numbers, a multiple of 16; or the columns of a block, 16 x 16, while block `next` is prefetched. */
	void (*widen)(const float *from, size_t count, double *to);
	void (*transpose)(const float *from, double *to, const float *next);

	/* Finish a block of R: to[c][lane] = sum[c][lane] less the products with the columns after c within the block,
	 * divided by pivot[c]. `factor` is the diagonal block of these columns. */
	void (*solve)(const double *sum, const float *factor, const float *pivot, float *to);

	/* Encode a group with feedback: the best of `tried` bytes a row. */
	void (*encode)(const struct xfp_feedback_group *group, const uint8_t (*byte)[XFP_LANES], unsigned tried);

	/* Improve the indices of the same group in `count` tiles, column by column. */
	void (*pass)(const struct xfp_feedback_group *groups, size_t count);
};

extern const struct xfp_feedback_set xfp_feedback_plain;
#ifdef XFP_X86
extern const struct xfp_feedback_set xfp_feedback_avx2, xfp_feedback_avx512;
#endif
#ifdef XFP_AARCH64
extern const struct xfp_feedback_set xfp_feedback_neon;
#endif

const struct xfp_feedback_set *xfp_feedback_set(void);

/* The stored value of a marked weight, in units of the row scale: the fp16 residual of its target added to the value q
 * that its index decodes to. */
float xfp_feedback_marked(float target, float q, float row, float inverse, uint16_t *residual);

#endif
