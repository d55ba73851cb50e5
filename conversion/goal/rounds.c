/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/goal/rounds.h"

#include <stdlib.h>

#include "schemas/policy.h"

#define MAX_ROUNDS 12
#define ROUNDS_UP 4      /* rounds in which units may get more */
#define SLACK_SHARE 100u /* fraction of the goal that may remain unused */

static enum xfp_status fail_floors(const struct xfp_allocation *s, uint64_t total, struct xfp_error *err)
{
	const struct xfp_goal *goal = &s->c->request->goal;
	char taken[64], allowed[64];
	bool floors = false;

	for (uint32_t u = 0; u < s->count; u++)
		floors |= xfp_policy_of_unit(&s->c->parameters, &s->c->units.ledger->units[u]).floor > 0;
	return xfp_fail(err, XFP_UNMET,
			floors ? "%s: the fewest bits that meet the floors need %s, but the goal allows %s; lower "
				 "the floors, or raise the goal"
			       : "%s: the fewest bits need %s, but the goal allows %s; raise the goal",
			goal->option, xfp_allocation_text(s->c, total, taken),
			xfp_allocation_text(s->c, s->budget, allowed));
}

/* ---- measurements ------------------------------------------------------------------------------ */

/* Store the measurement in the unit's variant. Bytes of outliers depend only on the threshold, so one measured variant
 * corrects all variants with the same threshold. */
static void store_measured(struct xfp_allocation *s, uint32_t u)
{
	const struct xfp_unit_state *state = &s->c->units.state[u];
	const struct xfp_candidate *chosen = &state->choice.candidate;
	struct xfp_unit_allocation *share = &s->unit[u];
	struct xfp_variant *now = share->at == XFP_NO_VARIANT ? NULL : &share->variants[share->at];
	uint64_t before;

	if (!now || chosen->mode == XFP_MODE_KEEP) {
		const struct xfp_variant variant = { .mode = (uint8_t)chosen->mode,
						     .k = (uint8_t)chosen->k,
						     .group = chosen->group,
						     .library = chosen->library,
						     .bytes = chosen->bytes };

		share->source = now != NULL;
		share->mode = (enum xfp_mode)chosen->mode;
		share->k = chosen->k;
		xfp_variant_parts(&s->c->units.ledger->units[u], &variant, share->balanced, share->rest);
		return;
	}
	before = now->bytes;
	for (uint32_t i = 0; i < share->count; i++)
		if (share->variants[i].sigma_milli == now->sigma_milli) {
			share->variants[i].bytes = share->variants[i].bytes + chosen->bytes - before;
			share->variants[i].exact = true;
		}
	now->error = state->choice.calibrated ? state->choice.output.error : chosen->error;
	now->cosine = state->choice.calibrated ? state->choice.output.median : chosen->cos_median;
	now->unfit = !state->choice.met;
}

/* ---- rounds ------------------------------------------------------------------------------------ */

/* Copy the assignments to the parameters. */
static enum xfp_status assign(struct xfp_allocation *s, struct xfp_error *err)
{
	struct xfp_parameters *p = &s->c->parameters;

	xfp_conversion_unassign(s->c);
	p->assigned = xfp_allocation_assign(s);
	p->assigned_count = p->assigned ? s->count : 0;
	return p->assigned ? XFP_OK : xfp_no_memory(err);
}

/* Measure the units whose variant differs from `before`, and store the results. */
static enum xfp_status measure_all(struct xfp_allocation *s, xfp_measure *measure, const uint32_t *before, bool check,
				   bool *measured, struct xfp_error *err)
{
	struct xfp_conversion *c = s->c;
	enum xfp_status status = XFP_OK;

	*measured = true;
	for (uint32_t u = 0; !status && u < s->count; u++) {
		if (c->units.ledger->units[u].plan != XFP_PLAN_FIT)
			continue;
		if (c->signals && xfp_signals_arrived(c->signals))
			return xfp_fail(err, XFP_FAILED, "interrupted");
		if (!before || before[u] != s->unit[u].at) {
			status = measure(c, u, check, err);
			if (!status && c->units.state[u].decided)
				store_measured(s, u);
		}
		*measured &= c->units.state[u].decided;
	}
	return status;
}

/* Whether another round is needed; *from is the direction. */
static bool needs_round(const struct xfp_allocation *s, int round, uint64_t total, enum xfp_choose_from *from)
{
	bool unfit = false;

	for (uint32_t u = 0; u < s->count; u++)
		unfit |= s->unit[u].variants && !s->unit[u].source && s->unit[u].variants[s->unit[u].at].unfit;
	*from = total > s->budget ? XFP_FROM_LESS : XFP_FROM_MORE;
	if (round >= MAX_ROUNDS)
		return false;
	return unfit || total > s->budget || (round < ROUNDS_UP && s->budget - total > s->budget / SLACK_SHARE);
}

/* Choose variants for the next round; `before` receives the current ones. */
static enum xfp_status mend(struct xfp_allocation *s, enum xfp_choose_from from, uint32_t *before, bool *changed,
			    struct xfp_error *err)
{
	struct xfp_solution solution;
	enum xfp_status status = XFP_OK;
	uint64_t total = UINT64_MAX;

	for (uint32_t u = 0; u < s->count; u++)
		before[u] = s->unit[u].at;
	for (int attempt = 0; !status && total > s->budget && attempt < 3; attempt++) {
		static const enum xfp_choose_from wider[] = { XFP_FROM_LESS, XFP_FROM_BELOW, XFP_FROM_ALL };

		for (uint32_t u = 0; u < s->count; u++)
			s->unit[u].at = before[u];
		status = xfp_allocation_solve(s, attempt ? wider[attempt] : from, s->budget, &solution, &total, err);
	}
	if (!status && total > s->budget)
		status = fail_floors(s, total, err);
	*changed = false;
	for (uint32_t u = 0; !status && u < s->count; u++)
		*changed |= before[u] != s->unit[u].at;
	return status;
}

enum xfp_status xfp_rounds_run(struct xfp_allocation *s, uint64_t total, xfp_measure *measure, bool check,
			       struct xfp_error *err)
{
	struct xfp_solved *solved = &s->c->solved;
	uint32_t *before = malloc((s->count + (size_t)1) * sizeof *before);
	enum xfp_status status = before ? XFP_OK : xfp_no_memory(err);
	bool measured = true, changed = true;
	enum xfp_choose_from from;

	if (!status && total > s->budget)
		status = fail_floors(s, total, err);
	for (int round = 0; !status && changed; round++) {
		solved->steps = 1 + (uint32_t)round;
		if ((status = assign(s, err)) ||
		    (status = measure_all(s, measure, round ? before : NULL, check, &measured, err)) || !measured ||
		    (status = xfp_allocation_total(s, &solved->total, NULL, err)) ||
		    !needs_round(s, round, solved->total, &from))
			break;
		if (solved->total > s->budget && solved->total > solved->max)
			solved->max = solved->total;
		status = mend(s, from, before, &changed, err);
	}
	solved->settled = !status && measured;
	solved->binding = solved->max > s->budget;
	if (solved->settled && !solved->binding)
		solved->max = solved->total; /* measured, no longer expected */
	if (solved->settled && solved->total > s->budget)
		status = xfp_fail(
			err, XFP_UNMET,
			"%s: after %d rounds of measuring, the size is %s, but the goal allows %s; raise the goal",
			s->c->request->goal.option, MAX_ROUNDS,
			xfp_allocation_text(s->c, solved->total, (char[64]){ 0 }),
			xfp_allocation_text(s->c, s->budget, (char[64]){ 0 }));
	free(before);
	return status;
}
