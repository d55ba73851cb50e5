/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal_print.h - print a conversion's goal and the bundle's distance from it, as text or JSON.
 */
#ifndef XFP_GOAL_PRINT_H
#define XFP_GOAL_PRINT_H

#include <jansson.h>

#include "conversion/state/conversion.h"

/* Print the goal and its result (expected result in a plan) in a few lines; the text starts at `column`. */
void xfp_goal_print(const struct xfp_conversion *c, int column);
/* The same as JSON; null if there is no goal or its result is unknown. */
json_t *xfp_goal_json(const struct xfp_conversion *c);

#endif
