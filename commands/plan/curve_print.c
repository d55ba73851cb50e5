/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve_print.c - prints possible sizes for a goal, as text and JSON.
 */
#include <stdio.h>

#include "commands/plan/print.h"
#include "commands/ui/record.h"
#include "schemas/json_print.h"

static json_t *points_json(const struct xfp_plan_facts *facts)
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
	return points;
}

json_t *xfp_plan_curve_json(const struct xfp_plan_facts *facts)
{
	return XFP_JSON({ "units", xfp_json_count(facts->curve.units) },
			{ "surveyed", xfp_json_count(facts->curve.surveyed) }, { "points", points_json(facts) });
}

enum xfp_status xfp_plan_print_curve(const struct xfp_plan_facts *facts, struct xfp_error *err)
{
	const struct xfp_plan_curve *curve = &facts->curve;

	if (!curve->count)
		return XFP_OK;
	printf("\nPossible sizes for --target-size, and their mean relative squared error,\n%s:\n\n",
	       curve->surveyed == curve->units ? "by surveys"
	       : curve->surveyed               ? "by surveys and, where there are none, typical cosines"
					       : "by typical cosines (--survey measures)");
	return xfp_record_table("size=bytes%B,bits/weight=bits%.3f,error%.6f,on a GPU=gpu_bytes?%B,margin?%B", NULL,
				points_json(facts), err);
}
