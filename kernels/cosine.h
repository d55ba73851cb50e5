/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cosine.h - how close a reconstructed row is to its source, in one documented order.
 *
 * Sums run in double in 16 interleaved lanes: element c goes to lane c mod 16, lanes are then added
 * pairwise (0+8, 1+9 ... then 0+4 ... 0+2, 0+1). The product of two f32 is exact in double.
 */
#ifndef XFP_COSINE_H
#define XFP_COSINE_H

#include <stdbool.h>
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

/* Lower median and nearest-rank 5th percentile of cosines that need not be in memory together: they are shown
 * again and again, in any order, until both are known.
 *
 *     for (xfp_summary_begin(&s, count); !xfp_summary_done(&s); xfp_summary_narrow(&s))
 *         ... xfp_summary_add(&s, cosine, n) for all of them ...
 */
#define XFP_SUMMARY_DIGIT 11 /* bits that a round finds */
struct xfp_summary {
	double median, p5; /* once done; 1 when the count is 0 */
	unsigned known;    /* leading bits found of the two, as numbers that order as the doubles do */
	uint64_t prefix[2], rank[2];
	uint64_t count[2][1 << XFP_SUMMARY_DIGIT];
};
void xfp_summary_begin(struct xfp_summary *summary, uint64_t count);
void xfp_summary_add(struct xfp_summary *summary, const double *cosine, size_t n);
void xfp_summary_narrow(struct xfp_summary *summary);
bool xfp_summary_done(const struct xfp_summary *summary);

/* The same of an array. */
void xfp_cosine_summary(const double *cosine, size_t count, double *median, double *p5);

#endif
