/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/target.h"

#include <math.h>

#include "stages/quantize/candidates.h"

const struct xfp_thresholds xfp_target_thresholds = { 7, { 0, 5000, 4000, 3500, 3000, 2700, 2500 } };

/* Some candidates that miss their floor in the survey would meet it; some that meet it narrowly would miss it. The
 * second error costs more: a larger candidate is then chosen. */
#define MARGIN 0.01 /* share of 1 - floor */

double xfp_target_floor(const struct xfp_policy *policy)
{
	double floor = (double)policy->floor / XFP_NANO;

	return floor + MARGIN * (1 - floor);
}

static const struct xfp_candidate *cheapest(const struct xfp_candidate *list, uint32_t count, uint64_t max,
					    const struct xfp_policy *policy)
{
	const struct xfp_candidate *met = NULL, *best = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &list[i];

		if (c->bytes >= max || c->cos_median < 0 || !(policy->format.bits >> c->k & 1))
			continue;
		if (c->cos_median >= xfp_target_floor(policy) &&
		    (!met || c->bytes < met->bytes || (c->bytes == met->bytes && c->cos_median > met->cos_median)))
			met = c;
		if (!best || c->cos_median > best->cos_median)
			best = c;
	}
	return met ? met : best;
}

/* log2 of a number above 0, accurate to about 1e-13: identical on every platform, which libm does not guarantee. */
static double log2_of(double x)
{
	int exponent;
	double m = frexp(x, &exponent), t = (m - 1) / (m + 1), square = t * t, sum = 0;

	for (int i = 25; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return exponent + 2 * t * sum * (1 / 0.69314718055994530942);
}

/* Bits per weight of a candidate, plus the equivalent of its error: one bit of index for a factor of four. */
static double worth(const struct xfp_candidate *c, double weights)
{
	return 8 * (double)c->bytes / weights + log2_of(c->error > 1e-30 ? c->error : 1e-30) / 2;
}

/* The same candidate with the best threshold: outliers that remove more error than their bytes would as index bits.
 * Medians do not show the few rows with a unit's largest weights, but outputs do. */
static const struct xfp_candidate *best_paid(const struct xfp_candidate *list, uint32_t count,
					     const struct xfp_candidate *target, double weights, uint64_t max,
					     const struct xfp_policy *policy)
{
	double min = target->cos_median < xfp_target_floor(policy) ? target->cos_median : xfp_target_floor(policy);
	const struct xfp_candidate *best = target;

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &list[i];

		if (c->mode == target->mode && c->mode != XFP_MODE_FP8 && c->group == target->group &&
		    c->k == target->k && c->bytes < max && c->cos_median >= min &&
		    worth(c, weights) < worth(best, weights))
			best = c;
	}
	return best;
}

/* The bit of fp8 if the survey has fp8 as a candidate for the unit, else 0. */
static uint32_t fp8_of(const struct xfp_candidate *list, uint32_t count, const struct xfp_policy *policy)
{
	bool known = false;

	for (uint32_t i = 0; i < count; i++)
		known |= list[i].mode == XFP_MODE_FP8 && list[i].cos_median >= 0;
	return known ? policy->format.bits & XFP_FP8_BIT : 0;
}

const struct xfp_candidate *xfp_target_candidate(const struct xfp_candidate *list, uint32_t count,
						 const struct xfp_ledger_unit *unit, const struct xfp_policy *policy)
{
	uint64_t weights = xfp_unit_weights(unit), source = xfp_unit_source_bytes(unit);
	const struct xfp_candidate *target = policy->fixed ? NULL : cheapest(list, count, source, policy);

	return target ? best_paid(list, count, target, (double)weights, source, policy) : NULL;
}

void xfp_narrow_to_target(const struct xfp_candidate *target, const struct xfp_candidate *list, uint32_t count,
			  const struct xfp_policy *policy, struct xfp_parameters *measured)
{
	uint32_t more;

	measured->outlier_sigma = target ? target->sigma_milli : XFP_SIGMA_DEFAULT;
	if (!target)
		return;
	measured->modes = 1u << xfp_mode_to_fit(target->mode, measured);
	measured->group_size = target->group;
	/* Also measure one bit more than the target, since the sample may have been favorable. */
	more = policy->format.bits & ~XFP_FP8_BIT & ~((2u << target->k) - 1);
	measured->bits = 1u << target->k | (more & -more) | fp8_of(list, count, policy);
}

void xfp_narrow_to_survey(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit,
			  const struct xfp_policy *policy, struct xfp_parameters *measured)
{
	xfp_narrow_to_target(xfp_target_candidate(list, count, unit, policy), list, count, policy, measured);
}
