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

/* fp8, should it come to that, where the survey knows it as a way to store the unit. */
static uint32_t fp8_of(const struct xfp_candidate *list, uint32_t count, const struct xfp_policy *policy)
{
	bool known = false;

	for (uint32_t i = 0; i < count; i++)
		known |= list[i].mode == XFP_MODE_FP8 && list[i].cos_median >= 0;
	return known ? policy->format.bits & XFP_FP8_BIT : 0;
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
	more = policy->format.bits & ~XFP_FP8_BIT & ~((2u << aim->k) - 1);
	measured->bits = 1u << aim->k | (more & -more) | fp8_of(list, count, policy);
}
