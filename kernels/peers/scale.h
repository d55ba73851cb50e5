/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale.h - blocks of groups with a scale each and no minimum: w = d * number * level. `number` is an integer, d the
 * fp16 scale of the block; both may be negative.
 *
 * Levels are the integers -half ... half - 1, unless the including file defines PEER_LEVEL(how, y), which returns the
 * level nearest to y.
 *
 *   search   find each group's scale: map the weight of largest magnitude to each of several levels, also between
 *            levels; compute the least squares scale for the resulting indices; keep the one with the smallest error
 *   settle   choose d so that the largest scale becomes one of the numbers `ends`. Then alternate: for each group, the
 *            best number near its scale, with weights rounded again for each; for the block, the least squares d
 */
#include "kernels/peers/blocks.h"

#ifndef PEER_LEVEL
#define PEER_LEVEL(how, y) peer_round(y, -(how)->half, (how)->half - 1)
#endif

#define SCALE_ROUNDS 3

struct scale_search {
	float half;       /* half of the number of levels */
	float from, step; /* first level for the weight of largest magnitude, and the increment */
	int tries;        /* levels to try for either sign */
	float limit;      /* numbers are -limit ... limit - 1 */
	int reach;        /* largest distance from the nearest number to try */
	float ends[3];    /* initial numbers of the largest scale; 0 ends the list */
};

/* Sums of weights times levels, and of squared levels. */
struct scale_sums {
	struct peer_lanes xt, tt;
};

struct scale_block {
	unsigned sets; /* sets of eight groups: 1 or 2 */
	struct peer_groups groups[2];
	struct peer_lanes scale[2];

	uint16_t d;
	struct peer_lanes number[2];
};

static inline struct scale_sums scale_measure(const struct peer_groups *groups, const struct scale_search *how,
					      const struct peer_lanes *inverse)
{
	struct scale_sums sums = { 0 };

	for (unsigned i = 0; i < groups->length; i++) {
		PEER_EACH
		{
			float x = groups->x[i].v[l], t = PEER_LEVEL(how, x * inverse->v[l]);

			sums.xt.v[l] += x * t;
			sums.tt.v[l] += t * t;
		}
	}
	return sums;
}

/* Compute least squares scales for these inverses, and keep those with a smaller error than any so far. */
static inline void scale_try(const struct peer_groups *groups, const struct scale_search *how,
			     const struct peer_lanes *inverse, struct peer_lanes *gain, struct peer_lanes *scale)
{
	struct scale_sums sums = scale_measure(groups, how, inverse);

	PEER_EACH
	{
		float fit = sums.tt.v[l] > 0 ? sums.xt.v[l] / sums.tt.v[l] : 0, more = fit * sums.xt.v[l];

		scale->v[l] = more > gain->v[l] ? fit : scale->v[l];
		gain->v[l] = more > gain->v[l] ? more : gain->v[l];
	}
}

static inline float scale_inverse(float scale)
{
	return scale != 0 ? 1 / scale : 0;
}

static inline struct peer_lanes scale_search(const struct peer_groups *groups, const struct scale_search *how)
{
	struct peer_lanes peak = { 0 }, inverse, gain = { 0 }, scale = { 0 };

	for (unsigned i = 0; i < groups->length; i++) {
		PEER_EACH
		{
			float x = groups->x[i].v[l];

			peak.v[l] = x * x > peak.v[l] * peak.v[l] ? x : peak.v[l];
		}
	}
	PEER_EACH peak.v[l] = scale_inverse(peak.v[l]);
	for (int n = 0; n < how->tries; n++) {
		float level = how->from + (float)n * how->step;

		PEER_EACH inverse.v[l] = peak.v[l] * level;
		scale_try(groups, how, &inverse, &gain, &scale);
		PEER_EACH inverse.v[l] = peak.v[l] * -level;
		scale_try(groups, how, &inverse, &gain, &scale);
	}
	PEER_EACH inverse.v[l] = scale_inverse(scale.v[l]);
	scale_try(groups, how, &inverse, &gain, &scale);
	return scale;
}

/* Choose the numbers of a set for this d, with their sums. Returns the squared error minus the weights' squares. */
static inline float scale_place(const struct peer_groups *groups, const struct scale_search *how, float d,
				const struct peer_lanes *scale, struct peer_lanes *number, struct scale_sums *sums)
{
	struct peer_lanes middle, best = { 0 };
	float total = 0;

	PEER_EACH middle.v[l] = peer_round(scale->v[l] * scale_inverse(d), -how->limit, how->limit - 1);
	for (int near = -how->reach; near <= how->reach; near++) {
		struct peer_lanes candidate, inverse;
		struct scale_sums these;

		PEER_EACH candidate.v[l] = peer_round(middle.v[l] + (float)near, -how->limit, how->limit - 1);
		PEER_EACH inverse.v[l] = scale_inverse(candidate.v[l] * d);
		these = scale_measure(groups, how, &inverse);
		PEER_EACH
		{
			float s = candidate.v[l] * d, error = s * (s * these.tt.v[l] - 2 * these.xt.v[l]);
			int better = near == -how->reach || error < best.v[l];

			best.v[l] = better ? error : best.v[l];
			number->v[l] = better ? candidate.v[l] : number->v[l];
			sums->xt.v[l] = better ? these.xt.v[l] : sums->xt.v[l];
			sums->tt.v[l] = better ? these.tt.v[l] : sums->tt.v[l];
		}
	}
	PEER_EACH total += best.v[l];
	return total;
}

static inline void scale_settle(struct scale_block *block, const struct scale_search *how)
{
	float peak = 0, best = 0;

	block->d = 0;
	memset(block->number, 0, sizeof block->number);
	for (unsigned s = 0; s < block->sets; s++)
		PEER_EACH if (block->scale[s].v[l] * block->scale[s].v[l] > peak * peak) peak = block->scale[s].v[l];
	for (int start = 0; how->ends[start] != 0; start++) {
		uint16_t d = peer_half(peak / how->ends[start]);

		for (int round = 0; round < SCALE_ROUNDS; round++) {
			struct peer_lanes number[2];
			float total = 0, above = 0, below = 0, scale = xfp_half_to_float(d);
			uint16_t next;

			for (unsigned s = 0; s < block->sets; s++) {
				struct scale_sums sums;

				total +=
					scale_place(&block->groups[s], how, scale, &block->scale[s], &number[s], &sums);
				PEER_EACH above += number[s].v[l] * sums.xt.v[l];
				PEER_EACH below += number[s].v[l] * number[s].v[l] * sums.tt.v[l];
			}
			if (total < best) {
				best = total;
				block->d = d;
				memcpy(block->number, number, sizeof number);
			}
			next = peer_half(below > 0 ? above / below : 0);
			if (next == d)
				break;
			d = next;
		}
	}
}

static inline void scale_fit(struct scale_block *block, unsigned length, const float *x, const struct scale_search *how)
{
	block->sets = 256 / PEER_LANES / length;
	for (unsigned s = 0; s < block->sets; s++) {
		peer_groups_load(&block->groups[s], length, x + s * PEER_LANES * length);
		block->scale[s] = scale_search(&block->groups[s], how);
	}
	scale_settle(block, how);
}

/* The number of group g of the block, and the factor that maps its weights to levels. */
static inline int scale_number(const struct scale_block *block, unsigned g)
{
	return (int)block->number[g / PEER_LANES].v[g % PEER_LANES];
}
static inline float scale_inverse_of(const struct scale_block *block, unsigned g)
{
	return scale_inverse(block->number[g / PEER_LANES].v[g % PEER_LANES] * xfp_half_to_float(block->d));
}
