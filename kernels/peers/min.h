/* SPDX-License-Identifier: Apache-2.0 */
/*
 * min.h - blocks of groups with a scale and a minimum each: w = d * number * q - dmin * minimum, q = 0 ... top,
 * the integers `number` and `minimum` from 0 to a limit, d and dmin fp16 scales of the block.
 *
 *   search   find each group's scale and minimum. Map the range of the weights, or a slightly narrower or wider one,
 *            to the range of the indices; compute the least squares scale and minimum for the resulting indices; keep
 *            the pair with the smallest error, and refine it by alternating both steps
 *   settle   choose d and dmin so that the largest scale and the largest minimum get the largest numbers. Then
 *            alternate: for each group, the best pair of numbers near its scale and minimum, with weights rounded
 *            again for each pair; for the block, the least squares d and dmin
 */
#ifndef XFP_PEER_MIN_H
#define XFP_PEER_MIN_H

#include "kernels/peers/blocks.h"

struct peer_min_search {
	float top;        /* largest index */
	float limit;      /* largest number */
	float from, step; /* first number of index steps by which each end of the range is moved, and the increment */
	int tries;        /* values to try for each end */
	int reach;        /* largest distance from the nearest numbers to try */
	float fill[3];    /* initial shares of the numbers' range to use; 0 ends the list */
};

struct peer_min_fit {
	struct peer_lanes scale, minimum, mean; /* mean: of q */
	struct peer_lanes error;                /* squared error minus the sum of squared weights */
};

struct peer_min_block {
	unsigned sets; /* sets of eight groups: 1 or 2 */
	struct peer_groups groups[2];
	struct peer_lanes sum[2]; /* sums of weights */
	struct peer_min_fit fit[2];

	uint16_t d, dmin;
	struct peer_lanes number[2], minimum[2];
};

/* Fit a block; `length` is the number of weights per group, 16 or 32. */
void xfp_peer_min_fit(struct peer_min_block *block, unsigned length, const float *x, const struct peer_min_search *how);

/* Compute the indices of a fitted block. */
void xfp_peer_min_indices(const struct peer_min_block *block, const float *x, const struct peer_min_search *how,
			  uint8_t *q);

static inline unsigned min_number(const struct peer_min_block *block, unsigned g)
{
	return (unsigned)block->number[g / PEER_LANES].v[g % PEER_LANES];
}
static inline unsigned min_minimum(const struct peer_min_block *block, unsigned g)
{
	return (unsigned)block->minimum[g / PEER_LANES].v[g % PEER_LANES];
}

#endif
