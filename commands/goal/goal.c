/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/goal/goal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "commands/convert/prepare.h"
#include "commands/convert/prepare_unit.h"
#include "commands/estimate/gpu.h"
#include "schemas/json_print.h"

#define MOST_ROUNDS 12
#define ROUNDS_UP 4      /* of them, those in which units may be given more */
#define SLACK_SHARE 100u /* of the goal: what may be left */

/* ---- before anything is read ------------------------------------------------------------------- */

/* Bits are rounded up: whoever names what is printed here has a goal that is large enough. */
static const char *size_text(const struct xfp_conversion *c, uint64_t bytes, char text[64])
{
	uint64_t elements = xfp_ledger_elements(c->ledger);
	char human[32];

	xfp_human((double)bytes, "B", human);
	if (c->options.goal.kind == XFP_GOAL_BPW && elements)
		snprintf(text, 64, "%.4f bits a weight (%s)", ceil((double)bytes * 8e4 / (double)elements) / 1e4,
			 human);
	else
		snprintf(text, 64, "%" PRIu64 " bytes (%s)%s", bytes, human,
			 c->options.goal.kind == XFP_GOAL_ENVELOPE ? " on a GPU" : "");
	return text;
}

static enum xfp_status check_gpus(const struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_goal *goal = &c->options.goal;

	for (uint32_t u = 0; goal->kind == XFP_GOAL_ENVELOPE && u < c->ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &c->ledger->units[u];

		if (xfp_gpu_most(unit) < goal->gpus)
			return xfp_fail(err, XFP_USAGE,
					"%s: unit %s (%s) is cut by %s and has %" PRIu64
					" of them; name no more GPUs than that",
					goal->said, xfp_printable(unit->name).text, unit->role,
					xfp_cut_name(xfp_gpu_cut(unit)), xfp_gpu_most(unit));
	}
	return XFP_OK;
}

/* A profile has weights for every model, so that one that matches nothing is remarked on and no more; likewise any
 * without a goal, where only the sizes that a plan shows follow from them. */
static void remark_weights(const struct xfp_conversion *c)
{
	const struct xfp_goal *goal = &c->options.goal;

	if (goal->weight_count && !goal->kind && !c->options.planning && !c->options.quiet)
		fputs("xfp: --weight: decides nothing without a goal, such as --target-size\n", stderr);
	for (uint32_t i = 0; i < goal->weight_count; i++) {
		const struct xfp_override pattern = { .pattern = goal->weights[i].pattern };
		bool matches = false;

		for (uint32_t u = 0; !matches && u < c->ledger->unit_count; u++) {
			const struct xfp_ledger_unit *unit = &c->ledger->units[u];

			matches = xfp_override_matches(&pattern, unit->name, unit->role, unit->class_);
		}
		if (!matches && !c->options.quiet)
			fprintf(stderr, "xfp: --weight %s: matches no unit\n",
				xfp_printable(goal->weights[i].pattern).text);
	}
}

/* Whether anything but floors was said of how weights are stored. */
static bool has_formats(const struct xfp_parameters *p)
{
	bool any = p->lm_head != XFP_LM_HEAD_QUANT;

	for (int i = 0; i < XFP_CLASSES; i++)
		any |= p->format[i].form != XFP_FORM_AUTO;
	for (uint32_t i = 0; i < p->override_count; i++)
		any |= !p->overrides[i].is_floor;
	return any;
}

/* What cannot be given fewer bits, since its format is given: units that are packed alone and those of fixed bits. */
static enum xfp_status total_fixed(struct xfp_shares *s, uint64_t *total, struct xfp_error *err)
{
	*total = 0;
	if (!has_formats(&s->c->options.parameters))
		return XFP_OK;
	for (uint32_t u = 0; u < s->count; u++) {
		const struct xfp_policy policy = xfp_policy_of_unit(&s->c->options.parameters, &s->c->ledger->units[u]);

		if (s->unit[u].offers && !policy.fixed) {
			s->unit[u].at = XFP_NO_OFFER; /* its `rest` is empty */
			s->unit[u].mode = XFP_MODE_FP8;
		}
	}
	return xfp_shares_total(s, total, NULL, err);
}

/* What everything is likely to take at the least, with what comes with indices, and by the floors that are given. */
static enum xfp_status find_nearest(struct xfp_conversion *c, uint64_t *total, struct xfp_error *err)
{
	struct xfp_shares shares = { 0 };
	struct xfp_solution solution;
	enum xfp_status status = xfp_shares_of_headers(c, XFP_HEADERS_LIKELY, &shares, err);

	if (!status)
		status = xfp_shares_solve(&shares, XFP_FROM_ALL, 0, &solution, total, err);
	xfp_shares_free(&shares);
	return status;
}

enum xfp_status xfp_goal_check(struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_goal *goal = &c->options.goal;
	struct xfp_shares shares = { 0 };
	struct xfp_solution solution;
	uint64_t total, fixed = 0, likely = 0;
	enum xfp_status status;
	char least[64], allowed[64], nearest[64];

	remark_weights(c);
	if (!goal->kind)
		return XFP_OK;
	if ((status = check_gpus(c, err)) || (status = xfp_shares_of_headers(c, XFP_HEADERS_LEAST, &shares, err)) ||
	    (status = xfp_shares_solve(&shares, XFP_FROM_ALL, 0, &solution, &total, err)) || total <= shares.budget ||
	    (status = total_fixed(&shares, &fixed, err)) || (status = find_nearest(c, &likely, err)))
		goto done;
	size_text(c, total, least);
	size_text(c, shares.budget, allowed);
	size_text(c, likely > total ? likely : total, nearest);
	if (fixed > shares.budget)
		status = xfp_fail(err, XFP_USAGE,
				  "%s: what is kept or has a format of its own takes %s already, and the goal allows "
				  "%s; give it fewer bits with --format, or name a goal of about %s",
				  goal->said, size_text(c, fixed, (char[64]){ 0 }), allowed, nearest);
	else
		status = xfp_fail(err, XFP_UNMET,
				  "%s: with the fewest bits everything takes at least %s, and the goal allows %s; the "
				  "nearest goal that is likely to be possible is %s",
				  goal->said, least, allowed, nearest);
done:
	xfp_shares_free(&shares);
	return status;
}

/* ---- what was measured ------------------------------------------------------------------------- */

/* Bytes of outliers depend on the threshold alone: one of its offers that is measured tells those of all. */
static void take_measured(struct xfp_shares *s, uint32_t u)
{
	const struct xfp_unit_state *state = &s->c->units[u];
	const struct xfp_candidate *chosen = &state->choice.candidate;
	struct xfp_share *share = &s->unit[u];
	struct xfp_offer *now = share->at == XFP_NO_OFFER ? NULL : &share->offers[share->at];
	uint64_t before;

	if (!now || chosen->mode == XFP_MODE_KEEP) {
		const struct xfp_offer offer = { .mode = (uint8_t)chosen->mode,
						 .k = (uint8_t)chosen->k,
						 .group = chosen->group,
						 .library = chosen->library,
						 .bytes = chosen->bytes };

		share->source = now != NULL;
		share->mode = (enum xfp_mode)chosen->mode;
		share->k = chosen->k;
		xfp_offer_parts(&s->c->ledger->units[u], &offer, share->balanced, share->rest);
		return;
	}
	before = now->bytes;
	for (uint32_t i = 0; i < share->count; i++)
		if (share->offers[i].sigma_milli == now->sigma_milli) {
			share->offers[i].bytes = share->offers[i].bytes + chosen->bytes - before;
			share->offers[i].exact = true;
		}
	now->error = chosen->error;
	now->cosine = chosen->cos_median;
	now->unfit = !state->choice.met;
}

/* ---- rounds ------------------------------------------------------------------------------------ */

/* Their assignments become the parameters'. */
static enum xfp_status assign(struct xfp_shares *s, struct xfp_error *err)
{
	struct xfp_parameters *p = &s->c->options.parameters;

	free(p->assigned);
	p->assigned = xfp_shares_assign(s);
	p->assigned_count = p->assigned ? s->count : 0;
	return p->assigned ? XFP_OK : xfp_no_memory(err);
}

/* Units that have another offer than `before`; all are told how far they are. */
static enum xfp_status prepare(struct xfp_shares *s, const uint32_t *before, bool check, bool *measured,
			       struct xfp_error *err)
{
	struct xfp_conversion *c = s->c;
	enum xfp_status status = XFP_OK;

	*measured = true;
	for (uint32_t u = 0; !status && u < s->count; u++) {
		if (c->ledger->units[u].plan != XFP_PLAN_FIT)
			continue;
		if (c->signals && xfp_signals_came(c->signals))
			return xfp_fail(err, XFP_FAILED, "interrupted");
		if (!before || before[u] != s->unit[u].at) {
			status = xfp_prepare_unit(c, u, check, err);
			if (!status && c->units[u].decided)
				take_measured(s, u);
		}
		*measured &= c->units[u].decided;
	}
	return status;
}

static enum xfp_status fail_floors(const struct xfp_shares *s, uint64_t total, struct xfp_error *err)
{
	const struct xfp_goal *goal = &s->c->options.goal;
	char taken[64], allowed[64];
	bool floors = false;

	for (uint32_t u = 0; u < s->count; u++)
		floors |= xfp_policy_of_unit(&s->c->options.parameters, &s->c->ledger->units[u]).floor > 0;
	return xfp_fail(err, XFP_UNMET,
			floors ? "%s: with the fewest bits that meet the floors everything takes %s, and the goal "
				 "allows %s; lower the floors, or name a goal of the former"
			       : "%s: with the fewest bits everything takes %s, and the goal allows %s; the nearest "
				 "goal that is possible is the former",
			goal->said, size_text(s->c, total, taken), size_text(s->c, s->budget, allowed));
}

/* What the next round is for. */
static bool goes_on(const struct xfp_shares *s, int round, uint64_t total, enum xfp_choose_from *from)
{
	bool unfit = false;

	for (uint32_t u = 0; u < s->count; u++)
		unfit |= s->unit[u].offers && !s->unit[u].source && s->unit[u].offers[s->unit[u].at].unfit;
	*from = total > s->budget ? XFP_FROM_LESS : XFP_FROM_MORE;
	if (round >= MOST_ROUNDS)
		return false;
	return unfit || total > s->budget || (round < ROUNDS_UP && s->budget - total > s->budget / SLACK_SHARE);
}

/* The offers of the next round; `before` is of this one. */
static enum xfp_status mend(struct xfp_shares *s, enum xfp_choose_from from, uint32_t *before, bool *changed,
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
		status = xfp_shares_solve(s, attempt ? wider[attempt] : from, s->budget, &solution, &total, err);
	}
	if (!status && total > s->budget)
		status = fail_floors(s, total, err);
	*changed = false;
	for (uint32_t u = 0; !status && u < s->count; u++)
		*changed |= before[u] != s->unit[u].at;
	return status;
}

static enum xfp_status go_rounds(struct xfp_shares *s, bool check, struct xfp_error *err)
{
	struct xfp_solved *solved = &s->c->solved;
	uint32_t *before = malloc((s->count + (size_t)1) * sizeof *before);
	enum xfp_status status = before ? XFP_OK : xfp_no_memory(err);
	bool measured = true, changed = true;
	enum xfp_choose_from from;

	for (int round = 0; !status && changed; round++) {
		solved->steps = 1 + (uint32_t)round;
		if ((status = assign(s, err)) || (status = prepare(s, round ? before : NULL, check, &measured, err)) ||
		    !measured || (status = xfp_shares_total(s, &solved->total, NULL, err)) ||
		    !goes_on(s, round, solved->total, &from))
			break;
		if (solved->total > s->budget && solved->total > solved->most)
			solved->most = solved->total;
		status = mend(s, from, before, &changed, err);
	}
	solved->settled = !status && measured;
	solved->binding = solved->most > s->budget;
	if (solved->settled && !solved->binding)
		solved->most = solved->total; /* now that it was measured */
	if (solved->settled && solved->total > s->budget)
		status =
			xfp_fail(err, XFP_UNMET,
				 "%s: after %d rounds of measuring everything takes %s, and the goal allows %s; name a "
				 "goal of the former",
				 s->c->options.goal.said, MOST_ROUNDS, size_text(s->c, solved->total, (char[64]){ 0 }),
				 size_text(s->c, s->budget, (char[64]){ 0 }));
	free(before);
	return status;
}

/* ------------------------------------------------------------------------------------------------ */

static void drop_assignments(struct xfp_conversion *c)
{
	free(c->options.parameters.assigned);
	c->options.parameters.assigned = NULL;
	c->options.parameters.assigned_count = 0;
}

static bool all_alone_done(const struct xfp_conversion *c)
{
	for (uint32_t u = 0; u < c->ledger->unit_count; u++)
		if (c->ledger->units[u].plan != XFP_PLAN_FIT && !c->units[u].done)
			return false;
	return true;
}

/* Before surveys have said all, and what a plan needs. */
static void sum_up(struct xfp_shares *s)
{
	struct xfp_solved *solved = &s->c->solved;
	double weight = xfp_shares_weight(s);

	xfp_shares_expect(s);
	solved->error = weight > 0 ? xfp_shares_error(s) / weight : 0;
	xfp_shares_total(s, &solved->total, &solved->makeup, NULL);
}

enum xfp_status xfp_goal_prepare(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	struct xfp_shares shares = { 0 };
	struct xfp_solution solution;
	enum xfp_status status;
	uint64_t total;
	bool surveyed;

	c->solved = (struct xfp_solved){ 0 };
	drop_assignments(c);
	if ((status = xfp_shares_begin(c, check, &shares, err)) ||
	    (status = xfp_shares_solve(&shares, XFP_FROM_ALL, UINT64_MAX / 2, &solution, &c->solved.most, err)) ||
	    (status = xfp_shares_solve(&shares, XFP_FROM_ALL, shares.budget, &solution, &total, err)))
		goto done;
	c->solved.budget = shares.budget;
	c->solved.binding = c->solved.most > shares.budget;
	surveyed = !shares.missing && all_alone_done(c);
	if (surveyed && total > shares.budget)
		status = fail_floors(&shares, total, err);
	else if (surveyed)
		status = go_rounds(&shares, check, err);
	if (!status)
		sum_up(&shares);
done:
	xfp_shares_free(&shares);
	return status;
}

enum xfp_status xfp_goal_list_surveys(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_candidate *list = calloc(XFP_MOST_SURVEYED, sizeof *list);
	enum xfp_status status = list ? XFP_OK : xfp_no_memory(err);

	c->todo = 0;
	c->weights = c->weights_done = 0;
	c->solved = (struct xfp_solved){ 0 };
	drop_assignments(c);
	for (uint32_t u = 0; !status && u < c->ledger->unit_count; u++) {
		uint32_t count;
		bool found = true;

		if (c->signals && xfp_signals_came(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (c->ledger->units[u].plan == XFP_PLAN_FIT)
			status = xfp_prepare_survey(c, u, false, list, &count, &found, err);
		c->todo += !found;
		c->weights += xfp_unit_weights(&c->ledger->units[u]);
		c->units[u].done = found; /* as far as this goes */
	}
	free(list);
	return status ? status : xfp_prepare_write(c, err);
}

/* ---- what is said of it ------------------------------------------------------------------------ */

static uint64_t padding(const struct xfp_bundle_makeup *makeup)
{
	return makeup->file - makeup->units - makeup->kept - makeup->carried - makeup->index;
}

static double bits(const struct xfp_conversion *c)
{
	uint64_t elements = xfp_ledger_elements(c->ledger);

	return elements ? (double)c->solved.makeup.file * 8 / (double)elements : 0;
}

void xfp_goal_print(const struct xfp_conversion *c)
{
	const struct xfp_solved *solved = &c->solved;
	const struct xfp_bundle_makeup *makeup = &solved->makeup;
	char a[64], b[32], d[32];

	if (!c->options.goal.kind || !solved->budget)
		return;
	if (!solved->binding)
		printf("goal   %s is not binding: the most bits take %s\n", c->options.goal.said,
		       size_text(c, solved->most, a));
	else
		printf("goal   %s: %s, %.2f %% of it\n", c->options.goal.said, size_text(c, solved->total, a),
		       100.0 * (double)solved->total / (double)solved->budget);
	printf("       %.3f bits per weight overall; tokenizer and config %s, index %s, padding %s\n", bits(c),
	       xfp_human((double)makeup->carried, "B", a), xfp_human((double)makeup->index, "B", b),
	       xfp_human((double)padding(makeup), "B", d));
}

json_t *xfp_goal_json(const struct xfp_conversion *c)
{
	static const char *const kinds[] = { "none", "size", "bpw", "envelope" };
	const struct xfp_solved *solved = &c->solved;
	const struct xfp_bundle_makeup *makeup = &solved->makeup;

	if (!c->options.goal.kind || !solved->budget)
		return json_null();
	return XFP_JSON({ "kind", xfp_json_text(kinds[c->options.goal.kind]) },
			{ "allowed", json_integer((json_int_t)solved->budget) },
			{ "taken", json_integer((json_int_t)solved->total) },
			{ "most", json_integer((json_int_t)solved->most) },
			{ "binding", json_boolean(solved->binding) },
			{ "rounds", json_integer((json_int_t)solved->steps) }, { "error", json_real(solved->error) },
			{ "bits", json_real(bits(c)) },
			{ "elements", json_integer((json_int_t)xfp_ledger_elements(c->ledger)) },
			{ "file", json_integer((json_int_t)makeup->file) },
			{ "carried", json_integer((json_int_t)makeup->carried) },
			{ "index", json_integer((json_int_t)makeup->index) },
			{ "padding", json_integer((json_int_t)padding(makeup)) });
}
