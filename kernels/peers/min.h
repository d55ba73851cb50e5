/* SPDX-License-Identifier: Apache-2.0 */
/*
 * min.h - blocks of groups with a scale and a minimum each: w = d * number * q - dmin * minimum, q = 0 ... top,
 * the integers `number` and `minimum` from 0 to a limit, d and dmin fp16 scales of the block.
 *
 *   search   each group's scale and minimum: the range of the indices is laid over the range of the weights, or over
 *            somewhat less or more of it at either end; the least squares scale and minimum for the indices which
 *            that gives are kept if they explain most, and then improved by turns
 *   settle   d and dmin so that the largest scale and the largest minimum get the largest numbers; then by turns: the
 *            best of the pairs of numbers near each group's, weights rounded again for each; the least squares d and
 *            dmin for all of them
 */
#ifndef XFP_PEER_MIN_H
#define XFP_PEER_MIN_H

#include "kernels/peers/blocks.h"

struct peer_min_search {
	float top;        /* index */
	float limit;      /* number */
	float from, step; /* how many steps of the index, more or less, to lay over the range at either end ... */
	int tries;        /* ... and how many such */
	int reach;        /* how far from the nearest numbers to look */
	float fill[3];    /* to start with, how much of the numbers' range is used; 0 ends the list */
};

struct peer_min_fit {
	struct peer_lanes scale, minimum, mean; /* of q */
	struct peer_lanes error;                /* less the squares of the weights */
};

struct peer_min_block {
	unsigned sets; /* of eight groups: 1 or 2 */
	struct peer_groups groups[2];
	struct peer_lanes sum[2]; /* of weights */
	struct peer_min_fit fit[2];

	uint16_t d, dmin;
	struct peer_lanes number[2], minimum[2];
};

/* `length` weights a group, 16 or 32. */
void xfp_peer_min_fit(struct peer_min_block *block, unsigned length, const float *x, const struct peer_min_search *how);

/* The indices that go with a fit. */
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
