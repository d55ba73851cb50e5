/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate.h"

#include <math.h>

#include "bundle_layout.h"
#include "lloyd.h"

/*
 * 1 - median cosine by k: 1024 x 4096 normal weights whose rows and columns differ in scale, balanced, without
 * what is beyond 4 sigma, 20 rounds from companded starts. Student-t weights with 5 degrees of freedom have a
 * tenth more, plain normal ones a twentieth less, rows of 256 columns a quarter less.
 */
static const double typical_miss[XFP_MAX_K + 1] = { [2] = .0643, .01825, .00477, .0012, .000293 };

/* How much of it is reckoned with. */
static const double miss_factor[XFP_BOUNDS] = { .5, 1, 2 };

/*
 * Shares of outliers: those of a normal distribution at least. Trained weights have more, and their number falls
 * about with the square of the threshold: of generated Student-t weights 0.5 to 0.6 % lie beyond 4 sigma.
 */
static const double heavy_tail[XFP_BOUNDS] = { 0, .08, .12 };

uint64_t xfp_unit_source_bytes(const struct xfp_ledger_unit *unit)
{
	return xfp_unit_weights(unit) * (xfp_dtype_bits(unit->dtype) / 8);
}

double xfp_outlier_share(uint32_t sigma_milli, enum xfp_bound bound)
{
	double c = sigma_milli / 1000.0, normal, heavy;

	if (!sigma_milli)
		return 0;
	normal = erfc(c / sqrt(2));
	heavy = heavy_tail[bound] / (c * c);
	return normal > heavy ? normal : heavy;
}

uint64_t xfp_v2_unit_bytes(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters, unsigned k,
			   uint64_t outliers)
{
	uint64_t rows = unit->experts * unit->rows;

	return rows * (xfp_v2_row_bytes(unit->cols, k) + ((uint64_t)2 << k)) + (parameters->balance ? unit->cols : 0) +
	       unit->experts * xfp_outlier_bytes(unit->rows, unit->cols, outliers / unit->experts);
}

static struct xfp_estimate source_precision(const struct xfp_ledger_unit *unit)
{
	return (struct xfp_estimate){
		.mode = XFP_MODE_KEEP, .met = true, .cos_median = 1, .bytes = xfp_unit_source_bytes(unit)
	};
}

static struct xfp_estimate fp8(const struct xfp_ledger_unit *unit)
{
	uint64_t bytes = unit->experts * unit->rows * (unit->cols + sizeof(float));

	if (bytes >= xfp_unit_source_bytes(unit))
		return source_precision(unit);
	return (struct xfp_estimate){ .mode = XFP_MODE_FP8, .met = true, .bytes = bytes };
}

/* As autoselect goes about it: the base set, then the extended one; fewest bytes that meet the floor, or the
 * best candidate of all, or the one that is asked for. */
static unsigned choose(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
		       const struct xfp_policy *policy, double factor, uint64_t outliers, bool *met, bool *extended)
{
	const struct xfp_parameters measured = xfp_policy_parameters(parameters, policy);
	const uint32_t sets[] = { xfp_parameters_base_bits(&measured), xfp_parameters_extended_bits(&measured) };
	uint64_t source = xfp_unit_source_bytes(unit);
	double most = 1 - (double)policy->floor / XFP_NANO;
	unsigned best = 0;

	*met = false;
	for (int set = 0; set < 2; set++) {
		*extended = set && sets[set] && !policy->fixed;
		for (unsigned k = XFP_MIN_K; k <= XFP_MAX_K; k++) {
			if (!(sets[set] & policy->format.bits & 1u << k) ||
			    xfp_v2_unit_bytes(unit, parameters, k, outliers) >= source)
				continue;
			best = k;
			if ((*met = typical_miss[k] * factor <= most))
				return k;
		}
	}
	return best;
}

struct xfp_estimate xfp_estimate_unit(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
				      enum xfp_bound bound)
{
	double share = xfp_outlier_share(parameters->outlier_sigma, bound);
	double cap = (double)parameters->outlier_cap / XFP_NANO;
	struct xfp_policy policy = xfp_policy_of_unit(parameters, unit);
	struct xfp_estimate estimate = source_precision(unit);
	bool met, extended;
	uint64_t outliers;
	unsigned k;

	if (unit->plan == XFP_PLAN_FP8)
		return fp8(unit);
	if (unit->plan == XFP_PLAN_KEEP)
		return estimate;
	outliers = (uint64_t)((share < cap ? share : cap) * (double)xfp_unit_weights(unit));
	k = choose(unit, parameters, &policy, miss_factor[bound], outliers, &met, &extended);
	if (k && (met || policy.fixed || parameters->on_miss == XFP_MISS_BEST)) {
		estimate.mode = XFP_MODE_V2;
		estimate.k = k;
		estimate.cos_median = 1 - typical_miss[k] * miss_factor[bound];
		estimate.bytes = xfp_v2_unit_bytes(unit, parameters, k, outliers);
	}
	estimate.met = met;
	estimate.extended = extended;
	estimate.outliers = outliers;
	return estimate;
}

struct xfp_estimate xfp_estimate(const struct xfp_conversion *c, uint32_t number, enum xfp_bound bound)
{
	const struct xfp_ledger_unit *unit = &c->ledger->units[number];
	const struct xfp_unit_state *state = &c->units[number];
	const struct xfp_candidate *chosen = &state->choice.candidate;

	if (!state->decided)
		return xfp_estimate_unit(unit, &c->options.parameters, bound);
	return (struct xfp_estimate){
		.mode = (enum xfp_mode)chosen->mode,
		.k = chosen->k,
		.extended = *state->key[XFP_STAMP_MORE],
		.met = state->choice.met,
		.cos_median = chosen->cos_median,
		.outliers = chosen->outliers,
		.bytes = chosen->bytes,
	};
}
