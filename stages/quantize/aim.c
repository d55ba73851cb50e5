/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/aim.h"

#include <math.h>

const struct xfp_thresholds xfp_aim_thresholds = { 7, { 0, 5000, 4000, 3500, 3000, 2700, 2500 } };

/* Of what misses its floor by the survey, some would meet it; of what meets it narrowly, some would miss. The second
 * costs more: a larger candidate is then taken. */
#define MARGIN 0.01 /* of 1 - floor */

double xfp_aim_floor(const struct xfp_policy *policy)
{
	double floor = (double)policy->floor / XFP_NANO;

	return floor + MARGIN * (1 - floor);
}

static const struct xfp_candidate *cheapest(const struct xfp_candidate *list, uint32_t count, uint64_t most,
					    const struct xfp_policy *policy)
{
	const struct xfp_candidate *met = NULL, *best = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &list[i];

		if (c->bytes >= most || c->cos_median < 0 || !(policy->format.bits >> c->k & 1))
			continue;
		if (c->cos_median >= xfp_aim_floor(policy) &&
		    (!met || c->bytes < met->bytes || (c->bytes == met->bytes && c->cos_median > met->cos_median)))
			met = c;
		if (!best || c->cos_median > best->cos_median)
			best = c;
	}
	return met ? met : best;
}

/* log2 of a number above 0, to about 1e-13: the same everywhere, which libm does not promise. */
static double log2_of(double x)
{
	int exponent;
	double m = frexp(x, &exponent), t = (m - 1) / (m + 1), square = t * t, sum = 0;

	for (int i = 25; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return exponent + 2 * t * sum * (1 / 0.69314718055994530942);
}

/* Bits a weight of a candidate and of what its error is worth: as an index goes, a bit for a factor of four. */
static double worth(const struct xfp_candidate *c, double weights)
{
	return 8 * (double)c->bytes / weights + log2_of(c->error > 1e-30 ? c->error : 1e-30) / 2;
}

/* The same candidate with the threshold that pays: outliers that remove more error than their bytes would as indices.
 * Medians do not see the few rows that hold a unit's largest weights; outputs do. */
static const struct xfp_candidate *best_paid(const struct xfp_candidate *list, uint32_t count,
					     const struct xfp_candidate *aim, double weights, uint64_t most,
					     const struct xfp_policy *policy)
{
	double least = aim->cos_median < xfp_aim_floor(policy) ? aim->cos_median : xfp_aim_floor(policy);
	const struct xfp_candidate *best = aim;

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &list[i];

		if (c->mode == aim->mode && c->mode != XFP_MODE_FP8 && c->group == aim->group && c->k == aim->k &&
		    c->bytes < most && c->cos_median >= least && worth(c, weights) < worth(best, weights))
			best = c;
	}
	return best;
}

/* Whether one of these bits may take more than fp8, as it does in matrices so small that a library is most of them:
 * then fp8 is measured, too, and nothing larger is chosen that is worse. Surveys only guess the number of outliers. */
static bool rivals_fp8(const struct xfp_candidate *list, uint32_t count, const struct xfp_candidate *aim, uint32_t bits)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &list[i];

		if (c->mode == XFP_MODE_FP8)
			least = c->bytes - c->bytes / 8;
		else if (c->mode == aim->mode && c->group == aim->group && c->sigma_milli == aim->sigma_milli &&
			 bits >> c->k & 1 && c->bytes > most)
			most = c->bytes;
	}
	return most >= least;
}

const struct xfp_candidate *xfp_aim_candidate(const struct xfp_candidate *list, uint32_t count,
					      const struct xfp_ledger_unit *unit, const struct xfp_policy *policy)
{
	uint64_t weights = xfp_unit_weights(unit), source = xfp_unit_source_bytes(unit);
	const struct xfp_candidate *aim = policy->fixed ? NULL : cheapest(list, count, source, policy);

	return aim ? best_paid(list, count, aim, (double)weights, source, policy) : NULL;
}

void xfp_aim(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit,
	     const struct xfp_policy *policy, struct xfp_parameters *measured)
{
	const struct xfp_candidate *aim = xfp_aim_candidate(list, count, unit, policy);
	uint32_t more;

	measured->outlier_sigma = aim ? aim->sigma_milli : XFP_SIGMA_USUAL;
	if (!aim)
		return;
	/* fp8 is measured with any fit, and alone with that of the fewest settings. */
	measured->modes = 1u << (aim->mode == XFP_MODE_FP8 ? XFP_MODE_V2 : aim->mode);
	measured->group_size = aim->group;
	/* One more than is aimed at, since the sample may have been kind. */
	more = policy->format.bits & ~((2u << aim->k) - 1);
	measured->bits = 1u << aim->k | (more & -more);
	if (rivals_fp8(list, count, aim, measured->bits))
		measured->bits |= policy->format.bits & XFP_FP8_BIT;
}
