/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cosine.h - the error and cosine between a reconstructed row and its source, in a fixed order of operations.
 *
 *   norm = sum of w^2      error = sum of (w - r)^2      square = sum of r^2
 *   cosine = (norm + square - error) / 2 / (sqrt(norm) sqrt(square))
 *
 * which equals the usual formula, without its cancellation if w and r are nearly equal. Sums run in 16 interleaved
 * lanes: element c is in lane c mod 16; lanes are then added pairwise (0+8, 1+9 ... then 0+4 ... 0+2, 0+1). The norm
 * sums doubles, whose products are exact; the other sums add XFP_SQUARES squares per lane in f32, and their totals in
 * double. Both rows are first multiplied by one power of two, so that no square underflows or overflows.
 */
#ifndef XFP_COSINE_H
#define XFP_COSINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/encode/encode.h"

struct xfp_row_error {
	double cosine; /* 1 for a zero row reproduced as zero; 0 if only one of them is zero */
	double error;  /* sum of squared differences */
	double norm;   /* sum of squares of the source row */
};

struct xfp_row_error xfp_row_compare(const float *w, const float *r, size_t cols);

/* Compute the result from a known norm and sums of the same scale. */
struct xfp_row_error xfp_row_result(double norm, struct xfp_row_sums sums);

/* Lower median and nearest-rank 5th percentile of cosines that need not be in memory at once. Pass all of them in every
 * round, in any order, until both are known.
 *
 *     for (xfp_summary_begin(&s, count); !xfp_summary_done(&s); xfp_summary_narrow(&s))
 *         ... xfp_summary_add(&s, cosine, n) for all of them ...
 */
#define XFP_SUMMARY_DIGIT 11 /* bits found per round */
struct xfp_summary {
	double median, p5; /* valid when done; 1 if the count is 0 */
	unsigned known;    /* leading bits found so far, of integers in the order of the doubles */
	uint64_t prefix[2], rank[2];
	uint64_t count[2][1 << XFP_SUMMARY_DIGIT];
};
void xfp_summary_begin(struct xfp_summary *summary, uint64_t count);
void xfp_summary_add(struct xfp_summary *summary, const double *cosine, size_t n);
void xfp_summary_narrow(struct xfp_summary *summary);
bool xfp_summary_done(const struct xfp_summary *summary);

/* Compute both for an array. */
void xfp_cosine_summary(const double *cosine, size_t count, double *median, double *p5);

#endif
