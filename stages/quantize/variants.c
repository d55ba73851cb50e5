/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/variants.h"

#include <string.h>

#include "stages/quantize/candidates.h"
#include "stages/quantize/target.h"

struct xfp_thresholds xfp_survey_thresholds(const struct xfp_parameters *parameters)
{
	uint32_t sigma = parameters->outlier_sigma;

	return sigma == XFP_SIGMA_AUTO ? xfp_target_thresholds : (struct xfp_thresholds){ sigma ? 2 : 1, { 0, sigma } };
}

uint32_t xfp_list_variants(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit,
			   const struct xfp_policy *policy, uint32_t sigma_milli, struct xfp_variant *variants)
{
	uint64_t source = xfp_unit_source_bytes(unit);
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &list[i];

		if (c->bytes >= source || c->cos_median < 0 || !(policy->format.bits >> c->k & 1) ||
		    (policy->floor && c->cos_median < xfp_target_floor(policy)))
			continue;
		if (sigma_milli != XFP_SIGMA_AUTO && c->mode != XFP_MODE_FP8 && c->sigma_milli != sigma_milli)
			continue;
		variants[found++] = (struct xfp_variant){
			.bytes = c->bytes,
			.error = c->error,
			.cosine = c->cos_median,
			.sigma_milli = c->sigma_milli,
			.group = c->group,
			.library = c->library,
			.mode = (uint8_t)c->mode,
			.k = (uint8_t)c->k,
			.exact = !c->sigma_milli, /* without outliers the shape determines the size */
		};
	}
	return found;
}

/* ---- parts ------------------------------------------------------------------------------------- */

/* The sizes of parts without outliers. Returns the sum. */
static uint64_t shape_parts(const struct xfp_ledger_unit *unit, const struct xfp_variant *variant, bool balanced,
			    uint64_t parts[XFP_PARTS])
{
	const struct xfp_candidate candidate = {
		.mode = variant->mode, .k = variant->k, .group = variant->group, .library = variant->library
	};
	struct xfp_idx_unit shape = xfp_candidate_unit(&candidate, unit->experts, unit->rows, unit->cols);
	struct xfp_idx_matrix matrix = { .mode = shape.mode, .k = shape.k };
	uint64_t own[XFP_PARTS], sum = 0;

	shape.dtype = (uint8_t)unit->dtype;
	if (!xfp_unit_part_bytes(&shape, balanced, parts) || !xfp_matrix_part_bytes(&shape, &matrix, own))
		memset(parts, 0, XFP_PARTS * sizeof *parts);
	else
		for (int p = 0; p < XFP_PARTS; p++)
			sum += parts[p] += unit->experts * own[p];
	return sum;
}

void xfp_variant_parts(const struct xfp_ledger_unit *unit, const struct xfp_variant *variant, bool balanced,
		       uint64_t parts[XFP_PARTS])
{
	uint64_t shape = shape_parts(unit, variant, balanced, parts);

	if (variant->bytes > shape)
		parts[XFP_PART_OUTLIER] += variant->bytes - shape;
}

bool xfp_survey_balanced(const struct xfp_ledger_unit *unit, const struct xfp_candidate *list, uint32_t count,
			 bool otherwise)
{
	uint64_t parts[XFP_PARTS];

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &list[i];
		const struct xfp_variant variant = {
			.mode = (uint8_t)c->mode, .k = (uint8_t)c->k, .group = c->group, .library = c->library
		};

		if (!c->sigma_milli && c->mode >= XFP_MODE_V2)
			return c->bytes == shape_parts(unit, &variant, true, parts);
	}
	return otherwise;
}

/* ---- assignments ------------------------------------------------------------------------------- */

struct xfp_assignment xfp_variant_assignment(const struct xfp_variant *variant, const struct xfp_policy *policy)
{
	uint32_t bit = 1u << variant->k, smaller = policy->format.bits & (bit - 1);

	if (variant->mode < XFP_MODE_V2)
		return (struct xfp_assignment){ .mode = variant->mode, .k = variant->k, .bits = bit };
	while (smaller & (smaller - 1)) /* the largest smaller number of bits */
		smaller &= smaller - 1;
	return (struct xfp_assignment){ .mode = variant->mode,
					.k = variant->k,
					.sigma_milli = variant->sigma_milli,
					.group = variant->group,
					.bits = bit | smaller };
}

void xfp_assignment_narrow(const struct xfp_assignment *assignment, struct xfp_policy *policy,
			   struct xfp_parameters *parameters)
{
	policy->assigned = assignment;
	policy->fixed = false;
	policy->format.bits = 1u << assignment->k;
	policy->measured = assignment->bits | policy->format.bits;
	parameters->bits = policy->measured;
	parameters->modes = 1u << xfp_mode_to_fit(assignment->mode, parameters);
	parameters->group_size = assignment->group;
	parameters->outlier_sigma = assignment->sigma_milli;
}
