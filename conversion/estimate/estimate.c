/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/estimate/estimate.h"

#include <math.h>
#include <string.h>

#include "stages/quantize/candidates.h"
#include "stages/quantize/variants.h"

/*
 * 1 - median cosine by k, of normal weights in rows of 4096 whose rows and columns differ in scale, balanced, without
 * weights beyond 4 sigma. v2: 20 rounds from companded starts; plain normal weights have 5 % less, Student-t weights
 * with 5 degrees of freedom 10 % more, rows of 256 columns 25 % less. v2a: by group size, 16 to 1024 columns, with
 * libraries of 32; v2c: group sizes 16 to 64, with its own libraries. For both, plain normal and Student-t weights
 * differ by up to 10 %, and the row length hardly matters.
 */
static const double v2_miss[XFP_MAX_K + 1] = { [2] = .0643, .01825, .00477, .0012, .000293 };
static const double v2a_miss[][XFP_MAX_K + 1] = {
	{ [2] = .0258, .00473, .00141, .000395, .000111 }, { [2] = .0395, .00787, .00206, .000579, .000161 },
	{ [2] = .0500, .01110, .00277, .000736, .000203 }, { [2] = .0564, .01380, .00336, .000874, .000235 },
	{ [2] = .0600, .01570, .00389, .000986, .000264 }, { [2] = .0615, .01680, .00430, .001060, .000280 },
	{ [2] = .0628, .01770, .00462, .001130, .000292 },
};
static const double v2c_miss[][XFP_MAX_K + 1] = {
	{ [2] = .0303, .00642, .00161, .000427, .000121 },
	{ [2] = .0425, .00926, .00223, .000580, .000164 },
	{ [2] = .0518, .01204, .00286, .000743, .000212 },
};
#define MIN_GROUP 4     /* log2 of the smallest group size */
#define FP8_MISS .00034 /* for all weights: the median of two real models and of Student-t weights */

/* Factor on 1 - cosine for each bound. */
static const double miss_factor[XFP_BOUNDS] = { .5, 1, 2 };

/*
 * Shares of outliers: at least that of a normal distribution. Trained weights have more, and the share falls roughly
 * with the square of the threshold: in generated Student-t weights, 0.5 to 0.6 % lie beyond 4 sigma.
 */
static const double heavy_tail[XFP_BOUNDS] = { 0, .08, .12 };

uint32_t xfp_estimate_sigma(uint32_t sigma_milli, enum xfp_bound bound)
{
	static const uint32_t own[XFP_BOUNDS] = { 5000, 4000, 2500 };

	return sigma_milli == XFP_SIGMA_AUTO ? own[bound] : sigma_milli;
}

double xfp_outlier_share(uint32_t sigma_milli, enum xfp_bound bound)
{
	double c = xfp_estimate_sigma(sigma_milli, bound) / 1000.0, normal, heavy;

	if (!sigma_milli)
		return 0;
	normal = erfc(c / sqrt(2));
	heavy = heavy_tail[bound] / (c * c);
	return normal > heavy ? normal : heavy;
}

/* Typical 1 - median cosine of a candidate. */
static double typical_miss(const struct xfp_candidate *c)
{
	unsigned group = c->group ? xfp_candidate_log2(c->group) - MIN_GROUP : 0;

	if (c->mode == XFP_MODE_FP8)
		return FP8_MISS;
	if (c->mode == XFP_MODE_V2)
		return v2_miss[c->k];
	if (c->mode == XFP_MODE_V2C)
		return v2c_miss[group][c->k];
	/* Libraries larger than 32 do not improve the cosine. */
	return v2a_miss[group][c->k] * (c->library < 4 ? 1.12 : c->library < 16 ? 1.05 : 1);
}

/* Parts of a candidate as in xfp_candidate_parts, assuming an equal number of outliers in every matrix. */
static bool candidate_parts(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
			    const struct xfp_candidate *candidate, uint64_t outliers, uint64_t bytes[XFP_PARTS])
{
	struct xfp_idx_unit shape = xfp_candidate_unit(candidate, unit->experts, unit->rows, unit->cols);
	struct xfp_idx_matrix matrix = { .mode = shape.mode,
					 .k = shape.k,
					 .outliers = shape.k ? outliers / unit->experts : 0 };
	uint64_t own[XFP_PARTS];

	shape.dtype = (uint8_t)unit->dtype;
	if (!xfp_unit_part_bytes(&shape, parameters->balance, bytes) || !xfp_matrix_part_bytes(&shape, &matrix, own))
		return false;
	for (int p = 0; p < XFP_PARTS; p++)
		bytes[p] += unit->experts * own[p];
	return true;
}

static uint64_t sum_of(const uint64_t bytes[XFP_PARTS])
{
	uint64_t sum = 0;

	for (int p = 0; p < XFP_PARTS; p++)
		sum += bytes[p];
	return sum;
}

void xfp_estimate_parts(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
			const struct xfp_estimate *e, uint64_t *bytes)
{
	const struct xfp_candidate candidate = { .mode = e->mode, .k = e->k, .group = e->group, .library = e->library };

	if (!candidate_parts(unit, parameters, &candidate, e->outliers, bytes))
		memset(bytes, 0, XFP_PARTS * sizeof *bytes);
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

/* The candidates that autoselect would compare. */
struct candidate_search {
	const struct xfp_ledger_unit *unit;
	const struct xfp_parameters *parameters;
	struct xfp_policy policy;
	double factor;
	struct xfp_estimate met, best; /* fewest bytes that meet the floor; highest median; bytes 0: none */
};

/* Bits per index; 0 without codebooks. */
static unsigned bits_of(const struct xfp_candidate *candidate)
{
	return candidate->mode >= XFP_MODE_V2 ? candidate->k : 0;
}

/* Compare a candidate with the best so far, as xfp_select does (select.c). */
static void consider(struct candidate_search *search, const struct xfp_candidate *candidate, uint64_t outliers)
{
	uint64_t bytes[XFP_PARTS];
	struct xfp_estimate e = { .mode = (enum xfp_mode)candidate->mode,
				  .k = bits_of(candidate),
				  .group = candidate->group,
				  .library = candidate->library,
				  .outliers = outliers };
	/* The error of fp8 depends little on the weights. */
	double miss = typical_miss(candidate) * (candidate->mode == XFP_MODE_FP8 ? 1 : search->factor);

	if (!(search->policy.format.bits >> candidate->k & 1) ||
	    !candidate_parts(search->unit, search->parameters, candidate, outliers, bytes))
		return;
	e.bytes = sum_of(bytes);
	if (e.bytes >= xfp_unit_source_bytes(search->unit))
		return;
	e.cos_median = 1 - miss;
	e.met = miss <= 1 - (double)search->policy.floor / XFP_NANO;
	if ((e.met || search->policy.fixed || search->policy.assigned) &&
	    (!search->met.bytes || e.bytes < search->met.bytes ||
	     (e.bytes == search->met.bytes && e.cos_median > search->met.cos_median)))
		search->met = e;
	if (!search->best.bytes || e.cos_median > search->best.cos_median)
		search->best = e;
}

/* Whether the best candidate that meets the floor is at least as large as fp8, so that fp8 is measured as well. */
static bool is_as_large_as_fp8(const struct candidate_search *search)
{
	return search->policy.format.bits & XFP_FP8_BIT && search->met.bytes >= xfp_unit_fp8_bytes(search->unit);
}

/* Consider the base candidates, then the extended ones. */
static void choose(struct candidate_search *search, uint64_t outliers, bool *extended)
{
	const struct xfp_parameters measured = xfp_policy_parameters(search->parameters, &search->policy);
	struct xfp_candidate list[XFP_MAX_CANDIDATES];

	*extended = false;
	for (int kind = 0; kind < XFP_FIT_KINDS; kind++) {
		uint32_t count;

		if (kind == XFP_FIT_EXTENDED) {
			if ((search->met.bytes && !is_as_large_as_fp8(search)) || search->policy.fixed ||
			    !xfp_parameters_extended_bits(&measured))
				return;
			*extended = true;
		}
		count = xfp_candidates_of((enum xfp_fit_kind)kind, &measured, list);
		for (uint32_t i = 0; i < count; i++)
			consider(search, &list[i], outliers);
	}
}

/* 1 - cosine of outputs with error feedback, relative to that of weights without it; in qwen3-moe-8m it is
 * .04 to .5. */
#define MISS_OF_OUTPUTS .2

/* `parameters` and `policy` are the unit's own. `outputs`: the floor applies to outputs. */
static struct xfp_estimate estimate_by(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
				       const struct xfp_policy *policy, bool outputs, enum xfp_bound bound)
{
	double share = xfp_outlier_share(parameters->outlier_sigma, bound);
	double cap = (double)parameters->outlier_cap / XFP_NANO;
	struct candidate_search search = {
		.unit = unit,
		.parameters = parameters,
		.policy = *policy,
		.factor = miss_factor[bound] * (outputs ? MISS_OF_OUTPUTS : 1),
	};
	struct xfp_estimate estimate = source_precision(unit);
	uint64_t outliers;
	bool extended;

	if (unit->plan == XFP_PLAN_FP8)
		return fp8(unit);
	if (unit->plan == XFP_PLAN_KEEP)
		return estimate;
	outliers = (uint64_t)((share < cap ? share : cap) * (double)xfp_unit_weights(unit));
	choose(&search, outliers, &extended);
	estimate.met = search.met.bytes && search.met.met;
	if (search.met.bytes)
		estimate = search.met;
	else if (search.best.bytes && parameters->on_miss == XFP_MISS_BEST)
		estimate = search.best;
	estimate.extended = extended;
	estimate.outliers = outliers;
	return estimate;
}

struct xfp_estimate xfp_estimate_unit(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
				      enum xfp_bound bound)
{
	const struct xfp_policy policy = xfp_policy_of_unit(parameters, unit);

	return estimate_by(unit, parameters, &policy, false, bound);
}

/* The relative squared error is about twice 1 - cosine; outliers account for part of it. */
#define ERROR_OF_MISS 2
#define ERROR_OF_OUTLIERS 1.15

uint32_t xfp_estimate_survey(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
			     struct xfp_candidate *list)
{
	const struct xfp_policy policy = xfp_policy_of_unit(parameters, unit);
	const struct xfp_parameters measured = xfp_policy_parameters(parameters, &policy);
	bool own = parameters->outlier_sigma == XFP_SIGMA_AUTO;
	uint32_t sigma = xfp_estimate_sigma(parameters->outlier_sigma, XFP_EXPECTED), count = 0;
	double share = xfp_outlier_share(sigma, XFP_EXPECTED), cap = (double)parameters->outlier_cap / XFP_NANO;
	uint64_t outliers = (uint64_t)((share < cap ? share : cap) * (double)xfp_unit_weights(unit));

	for (int without = !own; without < 2; without++)
		for (int library = 0; library < 2; library++) {
			struct xfp_candidate *first = list + count;
			uint32_t more = xfp_candidates_with(library, &measured, measured.bits, first);

			count += more;
			for (uint32_t i = 0; i < more; i++) {
				struct xfp_candidate *c = &first[i];
				bool none = own ? !without : !sigma;
				uint64_t bytes[XFP_PARTS] = { 0 };

				c->sigma_milli = none ? 0 : sigma;
				c->outliers = none ? 0 : outliers;
				candidate_parts(unit, parameters, c, c->outliers, bytes);
				c->bytes = sum_of(bytes);
				c->cos_median = c->cos_p5 = 1 - typical_miss(c);
				c->error = ERROR_OF_MISS * typical_miss(c) * (none && sigma ? ERROR_OF_OUTLIERS : 1);
			}
		}
	return count;
}

/* Estimate from a survey or from the solution of a goal; independent of the bound. */
static struct xfp_estimate expected_of(const struct xfp_unit_state *state, const struct xfp_policy *policy)
{
	const struct xfp_candidate *c = &state->candidate;

	return (struct xfp_estimate){ .mode = (enum xfp_mode)c->mode,
				      .k = c->mode < XFP_MODE_V2 ? 0 : c->k,
				      .group = c->group,
				      .library = c->library,
				      .met = c->cos_median >= (double)policy->floor / XFP_NANO,
				      .cos_median = c->cos_median,
				      .outliers = c->outliers,
				      .bytes = c->bytes };
}

struct xfp_estimate xfp_estimate(const struct xfp_estimate_input *all, uint32_t number, enum xfp_bound bound)
{
	const struct xfp_ledger_unit *unit = &all->ledger->units[number];
	const struct xfp_unit_state *state = &all->units[number];
	const struct xfp_candidate *chosen = &state->choice.candidate;
	struct xfp_parameters parameters = *all->parameters;
	struct xfp_policy policy = xfp_policy_of_unit(all->parameters, unit);

	if (!state->decided && state->expected)
		return expected_of(state, &policy);
	/* With --like, the solution of the goal is known before any survey. */
	if (number < parameters.assigned_count && unit->plan == XFP_PLAN_FIT &&
	    xfp_is_assigned(&parameters.assigned[number]))
		xfp_assignment_narrow(&parameters.assigned[number], &policy, &parameters);
	if (!state->decided)
		return estimate_by(unit, &parameters, &policy, xfp_estimate_feedback(all, number), bound);
	return (struct xfp_estimate){
		.mode = (enum xfp_mode)chosen->mode,
		.k = bits_of(chosen),
		.group = chosen->group,
		.library = chosen->library,
		.extended = *state->key[XFP_STAMP_EXTENDED] || *state->key[XFP_STAMP_EXTENDED_LIBRARY],
		.met = state->choice.met,
		.cos_median = state->choice.calibrated ? state->choice.output.median : chosen->cos_median,
		.outliers = chosen->outliers,
		.bytes = chosen->bytes,
	};
}
