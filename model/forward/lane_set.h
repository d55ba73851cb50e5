/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_set.h - inner loops, compiled from the same source (lane_loops.h) for each instruction set and selected at run
 * time: the set is that of libxfp, see xfp_instructions.
 */
#ifndef XFP_LANE_SET_H
#define XFP_LANE_SET_H

#include <stddef.h>

#include "kernels/lanes/lanes.h"

#define XFP_QUERIES 4 /* queries that are multiplied by the same keys and values at a time */

struct xfp_lane_set {
	/* xfp_product_rows of product.h: the same bits in any set. */
	void (*product_rows)(const float *w, size_t rows, size_t cols, const float *panels, size_t count,
			     double *scratch, float *y, size_t stride);

	/* For XFP_FAST. Vectors have `size` elements; keys and values are `stride` apart. Queries, up to XFP_QUERIES of
	 * them, and their sums are consecutive; their scores are score_stride apart. */
	void (*scores)(const float *query, size_t queries, const float *keys, size_t stride, size_t count, size_t size,
		       float *score, size_t score_stride);
	/* score = e^(score - maximum); returns the sum. `score` is padded to a multiple of XFP_LANES. */
	float (*softmax)(float *score, size_t count);
	/* sum += score[j] value[j] */
	void (*mix)(const float *score, size_t score_stride, size_t queries, const float *values, size_t stride,
		    size_t count, size_t size, float *sum);
	/* gate = silu(gate) up */
	void (*silu)(float *gate, const float *up, size_t count);
};

extern const struct xfp_lane_set xfp_lane_set_plain;
#ifdef XFP_X86
extern const struct xfp_lane_set xfp_lane_set_avx2, xfp_lane_set_avx512;
#endif

const struct xfp_lane_set *xfp_lane_set(void);

#endif
