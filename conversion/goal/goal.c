/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/goal/goal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "conversion/estimate/gpu.h"
#include "conversion/goal/rounds.h"
#include "conversion/state/prepare_unit.h"

/* ---- checks before weights are read ------------------------------------------------------------ */

/* Hint for a goal such as "--envelope 24", which hardly means 24 bytes. */
static const char *bare_text(const struct xfp_goal *goal)
{
	return goal->bare ? "; a number without a unit is bytes: " XFP_SIZE_UNITS : "";
}

static enum xfp_status check_gpus(const struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_goal *goal = &c->request->goal;

	for (uint32_t u = 0; goal->kind == XFP_GOAL_ENVELOPE && u < c->units.ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];

		if (xfp_gpu_max_split(unit) < goal->gpus)
			return xfp_fail(err, XFP_USAGE,
					"%s: unit %s (%s) is split by %s and has %" PRIu64 " of them; name at most "
					"that many GPUs",
					goal->option, xfp_printable(unit->name).text, unit->role,
					xfp_gpu_split_name(xfp_gpu_split_of(unit)), xfp_gpu_max_split(unit));
	}
	return XFP_OK;
}

/* A tiny reserve is valid but has no effect. */
static void warn_reserve(const struct xfp_conversion *c)
{
	if (c->request->goal.bare_reserve)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_BARE_RESERVE);
}

/* A profile has weights for every model, so a pattern without a match only causes a notice. The same applies to weights
 * without a goal, which affect only the sizes listed by a plan. */
static void warn_weights(const struct xfp_conversion *c)
{
	const struct xfp_goal *goal = &c->request->goal;

	if (goal->weight_count && !goal->kind && !c->request->planning)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_IDLE_WEIGHT);
	for (uint32_t i = 0; i < goal->weight_count; i++) {
		const struct xfp_override pattern = { .pattern = goal->weights[i].pattern };
		bool matches = false;

		for (uint32_t u = 0; !matches && u < c->units.ledger->unit_count; u++) {
			const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];

			matches = xfp_override_matches(&pattern, unit->name, unit->role, unit->class_);
		}
		if (!matches)
			XFP_NOTIFY(c, .kind = XFP_NOTICE_UNMATCHED_WEIGHT, .name = goal->weights[i].pattern);
	}
}

/* Whether any storage setting other than floors is given. */
static bool has_formats(const struct xfp_parameters *p)
{
	bool any = p->lm_head != XFP_LM_HEAD_QUANT;

	for (int i = 0; i < XFP_CLASSES; i++)
		any |= p->format[i].form != XFP_FORM_AUTO;
	for (uint32_t i = 0; i < p->override_count; i++)
		any |= !p->overrides[i].is_floor;
	return any;
}

/* Total size of units with a given format: units packed alone and units of fixed bits. Their bits cannot be reduced. */
static enum xfp_status total_fixed(struct xfp_allocation *s, uint64_t *total, struct xfp_error *err)
{
	*total = 0;
	if (!has_formats(&s->c->parameters))
		return XFP_OK;
	for (uint32_t u = 0; u < s->count; u++) {
		const struct xfp_policy policy = xfp_policy_of_unit(&s->c->parameters, &s->c->units.ledger->units[u]);

		if (s->unit[u].variants && !policy.fixed) {
			s->unit[u].at = XFP_NO_VARIANT; /* its `rest` is empty */
			s->unit[u].mode = XFP_MODE_FP8;
		}
	}
	return xfp_allocation_total(s, total, NULL, err);
}

/* Expected minimum total, including overhead of indexes and respecting requested floors. */
static enum xfp_status find_nearest(struct xfp_conversion *c, uint64_t *total, struct xfp_error *err)
{
	struct xfp_allocation allocation = { 0 };
	struct xfp_solution solution;
	enum xfp_status status = xfp_allocation_of_headers(c, XFP_HEADERS_LIKELY, &allocation, err);

	if (!status)
		status = xfp_allocation_solve(&allocation, XFP_FROM_ALL, 0, &solution, total, err);
	xfp_allocation_free(&allocation);
	return status;
}

enum xfp_status xfp_goal_check(struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_goal *goal = &c->request->goal;
	struct xfp_allocation allocation = { 0 };
	struct xfp_solution solution;
	uint64_t total, fixed = 0, likely = 0;
	enum xfp_status status;
	char min[64], allowed[64], nearest[64];

	warn_weights(c);
	warn_reserve(c);
	if (!goal->kind)
		return XFP_OK;
	if ((status = check_gpus(c, err)) ||
	    (status = xfp_allocation_of_headers(c, XFP_HEADERS_LOWER_BOUND, &allocation, err)) ||
	    (status = xfp_allocation_solve(&allocation, XFP_FROM_ALL, 0, &solution, &total, err)) ||
	    total <= allocation.budget || (status = total_fixed(&allocation, &fixed, err)) ||
	    (status = find_nearest(c, &likely, err)))
		goto done;
	xfp_allocation_text(c, total, min);
	xfp_allocation_text(c, allocation.budget, allowed);
	xfp_allocation_text(c, likely > total ? likely : total, nearest);
	if (fixed > allocation.budget)
		status = xfp_fail(err, XFP_USAGE,
				  "%s: tensors that are kept or have a format of their own need %s, but the goal "
				  "allows %s; give them fewer bits with --format, or request about %s%s",
				  goal->option, xfp_allocation_text(c, fixed, (char[64]){ 0 }), allowed, nearest,
				  bare_text(goal));
	else
		status = xfp_fail(err, XFP_UNMET,
				  "%s: the fewest bits need at least %s, but the goal allows %s; the nearest goal "
				  "that is probably possible is %s%s",
				  goal->option, min, allowed, nearest, bare_text(goal));
done:
	xfp_allocation_free(&allocation);
	return status;
}

/* ------------------------------------------------------------------------------------------------ */

static bool all_direct_done(const struct xfp_conversion *c)
{
	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++)
		if (c->units.ledger->units[u].plan != XFP_PLAN_FIT && !c->units.state[u].done)
			return false;
	return true;
}

/* Set the expected formats, error and total: for plans, and before all surveys exist. */
static void sum_up(struct xfp_allocation *s)
{
	struct xfp_solved *solved = &s->c->solved;
	double weight = xfp_allocation_weight(s);

	xfp_allocation_expect(s);
	solved->error = weight > 0 ? xfp_allocation_error(s) / weight : 0;
	xfp_allocation_total(s, &solved->total, &solved->breakdown, NULL);
}

enum xfp_status xfp_goal_prepare(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	struct xfp_allocation allocation = { 0 };
	struct xfp_solution solution;
	enum xfp_status status;
	uint64_t total;
	bool surveyed;

	c->solved = (struct xfp_solved){ 0 };
	xfp_conversion_unassign(c);
	if ((status = xfp_allocation_begin(c, check, &allocation, err)) ||
	    (status =
		     xfp_allocation_solve(&allocation, XFP_FROM_ALL, UINT64_MAX / 2, &solution, &c->solved.max, err)) ||
	    (status = xfp_allocation_solve(&allocation, XFP_FROM_ALL, allocation.budget, &solution, &total, err)))
		goto done;
	c->solved.budget = allocation.budget;
	c->solved.binding = c->solved.max > allocation.budget;
	surveyed = !allocation.missing && all_direct_done(c);
	if (surveyed)
		status = xfp_rounds_run(&allocation, total, xfp_prepare_unit, check, err);
	if (!status)
		sum_up(&allocation);
done:
	xfp_allocation_free(&allocation);
	return status;
}

enum xfp_status xfp_goal_list_surveys(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_candidate *list = calloc(XFP_MAX_SURVEYED, sizeof *list);
	enum xfp_status status = list ? XFP_OK : xfp_no_memory(err);

	c->units.todo = 0;
	c->units.weights = c->units.weights_done = 0;
	c->solved = (struct xfp_solved){ 0 };
	xfp_conversion_unassign(c);
	for (uint32_t u = 0; !status && u < c->units.ledger->unit_count; u++) {
		uint32_t count;
		bool found = true;

		if (c->signals && xfp_signals_arrived(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (c->units.ledger->units[u].plan == XFP_PLAN_FIT)
			status = xfp_prepare_survey(c, u, false, list, &count, &found, err);
		c->units.todo += !found;
		c->units.weights += xfp_unit_weights(&c->units.ledger->units[u]);
		c->units.state[u].done = found; /* done for this phase */
	}
	free(list);
	return status;
}
