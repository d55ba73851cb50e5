/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cosine.h - how close a reconstructed row is to its source, in one documented order.
 *
 * Sums run in double in 16 interleaved lanes: element c goes to lane c mod 16, lanes are then added
 * pairwise (0+8, 1+9 ... then 0+4 ... 0+2, 0+1). The product of two f32 is exact in double.
 */
#ifndef XFP_COSINE_H
#define XFP_COSINE_H

#include <stddef.h>
#include <stdint.h>

struct xfp_row_error {
	double cosine; /* 1 for a zero row reproduced as zero; 0 when only one of the two is zero */
	double error;  /* sum of squared differences, as norm - 2 (sum of w r) + (sum of r r); 0 where that is less */
	double norm;   /* sum of squares of the source row */
};

/* `w` and `r` are scaled by the same power of two if at all: cosines do not see it. */
struct xfp_row_error xfp_row_compare(const float *w, const float *r, size_t cols);

/* The same with r = xfp_unscale_row(value, down, exponent), which is not made; |exponent| < 100. `norm` is
 * xfp_row_norm(w), the same for every candidate. */
double xfp_row_norm(const float *w, size_t cols);
struct xfp_row_error xfp_row_compare_scaled(const float *w, double norm, const float *value, const float *down,
					    int exponent, size_t cols);

/* Lower median and nearest-rank 5th percentile of `count` cosines; reorders them. 1 when count is 0. */
void xfp_cosine_summary(double *cosine, size_t count, double *median, double *p5);

#endif
