/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goal.h - solves a conversion's goal.
 *
 * First, all units are surveyed. The goal is then solved over the surveys, and each unit is measured on all rows with
 * its assigned format. The measured total may differ: if it exceeds the goal, units with the least added error get
 * fewer bytes; if it is much smaller, some units get more. A few such rounds suffice. Each round depends only on
 * surveys and measurements, not on other cache contents: every update of a work folder replays all rounds whose
 * measurements exist, so an interrupted run resumes at the same round.
 *
 * The bundle never exceeds the goal. It is within 1 % of it unless no unit can use the remaining bytes.
 */
#ifndef XFP_CONVERSION_GOAL_H
#define XFP_CONVERSION_GOAL_H

#include "conversion/goal/allocation.h"

/* Check the goal from headers alone, before reading weights. Returns XFP_UNMET, with the possible range, if the fewest
 * bits exceed the goal; XFP_USAGE if fixed formats exceed it or a matrix has fewer parts than there are GPUs. */
enum xfp_status xfp_goal_check(struct xfp_conversion *c, struct xfp_error *err);

/* Fill in the states of all units, c->solved and the assignments in the parameters from the measurements that exist.
 * Returns XFP_UNMET if requested floors contradict the goal, or the goal is below the minimum of the units. */
enum xfp_status xfp_goal_prepare(struct xfp_conversion *c, bool check, struct xfp_error *err);

/* Find the units without a survey (c->units.todo of them) and update the work folder so that make runs their
 * surveys. */
enum xfp_status xfp_goal_list_surveys(struct xfp_conversion *c, struct xfp_error *err);

/* Whether make must only survey the unit for now. */
static inline bool xfp_goal_surveys(const struct xfp_conversion *c, uint32_t unit)
{
	return (c->request->goal.kind || c->request->survey) && !c->solved.steps &&
	       c->units.ledger->units[unit].plan == XFP_PLAN_FIT;
}

#endif
