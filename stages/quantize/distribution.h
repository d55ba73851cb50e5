/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribution.h - how the weights of a tensor are distributed: mean, spread, tails.
 *
 * Sums are in double and in an order of their own, so that nothing depends on threads or on how much is read at a time:
 *
 *   F16, BF16   Weights are counted by their 65,536 patterns, in one pass. Sums are over the patterns, in rising
 *               order of their bits, compensated: of any number of weights they are good to the last digits.
 *   F32, F64    In one pass, chunks of 65,536 weights each have their mean, and second, third and fourth moments
 *               about it; chunks are added up from front to back (Chan's formulas). The next counts what is beyond
 *               three and four sigma. F64 begins with a pass that finds the range, and so a scale at which fourth
 *               powers neither overflow nor vanish.
 *
 * What is no number (NaN, infinity) is counted, and is left out of everything else.
 */
#ifndef XFP_DISTRIBUTION_H
#define XFP_DISTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

/* Numbers that are not there, of no weights or of equal ones, are NaN. */
struct xfp_distribution {
	bool measured; /* of this dtype, and looked at */
	uint64_t count, nans, infinities;
	double least, most, mean;
	double sigma;    /* standard deviation of a sample (n - 1) */
	double kurtosis; /* fourth moment about the mean over the square of the second: 3 of a normal distribution */
	uint64_t beyond_3, beyond_4; /* further than so many sigma from the mean */
	double largest;              /* distance from the mean, in sigma */
};

/* One tensor's, on their way. The blocks of a pass come from front to back, each but the last a multiple of
 * XFP_DISTRIBUTION_BLOCK bytes. */
#define XFP_DISTRIBUTION_BLOCK ((uint64_t)1 << 20)
struct xfp_distribution_work;

/* One that serves for any number of tensors, one after another. NULL: out of memory. */
struct xfp_distribution_work *xfp_distribution_work_new(void);
void xfp_distribution_work_free(struct xfp_distribution_work *work);

/* How often all of a tensor is to be read; 0: it holds no weights. */
unsigned xfp_distribution_passes(enum xfp_dtype dtype);
/* Pass number `pass` of a tensor begins. */
void xfp_distribution_begin(struct xfp_distribution_work *work, enum xfp_dtype dtype, unsigned pass);
void xfp_distribution_add(struct xfp_distribution_work *work, const void *block, uint64_t bytes);
/* After the last pass. */
struct xfp_distribution xfp_distribution_end(struct xfp_distribution_work *work);

/* Of several tensors, each about its own mean: `sigma` is the root of the mean variance, `kurtosis` the mean one, all
 * weighted by numbers of weights; the tails are those of each tensor in its own sigma. Zeroed is empty. */
struct xfp_distribution_sum {
	uint64_t tensors, count, nans, infinities, beyond_3, beyond_4;
	double least, most, largest;
	double mean, kurtosis; /* sums over weights */
	double variance;       /* the same, in units of the square of `sigma`, the largest so far */
	double sigma;
	uint64_t spread, tailed; /* weights that have a sigma, and a kurtosis */
};
void xfp_distribution_sum_add(struct xfp_distribution_sum *sum, const struct xfp_distribution *one);
struct xfp_distribution xfp_distribution_sum_end(const struct xfp_distribution_sum *sum);

#endif
