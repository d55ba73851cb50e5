/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - prints a plan as text (report.c) or JSON (json.c).
 */
#ifndef XFP_PLAN_PRINT_H
#define XFP_PLAN_PRINT_H

#include <jansson.h>

#include "conversion/plan/nodes.h"

#define XFP_PLAN_PREDICTIONS 8

/* Predictions for several numbers of nodes. */
struct xfp_plan_cluster {
	uint32_t count; /* 0: none requested, or nothing to predict */
	struct xfp_plan_nodes nodes[XFP_PLAN_PREDICTIONS];
	struct xfp_plan_nodes_time time[XFP_PLAN_PREDICTIONS];
};

enum xfp_status xfp_plan_print(const struct xfp_plan_facts *facts, const struct xfp_plan_cluster *cluster,
			       struct xfp_error *err);
enum xfp_status xfp_plan_print_json(const struct xfp_plan_facts *facts, const struct xfp_plan_cluster *cluster,
				    struct xfp_error *err);

/* Print the predictions (nodes_print.c). */
enum xfp_status xfp_plan_print_nodes(const struct xfp_plan_cluster *cluster, struct xfp_error *err);
json_t *xfp_plan_nodes_json(const struct xfp_plan_cluster *cluster);

/* Print facts->curve (curve_print.c). */
enum xfp_status xfp_plan_print_curve(const struct xfp_plan_facts *facts, struct xfp_error *err);
json_t *xfp_plan_curve_json(const struct xfp_plan_facts *facts);

#endif
