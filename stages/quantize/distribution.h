/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribution.h - the distribution of a tensor's weights: mean, spread, tails.
 *
 * Sums are in double and in a fixed order, so no result depends on threads or on block sizes:
 *
 *   F16, BF16   Weights are counted by their 65,536 patterns, in one pass. Sums are over the patterns, in ascending
 *               order of their bits, compensated, and accurate to the last digits for any number of weights.
 *   F32, F64    One pass computes the mean and the second to fourth central moments of each chunk of 65,536 weights.
 *               Chunks are merged from front to back (Chan's formulas). The next pass counts weights beyond
 *               three and four sigma. F64 first needs a pass that finds the range, and from it a scale at which
 *               fourth powers neither overflow nor underflow.
 *
 * NaN and infinity are counted, and excluded from all other statistics.
 */
#ifndef XFP_DISTRIBUTION_H
#define XFP_DISTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* Statistics that are undefined, of no weights or of equal ones, are NaN. */
struct xfp_distribution {
	bool measured; /* the dtype is supported, and the tensor was read */
	uint64_t count, nans, infinities;
	double min, max, mean;
	double sigma;    /* standard deviation of a sample (n - 1) */
	double kurtosis; /* fourth central moment over the square of the second: 3 for a normal distribution */
	uint64_t beyond_3, beyond_4; /* weights further than that many sigma from the mean */
	double largest;              /* largest distance from the mean, in sigma */
};

/* State for one tensor. The blocks of a pass come from front to back; each but the last is a multiple of
 * XFP_DISTRIBUTION_BLOCK bytes. */
#define XFP_DISTRIBUTION_BLOCK ((uint64_t)1 << 20)
struct xfp_distribution_work;

/* Allocate state, which can be reused for any number of tensors. Returns NULL if out of memory. */
struct xfp_distribution_work *xfp_distribution_work_new(void);
void xfp_distribution_work_free(struct xfp_distribution_work *work);

/* Number of passes over a tensor; 0 if its dtype is not one of weights. */
unsigned xfp_distribution_passes(enum xfp_dtype dtype);
/* Begin pass `pass` of a tensor. */
void xfp_distribution_begin(struct xfp_distribution_work *work, enum xfp_dtype dtype, unsigned pass);
void xfp_distribution_add(struct xfp_distribution_work *work, const void *block, uint64_t bytes);
/* Return the result, after the last pass. */
struct xfp_distribution xfp_distribution_end(struct xfp_distribution_work *work);

/* Statistics of several tensors, each about its own mean, weighted by their numbers of weights: `sigma` is the root of
 * the mean variance, `kurtosis` the mean kurtosis; tails are counted in each tensor's own sigma. Zero-initialized is
 * empty. */
struct xfp_distribution_sum {
	uint64_t tensors, count, nans, infinities, beyond_3, beyond_4;
	double min, max, largest;
	double mean, kurtosis; /* sums over weights */
	double variance;       /* the same, in units of the square of `sigma`, the largest so far */
	double sigma;
	uint64_t spread, tailed; /* weights of tensors with a sigma, and with a kurtosis */
};
void xfp_distribution_sum_add(struct xfp_distribution_sum *sum, const struct xfp_distribution *one);
struct xfp_distribution xfp_distribution_sum_end(const struct xfp_distribution_sum *sum);

#endif
