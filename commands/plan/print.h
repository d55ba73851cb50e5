/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - prints a plan as text (report.c) or JSON (json.c).
 */
#ifndef XFP_PLAN_PRINT_H
#define XFP_PLAN_PRINT_H

#include <jansson.h>

#include "conversion/plan/plan.h"

enum xfp_status xfp_plan_print(const struct xfp_plan_facts *facts, struct xfp_error *err);
enum xfp_status xfp_plan_print_json(const struct xfp_plan_facts *facts, struct xfp_error *err);

/* Print facts->curve (curve_print.c). */
enum xfp_status xfp_plan_print_curve(const struct xfp_plan_facts *facts, struct xfp_error *err);
json_t *xfp_plan_curve_json(const struct xfp_plan_facts *facts);

#endif
