/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/goal/shares.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text/size.h"
#include "conversion/estimate/estimate.h"
#include "conversion/estimate/gpu.h"
#include "conversion/state/prepare_unit.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/decide.h"
#include "stages/work/describe.h"

/* Maximum passes of solving and measuring until the overhead outside units is correct. */
#define SETTLING 16

static bool in_gpus(const struct xfp_shares *s)
{
	return s->c->request->goal.kind == XFP_GOAL_ENVELOPE;
}

/* ---- offers ------------------------------------------------------------------------------------- */

static void set_rest(struct xfp_share *share, const struct xfp_ledger_unit *unit, enum xfp_mode mode, uint32_t k,
		     uint16_t group, uint16_t library, uint64_t bytes)
{
	const struct xfp_offer offer = {
		.mode = (uint8_t)mode, .k = (uint8_t)k, .group = group, .library = library, .bytes = bytes
	};

	share->mode = mode;
	share->k = k;
	xfp_offer_parts(unit, &offer, share->balanced, share->rest);
}

/* Fill in a unit that is packed alone: as packed, or as expected. */
static void take_alone(struct xfp_shares *s, uint32_t u)
{
	const struct xfp_unit_state *state = &s->c->units.state[u];
	const struct xfp_ledger_unit *unit = &s->c->units.ledger->units[u];
	struct xfp_estimate expected = xfp_estimate_unit(unit, &s->c->parameters, XFP_EXPECTED);
	struct xfp_share *share = &s->unit[u];
	struct xfp_artifact artifact = { 0 };
	struct xfp_packed packed = { 0 };
	char *path = state->done ? xfp_store_path(&s->c->place.store, state->key[XFP_STAMP_PACKED]) : NULL;

	set_rest(share, unit, expected.mode, 0, 0, 0, 0);
	if (path &&
	    !xfp_artifact_open(path, XFP_PACKED_KIND, XFP_PACKED_VERSION, state->key[XFP_STAMP_PACKED], &artifact,
			       NULL) &&
	    !xfp_packed_read(&artifact, &packed, NULL)) {
		share->mode = (enum xfp_mode)packed.mode;
		memcpy(share->rest, packed.bytes, sizeof share->rest);
		xfp_packed_free(&packed);
	}
	xfp_artifact_close(&artifact);
	free(path);
}

/* Collect the unit's offers from its survey or an estimate. */
static enum xfp_status take_offers(struct xfp_shares *s, uint32_t u, bool check, struct xfp_candidate *list,
				   struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &s->c->units.ledger->units[u];
	struct xfp_parameters parameters = s->c->parameters;
	struct xfp_policy policy = xfp_policy_of_unit(&parameters, unit);
	struct xfp_share *share = &s->unit[u];
	enum xfp_status status = XFP_OK;
	uint32_t count = 0;

	if (s->headers == XFP_HEADERS_LEAST)
		policy.floor = parameters.outlier_sigma = parameters.balance = 0;
	else if (!s->headers)
		status = xfp_prepare_survey(s->c, u, check, list, &count, &share->surveyed, err);
	if (status)
		return status;
	if (!share->surveyed) {
		count = xfp_estimate_survey(unit, &parameters, list);
		s->missing++;
	}
	if (!(share->offers = malloc((count + (size_t)1) * sizeof *share->offers)))
		return xfp_no_memory(err);
	share->count = xfp_offers_of(list, count, unit, &policy, parameters.outlier_sigma, share->offers);
	share->balanced = xfp_survey_balanced(unit, list, count, parameters.balance > 0);
	if (!share->count) {
		free(share->offers);
		share->offers = NULL;
		set_rest(share, unit, XFP_MODE_KEEP, 0, 0, 0, 0);
	}
	return XFP_OK;
}

/* The goal in bytes. */
static uint64_t budget_of(const struct xfp_shares *s)
{
	const struct xfp_goal *goal = &s->c->request->goal;
	uint64_t elements = xfp_ledger_elements(s->c->units.ledger);

	switch (goal->kind) {
	case XFP_GOAL_BPW: /* in two steps, since the product may exceed 64 bits */
		return elements / 8000000 * goal->micro + elements % 8000000 * goal->micro / 8000000;
	case XFP_GOAL_ENVELOPE:
		return goal->bytes - goal->reserve;
	default:
		return goal->bytes;
	}
}

static enum xfp_status begin(struct xfp_conversion *c, enum xfp_headers headers, bool check, struct xfp_shares *s,
			     struct xfp_error *err)
{
	struct xfp_candidate *list = calloc(XFP_MAX_SURVEYED, sizeof *list);
	enum xfp_status status = XFP_OK;

	*s = (struct xfp_shares){ .c = c, .count = c->units.ledger->unit_count, .headers = headers };
	s->unit = calloc(s->count + (size_t)1, sizeof *s->unit);
	if (!s->unit || !list)
		status = xfp_no_memory(err);
	for (uint32_t u = 0; !status && u < s->count; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];

		s->unit[u].at = XFP_NO_OFFER;
		s->unit[u].weight = xfp_goal_weight(&c->request->goal, unit);
		if (c->signals && xfp_signals_arrived(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (unit->plan == XFP_PLAN_FIT)
			status = take_offers(s, u, check, list, err);
		else if (headers || !(status = xfp_prepare_unit(c, u, check, err)))
			take_alone(s, u);
	}
	free(list);
	if (status)
		return status;
	s->budget = budget_of(s);
	if (in_gpus(s))
		s->kept = xfp_gpu_kept(c->units.ledger, c->request->goal.gpus);
	return XFP_OK;
}

enum xfp_status xfp_shares_begin(struct xfp_conversion *c, bool check, struct xfp_shares *s, struct xfp_error *err)
{
	return begin(c, XFP_HEADERS_NONE, check, s, err);
}

enum xfp_status xfp_shares_of_headers(struct xfp_conversion *c, enum xfp_headers headers, struct xfp_shares *s,
				      struct xfp_error *err)
{
	return begin(c, headers, false, s, err);
}

void xfp_shares_free(struct xfp_shares *s)
{
	for (uint32_t u = 0; s->unit && u < s->count; u++)
		free(s->unit[u].offers);
	free(s->unit);
	*s = (struct xfp_shares){ 0 };
}

/* ---- costs ------------------------------------------------------------------------------------- */

static void parts_of(const struct xfp_shares *s, uint32_t u, uint64_t parts[XFP_PARTS], struct xfp_form_taken *taken)
{
	const struct xfp_share *share = &s->unit[u];

	if (!share->offers || share->source || share->at == XFP_NO_OFFER) {
		memcpy(parts, share->rest, sizeof share->rest);
		*taken = (struct xfp_form_taken){ share->mode, share->k };
		return;
	}
	xfp_offer_parts(&s->c->units.ledger->units[u], &share->offers[share->at], share->balanced, parts);
	*taken = (struct xfp_form_taken){ (enum xfp_mode)share->offers[share->at].mode, share->offers[share->at].k };
}

uint64_t xfp_share_cost(const struct xfp_shares *s, uint32_t u, const struct xfp_offer *offer)
{
	const struct xfp_ledger_unit *unit = &s->c->units.ledger->units[u];
	uint64_t parts[XFP_PARTS], cost = 0;

	xfp_offer_parts(unit, offer, s->unit[u].balanced, parts);
	if (in_gpus(s))
		return xfp_gpu_unit(unit, (enum xfp_mode)offer->mode, parts, s->c->request->goal.gpus);
	/* Count tar members: headers and padding fill whole blocks. */
	for (int p = 0; p < XFP_PARTS; p++)
		if (parts[p])
			cost += xfp_align(parts[p] + XFP_TAR_BLOCK, XFP_DATA_ALIGN) + sizeof(struct xfp_idx_part);
	return cost;
}

static enum xfp_status total_file(const struct xfp_shares *s, const uint64_t (*parts)[XFP_PARTS],
				  const struct xfp_form_taken *taken, struct xfp_bundle_breakdown *breakdown,
				  struct xfp_error *err)
{
	struct xfp_parameters parameters = s->c->parameters;
	struct xfp_bundle_sizes sizes = { .ledger = s->c->units.ledger, .parts = parts };
	struct xfp_assignment *assigned = xfp_shares_assign(s);
	char *json = NULL;
	enum xfp_status status = XFP_OK;

	parameters.assigned = assigned;
	parameters.assigned_count = s->count;
	if (!assigned || !(json = xfp_describe(s->c->units.ledger, &parameters)))
		status = xfp_no_memory(err);
	else
		sizes.json_bytes = strlen(json);
	if (!status)
		status = xfp_fates_bytes(s->c->units.ledger, &parameters, taken, &sizes.reason_bytes, err);
	if (!status)
		status = xfp_bundle_measure(&sizes, breakdown, err);
	free(assigned);
	free(json);
	return status;
}

enum xfp_status xfp_shares_total(const struct xfp_shares *s, uint64_t *total, struct xfp_bundle_breakdown *breakdown,
				 struct xfp_error *err)
{
	uint64_t(*parts)[XFP_PARTS] = calloc(s->count + (size_t)1, sizeof *parts);
	struct xfp_form_taken *taken = calloc(s->count + (size_t)1, sizeof *taken);
	struct xfp_bundle_breakdown own;
	enum xfp_status status = parts && taken ? XFP_OK : xfp_no_memory(err);

	*total = s->kept;
	for (uint32_t u = 0; !status && u < s->count; u++) {
		parts_of(s, u, parts[u], &taken[u]);
		if (in_gpus(s))
			*total += xfp_gpu_unit(&s->c->units.ledger->units[u], taken[u].mode, parts[u],
					       s->c->request->goal.gpus);
	}
	if (!status && (breakdown || !in_gpus(s)))
		status = total_file(s, (const uint64_t(*)[XFP_PARTS])parts, taken, &own, err);
	if (!status && !in_gpus(s))
		*total = own.file;
	if (!status && breakdown)
		*breakdown = own;
	free(parts);
	free(taken);
	return status;
}

/* ---- solving ----------------------------------------------------------------------------------- */

/* The solver's input: units with offers, and their offers that `allowed` permits. */
struct sight {
	struct xfp_solve_unit *units;
	struct xfp_solve_option *options;
	uint32_t *unit, *offer; /* unit of each entry; offer of each option */
	uint32_t *chosen;
	uint32_t count;
};

static void sight_free(struct sight *v)
{
	free(v->units);
	free(v->options);
	free(v->unit);
	free(v->offer);
	free(v->chosen);
}

static bool is_allowed(const struct xfp_share *share, uint32_t i, enum xfp_choose_from from)
{
	const struct xfp_offer *offer = &share->offers[i], *now;

	if (offer->unfit || share->source)
		return false;
	if (from == XFP_FROM_ALL || share->at == XFP_NO_OFFER || share->at == i)
		return true;
	now = &share->offers[share->at];
	if (offer->bytes > now->bytes)
		return from == XFP_FROM_MORE || now->unfit;
	return from == XFP_FROM_BELOW || (from == XFP_FROM_LESS && offer->exact);
}

static enum xfp_status look(const struct xfp_shares *s, enum xfp_choose_from from, struct sight *v,
			    struct xfp_error *err)
{
	size_t total = 0, next = 0;

	for (uint32_t u = 0; u < s->count; u++)
		total += s->unit[u].count;
	*v = (struct sight){
		.units = calloc(s->count + (size_t)1, sizeof *v->units),
		.options = malloc((total + 1) * sizeof *v->options),
		.unit = malloc((s->count + (size_t)1) * sizeof *v->unit),
		.offer = malloc((total + 1) * sizeof *v->offer),
		.chosen = malloc((s->count + (size_t)1) * sizeof *v->chosen),
	};
	if (!v->units || !v->options || !v->unit || !v->offer || !v->chosen)
		return xfp_no_memory(err);
	for (uint32_t u = 0; u < s->count; u++) {
		const struct xfp_share *share = &s->unit[u];
		struct xfp_solve_unit *seen = &v->units[v->count];

		seen->options = v->options + next;
		for (uint32_t i = 0; i < share->count; i++) {
			const struct xfp_offer *offer = &share->offers[i];

			if (!is_allowed(share, i, from))
				continue;
			v->options[next] =
				(struct xfp_solve_option){ xfp_share_cost(s, u, offer), share->weight * offer->error };
			v->offer[next++] = i;
			seen->count++;
		}
		if (seen->count)
			v->unit[v->count++] = u;
	}
	return XFP_OK;
}

static void give(struct xfp_shares *s, const struct sight *v)
{
	for (uint32_t i = 0; i < v->count; i++) {
		const struct xfp_solve_option *first = v->units[i].options;

		s->unit[v->unit[i]].at = v->offer[(first - v->options) + v->chosen[i]];
	}
}

enum xfp_status xfp_shares_solve(struct xfp_shares *s, enum xfp_choose_from from, uint64_t budget,
				 struct xfp_solution *solution, uint64_t *total, struct xfp_error *err)
{
	struct sight v = { 0 };
	enum xfp_status status = look(s, from, &v, err);
	uint64_t beside = 0;

	/* The overhead outside units hardly depends on the chosen offers. Each pass subtracts the largest overhead seen
	 * so far from the budget, until the total fits. */
	for (int pass = 0; !status && pass < SETTLING; pass++) {
		status = xfp_solve(v.units, v.count, pass && budget > beside ? budget - beside : 0, v.chosen, solution,
				   err);
		if (!status) {
			give(s, &v);
			status = xfp_shares_total(s, total, NULL, err);
		}
		if (status || (pass && (!solution->feasible || *total <= budget)))
			break;
		if (*total - solution->cost > beside)
			beside = *total - solution->cost;
	}
	sight_free(&v);
	return status;
}

double xfp_shares_error(const struct xfp_shares *s)
{
	double error = 0;

	for (uint32_t u = 0; u < s->count; u++)
		if (s->unit[u].offers && !s->unit[u].source && s->unit[u].at != XFP_NO_OFFER)
			error += s->unit[u].weight * s->unit[u].offers[s->unit[u].at].error;
	return error;
}

double xfp_shares_weight(const struct xfp_shares *s)
{
	double weight = 0;

	for (uint32_t u = 0; u < s->count; u++)
		weight += s->unit[u].offers ? s->unit[u].weight : 0;
	return weight;
}

/* ---- results ----------------------------------------------------------------------------------- */

struct xfp_assignment *xfp_shares_assign(const struct xfp_shares *s)
{
	struct xfp_assignment *list = malloc((s->count + (size_t)1) * sizeof *list);

	for (uint32_t u = 0; list && u < s->count; u++) {
		const struct xfp_share *share = &s->unit[u];
		const struct xfp_policy policy = xfp_policy_of_unit(&s->c->parameters, &s->c->units.ledger->units[u]);

		list[u] = (struct xfp_assignment){ .mode = XFP_UNASSIGNED };
		if (share->offers && share->at != XFP_NO_OFFER)
			list[u] = xfp_offer_assignment(&share->offers[share->at], &policy);
	}
	return list;
}

void xfp_shares_expect(const struct xfp_shares *s)
{
	for (uint32_t u = 0; u < s->count; u++) {
		const struct xfp_share *share = &s->unit[u];
		struct xfp_unit_state *state = &s->c->units.state[u];

		state->expected = share->offers && share->at != XFP_NO_OFFER;
		if (state->expected) {
			const struct xfp_offer *offer = &share->offers[share->at];
			uint64_t parts[XFP_PARTS];

			xfp_offer_parts(&s->c->units.ledger->units[u], offer, share->balanced, parts);
			state->candidate = (struct xfp_candidate){ .mode = offer->mode,
								   .k = offer->k,
								   .sigma_milli = offer->sigma_milli,
								   .group = offer->group,
								   .library = offer->library,
								   .bytes = offer->bytes,
								   .outliers = parts[XFP_PART_OUTLIER] / 4,
								   .cos_median = offer->cosine,
								   .error = offer->error };
		}
	}
}

/* ---- in words ---------------------------------------------------------------------------------- */

/* Round bits up, so that a goal of the printed size suffices. */
const char *xfp_shares_text(const struct xfp_conversion *c, uint64_t bytes, char text[64])
{
	uint64_t elements = xfp_ledger_elements(c->units.ledger);
	char human[32];

	xfp_size_text(bytes, xfp_size_is_binary(c->request->goal.option), human);
	if (c->request->goal.kind == XFP_GOAL_BPW && elements)
		snprintf(text, 64, "%.4f bits per weight (%s)", ceil((double)bytes * 8e4 / (double)elements) / 1e4,
			 human);
	else
		snprintf(text, 64, "%" PRIu64 " bytes (%s)%s", bytes, human,
			 c->request->goal.kind == XFP_GOAL_ENVELOPE ? " on a GPU" : "");
	return text;
}
