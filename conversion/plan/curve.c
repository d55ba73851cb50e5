/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.c - possible sizes for a goal, from the fewest bits to the most, with the error of each.
 *
 * Sizes are solved as in a conversion, over surveys if the cache has them and over typical cosines otherwise.
 */
#include <stdlib.h>
#include <string.h>

#include "conversion/goal/allocation.h"
#include "conversion/plan/plan.h"

#define POINTS 8

static enum xfp_status add_point(struct xfp_plan_curve *curve, struct xfp_allocation *allocation, uint64_t budget,
				 struct xfp_error *err)
{
	uint64_t elements = xfp_ledger_elements(allocation->c->units.ledger), total;
	struct xfp_plan_point *point = &curve->point[curve->count];
	double weight = xfp_allocation_weight(allocation);
	struct xfp_bundle_breakdown breakdown;
	struct xfp_solution solution;
	enum xfp_status status = xfp_allocation_solve(allocation, XFP_FROM_ALL, budget, &solution, &total, err);

	if (!status)
		status = xfp_allocation_total(allocation, &total, &breakdown, err);
	if (status)
		return status;
	*point = (struct xfp_plan_point){ .file = breakdown.file,
					  .gpu = allocation->c->request->goal.kind == XFP_GOAL_ENVELOPE ? total : 0,
					  .bits = elements ? 8 * (double)breakdown.file / (double)elements : 0,
					  .error = weight > 0 ? xfp_allocation_error(allocation) / weight : 0 };
	curve->count++;
	return XFP_OK;
}

static enum xfp_status solve_all(struct xfp_plan_curve *curve, struct xfp_allocation *allocation, struct xfp_error *err)
{
	struct xfp_solution solution;
	uint64_t min = 0, max = 0;
	enum xfp_status status = xfp_allocation_solve(allocation, XFP_FROM_ALL, 0, &solution, &min, err);

	if (!status)
		status = xfp_allocation_solve(allocation, XFP_FROM_ALL, UINT64_MAX / 2, &solution, &max, err);
	if (!status && !(curve->point = calloc(POINTS, sizeof *curve->point)))
		status = xfp_no_memory(err);
	for (uint32_t u = 0; u < allocation->count; u++) {
		curve->units += allocation->unit[u].variants != NULL;
		curve->surveyed += allocation->unit[u].variants && allocation->unit[u].surveyed;
	}
	for (uint64_t i = 0; !status && curve->units && i < POINTS; i++)
		status = add_point(curve, allocation,
				   min + (max - min) / (POINTS - 1) * i + (i == POINTS - 1 ? POINTS : 0), err);
	return status;
}

enum xfp_status xfp_plan_curve(struct xfp_plan_facts *facts, struct xfp_error *err)
{
	struct xfp_conversion *c = facts->c;
	struct xfp_allocation allocation = { 0 };
	uint32_t floor[XFP_CLASSES];
	enum xfp_status status;

	/* Without a goal, ignore floors: a user would request a size instead of floors. */
	memcpy(floor, c->parameters.floor, sizeof floor);
	if (!c->request->goal.kind)
		memset(c->parameters.floor, 0, sizeof floor);
	status = xfp_allocation_begin(c, false, &allocation, err);
	facts->curve.budget = c->request->goal.kind ? allocation.budget : 0;
	if (!status)
		status = solve_all(&facts->curve, &allocation, err);
	memcpy(c->parameters.floor, floor, sizeof floor);
	xfp_allocation_free(&allocation);
	return status;
}
