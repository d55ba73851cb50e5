/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.c - possible sizes for a goal, from the fewest bits to the most, with the error of each.
 *
 * Sizes are solved as in a conversion, over surveys if the cache has them and over typical cosines otherwise.
 */
#include <stdlib.h>
#include <string.h>

#include "conversion/goal/shares.h"
#include "conversion/plan/plan.h"

#define POINTS 8

static enum xfp_status add_point(struct xfp_plan_curve *curve, struct xfp_shares *shares, uint64_t budget,
				 struct xfp_error *err)
{
	uint64_t elements = xfp_ledger_elements(shares->c->units.ledger), total;
	struct xfp_plan_point *point = &curve->point[curve->count];
	double weight = xfp_shares_weight(shares);
	struct xfp_bundle_breakdown breakdown;
	struct xfp_solution solution;
	enum xfp_status status = xfp_shares_solve(shares, XFP_FROM_ALL, budget, &solution, &total, err);

	if (!status)
		status = xfp_shares_total(shares, &total, &breakdown, err);
	if (status)
		return status;
	*point = (struct xfp_plan_point){ .file = breakdown.file,
					  .gpu = shares->c->request->goal.kind == XFP_GOAL_ENVELOPE ? total : 0,
					  .bits = elements ? 8 * (double)breakdown.file / (double)elements : 0,
					  .error = weight > 0 ? xfp_shares_error(shares) / weight : 0 };
	curve->count++;
	return XFP_OK;
}

static enum xfp_status solve_all(struct xfp_plan_curve *curve, struct xfp_shares *shares, struct xfp_error *err)
{
	struct xfp_solution solution;
	uint64_t least = 0, most = 0;
	enum xfp_status status = xfp_shares_solve(shares, XFP_FROM_ALL, 0, &solution, &least, err);

	if (!status)
		status = xfp_shares_solve(shares, XFP_FROM_ALL, UINT64_MAX / 2, &solution, &most, err);
	if (!status && !(curve->point = calloc(POINTS, sizeof *curve->point)))
		status = xfp_no_memory(err);
	for (uint32_t u = 0; u < shares->count; u++) {
		curve->units += shares->unit[u].offers != NULL;
		curve->surveyed += shares->unit[u].offers && shares->unit[u].surveyed;
	}
	for (uint64_t i = 0; !status && curve->units && i < POINTS; i++)
		status = add_point(curve, shares,
				   least + (most - least) / (POINTS - 1) * i + (i == POINTS - 1 ? POINTS : 0), err);
	return status;
}

enum xfp_status xfp_plan_curve(struct xfp_plan_facts *facts, struct xfp_error *err)
{
	struct xfp_conversion *c = facts->c;
	struct xfp_shares shares = { 0 };
	uint32_t floor[XFP_CLASSES];
	enum xfp_status status;

	/* Without a goal, ignore floors: a user would request a size instead of floors. */
	memcpy(floor, c->parameters.floor, sizeof floor);
	if (!c->request->goal.kind)
		memset(c->parameters.floor, 0, sizeof floor);
	status = xfp_shares_begin(c, false, &shares, err);
	facts->curve.budget = c->request->goal.kind ? shares.budget : 0;
	if (!status)
		status = solve_all(&facts->curve, &shares, err);
	memcpy(c->parameters.floor, floor, sizeof floor);
	xfp_shares_free(&shares);
	return status;
}
