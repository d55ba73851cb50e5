/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.c - sizes that could be asked for, from the fewest bits to the most, and what error each would have.
 *
 * They are solved as a conversion would solve them, over surveys where the cache has them and over typical cosines
 * elsewhere.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/size.h"
#include "base/text/table.h"
#include "commands/goal/shares.h"
#include "commands/plan/plan.h"
#include "schemas/json_print.h"

#define POINTS 8

static enum xfp_status add_point(struct xfp_plan_curve *curve, struct xfp_shares *shares, uint64_t budget,
				 struct xfp_error *err)
{
	uint64_t elements = xfp_ledger_elements(shares->c->ledger), total;
	struct xfp_plan_point *point = &curve->point[curve->count];
	double weight = xfp_shares_weight(shares);
	struct xfp_bundle_makeup makeup;
	struct xfp_solution solution;
	enum xfp_status status = xfp_shares_solve(shares, XFP_FROM_ALL, budget, &solution, &total, err);

	if (!status)
		status = xfp_shares_total(shares, &total, &makeup, err);
	if (status)
		return status;
	*point = (struct xfp_plan_point){ .file = makeup.file,
					  .gpu = shares->c->options.goal.kind == XFP_GOAL_ENVELOPE ? total : 0,
					  .bits = elements ? 8 * (double)makeup.file / (double)elements : 0,
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

	/* A size is asked for instead of a floor, unless both are given. */
	memcpy(floor, c->options.parameters.floor, sizeof floor);
	if (!c->options.goal.kind)
		memset(c->options.parameters.floor, 0, sizeof floor);
	status = xfp_shares_begin(c, false, &shares, err);
	facts->curve.budget = c->options.goal.kind ? shares.budget : 0;
	if (!status)
		status = solve_all(&facts->curve, &shares, err);
	memcpy(c->options.parameters.floor, floor, sizeof floor);
	xfp_shares_free(&shares);
	return status;
}

/* ---- output ------------------------------------------------------------------------------------ */

enum { SIZE, BITS, ERROR, GPU, MARGIN, COLUMNS };

/* Without an envelope its columns are left out, without any goal the margin. */
static void columns(bool goal, bool gpus, struct xfp_table_column layout[COLUMNS + 1])
{
	layout[SIZE] = (struct xfp_table_column){ "size", 0, 0, 0 };
	layout[BITS] = (struct xfp_table_column){ "bits/weight", 0, 2, 0 };
	layout[ERROR] = (struct xfp_table_column){ "error", 0, 2, 0 };
	layout[GPU] = (struct xfp_table_column){ gpus ? "on a GPU" : goal ? "margin" : NULL, 0, 2, 0 };
	layout[MARGIN] = (struct xfp_table_column){ gpus ? "margin" : NULL, 0, 2, 0 };
	layout[COLUMNS] = (struct xfp_table_column){ NULL, 0, 0, 0 };
}

static void margin_text(uint64_t allowed, uint64_t taken, char cell[XFP_TABLE_CELL])
{
	char text[32];

	xfp_human(allowed < taken ? (double)(taken - allowed) : (double)(allowed - taken), "B", text);
	snprintf(cell, XFP_TABLE_CELL, "%s%s", allowed < taken ? "-" : "", text);
}

void xfp_plan_print_curve(const struct xfp_plan_facts *facts)
{
	const struct xfp_plan_curve *curve = &facts->curve;
	bool gpus = facts->c->options.goal.kind == XFP_GOAL_ENVELOPE;
	struct xfp_table_column layout[COLUMNS + 1];
	struct xfp_table table = { .column = layout };

	if (!curve->count)
		return;
	columns(curve->budget, gpus, layout);
	printf("\nSizes that --target-size could name, and their mean relative squared error,\n%s:\n\n",
	       curve->surveyed == curve->units ? "by surveys"
	       : curve->surveyed               ? "by surveys and, where there are none, typical cosines"
					       : "by typical cosines (--survey measures)");
	for (uint32_t i = 0; i < curve->count; i++) {
		const struct xfp_plan_point *point = &curve->point[i];
		char text[32];
		char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, xfp_human((double)point->file, "B", text));

		snprintf(row[BITS], sizeof row[BITS], "%.3f", point->bits);
		snprintf(row[ERROR], sizeof row[ERROR], "%.6f", point->error);
		if (gpus)
			xfp_human((double)point->gpu, "B", row[GPU]);
		if (curve->budget)
			margin_text(curve->budget, gpus ? point->gpu : point->file, row[gpus ? MARGIN : GPU]);
	}
	xfp_table_print(stdout, &table);
}

json_t *xfp_plan_curve_json(const struct xfp_plan_facts *facts)
{
	const struct xfp_plan_curve *curve = &facts->curve;
	bool gpus = facts->c->options.goal.kind == XFP_GOAL_ENVELOPE;
	json_t *points = json_array();

	for (uint32_t i = 0; i < curve->count; i++) {
		const struct xfp_plan_point *p = &curve->point[i];
		int64_t margin = (int64_t)curve->budget - (int64_t)(gpus ? p->gpu : p->file);

		xfp_json_add(&points, XFP_JSON({ "bytes", json_integer((json_int_t)p->file) },
					       { "bits", json_real(p->bits) }, { "error", json_real(p->error) },
					       { "gpu_bytes", gpus ? json_integer((json_int_t)p->gpu) : json_null() },
					       { "margin", curve->budget ? json_integer(margin) : json_null() }));
	}
	return XFP_JSON({ "units", json_integer((json_int_t)curve->units) },
			{ "surveyed", json_integer((json_int_t)curve->surveyed) }, { "points", points });
}
