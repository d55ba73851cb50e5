/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moments.h - mean and standard deviation of a matrix, exactly, and the outliers they define.
 *
 * Each scaled weight x, |x| <= 2^14, is rounded once to the integer q = RNE(x * 2^10), |q| <= 2^24. Sums of q and q^2
 * are integers, so they do not depend on order. The largest |x| is at least 2^13, and sigma at least the largest over
 * sqrt(n), so the rounding is far below sigma.
 *
 *   mean = S1 / n          sigma = sqrt((n S2 - S1^2) / (n (n - 1)))     in units of q, in double
 *   outlier:  q > floor(mean + c sigma)  or  q < ceil(mean - c sigma)
 *
 * A matrix of one value has sigma 0 and no outliers.
 */
#ifndef XFP_MOMENTS_H
#define XFP_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__extension__ typedef __int128 xfp_int128;

struct xfp_moments {
	uint64_t count;
	xfp_int128 sum, square;
};

/* Add a row of scaled weights, padded (encode.h), to the moments. */
void xfp_moments_add(struct xfp_moments *moments, const float *x, size_t cols);

/* The outlier thresholds, derived from the moments of the whole matrix. */
struct xfp_outlier_rule {
	double mean, sigma; /* in units of q */
	int32_t low, high;  /* outliers are below low or above high */
};
#define XFP_Q_PER_X 1024.0

/* Compute the thresholds. `sigma_milli` is c in thousandths; 0 means no outliers. */
struct xfp_outlier_rule xfp_outlier_rule(const struct xfp_moments *moments, uint32_t sigma_milli);

/* A candidate outlier, in eight bytes because there can be many: its flat index in the matrix, below 2^38, and its
 * q. */
typedef uint64_t xfp_outlier;
#define XFP_OUTLIER_WEIGHTS ((uint64_t)1 << 38)

static inline xfp_outlier xfp_outlier_of(uint64_t position, int32_t q)
{
	return position << 26 | (uint64_t)(q + (1 << 24));
}
static inline uint64_t xfp_outlier_position(xfp_outlier outlier)
{
	return outlier >> 26;
}
static inline int32_t xfp_outlier_q(xfp_outlier outlier)
{
	return (int32_t)(outlier & ((1 << 26) - 1)) - (1 << 24);
}

/* List the columns of a padded row that are outliers, ascending, in `column` (a buffer of xfp_padded(cols)). Returns
 * their number. */
size_t xfp_moments_and_outliers(struct xfp_moments *moments, const struct xfp_outlier_rule *rule, const float *x,
				size_t cols, uint32_t *column); /* and add the row to the moments */
size_t xfp_outliers_find(const struct xfp_outlier_rule *rule, const float *x, size_t cols, uint32_t *column);

/* Return q of one weight. */
int32_t xfp_q_of(float x);

/* Sort by descending distance |q - mean|; stable, so equal distances keep ascending positions. `buffer` has the same
 * size as `found`. */
void xfp_outliers_sort(double mean, xfp_outlier *found, size_t count, xfp_outlier *buffer);

#endif
