/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal.h - how a conversion gets to a goal.
 *
 * First all units are surveyed. Then the goal is solved over what the surveys say, and each unit is measured on all
 * rows as it was assigned. Now it is known what all of them take: where that is more than the goal allows, units take
 * less, where that harms least; where it is much less, some take more. Such rounds are few. Each follows from surveys
 * and measurements alone, whatever else the cache holds: all are gone through again whenever a work folder is brought
 * up to date, as far as measurements reach, so that a run that was cut off goes on where it was.
 *
 * The bundle is never larger than the goal, and within a hundredth of it, or no unit can have more in what is left.
 */
#ifndef XFP_CONVERSION_GOAL_H
#define XFP_CONVERSION_GOAL_H

#include "conversion/goal/shares.h"

/* What headers tell before anything is read: XFP_UNMET where not even the fewest bits are as small as the goal, with
 * what is possible; XFP_USAGE where formats that are given exceed it, or there are more GPUs than parts to cut into. */
enum xfp_status xfp_goal_check(struct xfp_conversion *c, struct xfp_error *err);

/* As far as is known: fills in the states of all units, c->solved and the assignments among the parameters.
 * XFP_UNMET: floors that are given and the goal contradict, or the goal is below what the units take. */
enum xfp_status xfp_goal_prepare(struct xfp_conversion *c, bool check, struct xfp_error *err);

/* Which units lack a survey, c->units.todo of them; their work folder is brought up to date for make to run those. */
enum xfp_status xfp_goal_list_surveys(struct xfp_conversion *c, struct xfp_error *err);

/* Whether make has only to survey such a unit for now. */
static inline bool xfp_goal_surveys(const struct xfp_conversion *c, uint32_t unit)
{
	return (c->request->goal.kind || c->request->survey) && !c->solved.steps &&
	       c->units.ledger->units[unit].plan == XFP_PLAN_FIT;
}

#endif
