/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal_print.h - a conversion's goal, and how close the bundle is to it, for people and for programs.
 */
#ifndef XFP_GOAL_PRINT_H
#define XFP_GOAL_PRINT_H

#include <jansson.h>

#include "conversion/state/conversion.h"

/* What is said at the end, or planned: a few lines, whose text begins in a column of its own. */
void xfp_goal_print(const struct xfp_conversion *c, int column);
/* The same as JSON: null where there is no goal, or nothing is known of it. */
json_t *xfp_goal_json(const struct xfp_conversion *c);

#endif
