/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve_print.c - prints possible sizes for a goal, as text and JSON.
 */
#include <stdio.h>

#include "base/text/size.h"
#include "base/text/table.h"
#include "commands/plan/print.h"
#include "schemas/json_print.h"

enum { SIZE, BITS, ERROR, GPU, MARGIN, COLUMNS };

/* Columns of the envelope are omitted without one, and the margin without a goal. */
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
	bool gpus = facts->c->request->goal.kind == XFP_GOAL_ENVELOPE;
	struct xfp_table_column layout[COLUMNS + 1];
	struct xfp_table table = { .column = layout };

	if (!curve->count)
		return;
	columns(curve->budget, gpus, layout);
	printf("\nPossible sizes for --target-size, and their mean relative squared error,\n%s:\n\n",
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
	bool gpus = facts->c->request->goal.kind == XFP_GOAL_ENVELOPE;
	json_t *points = json_array();

	for (uint32_t i = 0; i < curve->count; i++) {
		const struct xfp_plan_point *p = &curve->point[i];
		int64_t margin = (int64_t)curve->budget - (int64_t)(gpus ? p->gpu : p->file);

		xfp_json_add(&points, XFP_JSON({ "bytes", xfp_json_count(p->file) }, { "bits", json_real(p->bits) },
					       { "error", json_real(p->error) },
					       { "gpu_bytes", gpus ? xfp_json_count(p->gpu) : json_null() },
					       { "margin", curve->budget ? json_integer(margin) : json_null() }));
	}
	return XFP_JSON({ "units", xfp_json_count(curve->units) }, { "surveyed", xfp_json_count(curve->surveyed) },
			{ "points", points });
}
