/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/goal/allocation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text/size.h"
#include "conversion/estimate/estimate.h"
#include "conversion/estimate/gpu.h"
#include "conversion/state/layers.h"
#include "conversion/state/prepare_unit.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/decide.h"
#include "stages/work/describe.h"

/* Maximum passes of solving and measuring until the overhead outside units is correct. */
#define SETTLING 16

static bool in_gpus(const struct xfp_allocation *s)
{
	return s->c->request->goal.kind == XFP_GOAL_ENVELOPE;
}

/* ---- variants ------------------------------------------------------------------------------------- */

static void set_rest(struct xfp_unit_allocation *share, const struct xfp_ledger_unit *unit, enum xfp_mode mode,
		     uint32_t k, uint16_t group, uint16_t library, uint64_t bytes)
{
	const struct xfp_variant variant = {
		.mode = (uint8_t)mode, .k = (uint8_t)k, .group = group, .library = library, .bytes = bytes
	};

	share->mode = mode;
	share->k = k;
	xfp_variant_parts(unit, &variant, share->balanced, share->rest);
}

/* Fill in a unit that is packed alone: as packed, or as expected. */
static void add_direct(struct xfp_allocation *s, uint32_t u)
{
	const struct xfp_unit_state *state = &s->c->units.state[u];
	const struct xfp_ledger_unit *unit = &s->c->units.ledger->units[u];
	struct xfp_estimate expected = xfp_estimate_unit(unit, &s->c->parameters, XFP_EXPECTED);
	struct xfp_unit_allocation *share = &s->unit[u];
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

/* Collect the unit's variants from its survey or an estimate. Their errors are those of outputs, if the unit has inputs
 * and is surveyed. */
static enum xfp_status list_variants(struct xfp_allocation *s, uint32_t u, bool check, struct xfp_candidate *list,
				     struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &s->c->units.ledger->units[u];
	struct xfp_parameters parameters = s->c->parameters;
	struct xfp_policy policy = xfp_policy_of_unit(&parameters, unit);
	struct xfp_unit_allocation *share = &s->unit[u];
	enum xfp_status status = XFP_OK;
	uint32_t count = 0;

	if (s->headers == XFP_HEADERS_LOWER_BOUND)
		policy.floor = parameters.outlier_sigma = parameters.balance = 0;
	else if (!s->headers)
		status = xfp_prepare_survey(s->c, u, check, list, &count, &share->surveyed, err);
	if (status)
		return status;
	if (!share->surveyed) {
		count = xfp_estimate_survey(unit, &parameters, list);
		s->missing++;
	}
	if (!(share->variants = malloc((count + (size_t)1) * sizeof *share->variants)))
		return xfp_no_memory(err);
	share->count = xfp_list_variants(list, count, unit, &policy, parameters.outlier_sigma, share->variants);
	share->balanced = xfp_survey_balanced(unit, list, count, parameters.balance > 0);
	if (!share->count) {
		free(share->variants);
		share->variants = NULL;
		set_rest(share, unit, XFP_MODE_KEEP, 0, 0, 0, 0);
	}
	return XFP_OK;
}

uint64_t xfp_goal_budget(const struct xfp_goal *goal, const struct xfp_ledger *ledger)
{
	uint64_t elements = xfp_ledger_elements(ledger);

	switch (goal->kind) {
	case XFP_GOAL_BPW: /* in two steps, since the product may exceed 64 bits */
		return elements / 8000000 * goal->micro + elements % 8000000 * goal->micro / 8000000;
	case XFP_GOAL_ENVELOPE:
		return goal->bytes - goal->reserve;
	default:
		return goal->bytes;
	}
}

static enum xfp_status begin(struct xfp_conversion *c, enum xfp_headers headers, bool check, struct xfp_allocation *s,
			     struct xfp_error *err)
{
	struct xfp_candidate *list = calloc(XFP_MAX_SURVEYED, sizeof *list);
	enum xfp_status status = XFP_OK;

	*s = (struct xfp_allocation){ .c = c, .count = c->units.ledger->unit_count, .headers = headers };
	s->unit = calloc(s->count + (size_t)1, sizeof *s->unit);
	if (!s->unit || !list)
		status = xfp_no_memory(err);
	for (uint32_t u = 0; !status && u < s->count; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];

		s->unit[u].at = XFP_NO_VARIANT;
		s->unit[u].weight = xfp_goal_weight(&c->request->goal, unit);
		if (c->signals && xfp_signals_arrived(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (unit->plan == XFP_PLAN_FIT)
			status = list_variants(s, u, check, list, err);
		else if (headers || !(status = xfp_prepare_unit(c, u, check, err)))
			add_direct(s, u);
	}
	free(list);
	if (status)
		return status;
	s->budget = xfp_goal_budget(&c->request->goal, c->units.ledger);
	if (in_gpus(s))
		s->kept = xfp_gpu_kept(c->units.ledger, c->request->goal.gpus);
	return XFP_OK;
}

enum xfp_status xfp_allocation_begin(struct xfp_conversion *c, bool check, struct xfp_allocation *s,
				     struct xfp_error *err)
{
	return begin(c, XFP_HEADERS_NONE, check, s, err);
}

enum xfp_status xfp_allocation_of_headers(struct xfp_conversion *c, enum xfp_headers headers, struct xfp_allocation *s,
					  struct xfp_error *err)
{
	return begin(c, headers, false, s, err);
}

void xfp_allocation_free(struct xfp_allocation *s)
{
	for (uint32_t u = 0; s->unit && u < s->count; u++)
		free(s->unit[u].variants);
	free(s->unit);
	*s = (struct xfp_allocation){ 0 };
}

/* ---- costs ------------------------------------------------------------------------------------- */

static void parts_of(const struct xfp_allocation *s, uint32_t u, uint64_t parts[XFP_PARTS],
		     struct xfp_stored_form *taken)
{
	const struct xfp_unit_allocation *share = &s->unit[u];

	if (!share->variants || share->source || share->at == XFP_NO_VARIANT) {
		memcpy(parts, share->rest, sizeof share->rest);
		*taken = (struct xfp_stored_form){ share->mode, share->k };
		return;
	}
	xfp_variant_parts(&s->c->units.ledger->units[u], &share->variants[share->at], share->balanced, parts);
	*taken = (struct xfp_stored_form){ (enum xfp_mode)share->variants[share->at].mode,
					   share->variants[share->at].k };
}

uint64_t xfp_variant_cost(const struct xfp_allocation *s, uint32_t u, const struct xfp_variant *variant)
{
	const struct xfp_ledger_unit *unit = &s->c->units.ledger->units[u];
	uint64_t parts[XFP_PARTS], cost = 0;

	xfp_variant_parts(unit, variant, s->unit[u].balanced, parts);
	if (in_gpus(s))
		return xfp_gpu_unit(unit, (enum xfp_mode)variant->mode, parts, s->c->request->goal.gpus);
	/* Count tar members: headers and padding fill whole blocks. */
	for (int p = 0; p < XFP_PARTS; p++)
		if (parts[p])
			cost += xfp_align(parts[p] + XFP_TAR_BLOCK, XFP_DATA_ALIGN) + sizeof(struct xfp_idx_part);
	return cost;
}

/* Whether outputs of a unit are recorded, whatever it is stored as: by its choice, or expected if it has candidates. */
static bool has_outputs(const struct xfp_allocation *s, uint32_t u)
{
	const struct xfp_unit_state *state = &s->c->units.state[u];

	if (xfp_layers_of(s->c, u) == XFP_NO_LAYER || s->c->units.ledger->units[u].plan != XFP_PLAN_FIT)
		return false;
	return state->decided ? state->choice.calibrated : s->unit[u].variants != NULL;
}

/* xfp.json; NULL if memory runs out. */
static char *describe(const struct xfp_allocation *s, const struct xfp_parameters *parameters)
{
	static const struct xfp_output_measure any;
	const struct xfp_ledger *ledger = s->c->units.ledger;
	const struct xfp_output_measure **outputs = calloc(ledger->unit_count + (size_t)1, sizeof *outputs);
	char *json = NULL;

	for (uint32_t u = 0; outputs && u < ledger->unit_count; u++)
		outputs[u] = has_outputs(s, u) ? &any : NULL;
	if (outputs)
		json = xfp_describe(ledger, parameters, outputs);
	free(outputs);
	return json;
}

static enum xfp_status total_file(const struct xfp_allocation *s, const uint64_t (*parts)[XFP_PARTS],
				  const struct xfp_stored_form *taken, struct xfp_bundle_breakdown *breakdown,
				  struct xfp_error *err)
{
	struct xfp_parameters parameters = s->c->parameters;
	struct xfp_bundle_sizes sizes = { .ledger = s->c->units.ledger, .parts = parts };
	struct xfp_assignment *assigned = xfp_allocation_assign(s);
	char *json = NULL;
	enum xfp_status status = XFP_OK;

	parameters.assigned = assigned;
	parameters.assigned_count = s->count;
	if (!assigned || !(json = describe(s, &parameters)))
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

enum xfp_status xfp_allocation_total(const struct xfp_allocation *s, uint64_t *total,
				     struct xfp_bundle_breakdown *breakdown, struct xfp_error *err)
{
	uint64_t(*parts)[XFP_PARTS] = calloc(s->count + (size_t)1, sizeof *parts);
	struct xfp_stored_form *taken = calloc(s->count + (size_t)1, sizeof *taken);
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

/* The solver's input: units with variants, and their variants that `allowed` permits. */
struct solver_input {
	struct xfp_solve_unit *units;
	struct xfp_solve_option *options;
	uint32_t *unit, *variant; /* unit of each entry; variant of each option */
	uint32_t *chosen;
	uint32_t count;
};

static void solver_input_free(struct solver_input *v)
{
	free(v->units);
	free(v->options);
	free(v->unit);
	free(v->variant);
	free(v->chosen);
}

static bool is_allowed(const struct xfp_unit_allocation *share, uint32_t i, enum xfp_choose_from from)
{
	const struct xfp_variant *variant = &share->variants[i], *now;

	if (variant->unfit || share->source)
		return false;
	if (from == XFP_FROM_ALL || share->at == XFP_NO_VARIANT || share->at == i)
		return true;
	now = &share->variants[share->at];
	if (variant->bytes > now->bytes)
		return from == XFP_FROM_MORE || now->unfit;
	return from == XFP_FROM_BELOW || (from == XFP_FROM_LESS && variant->exact);
}

static enum xfp_status look(const struct xfp_allocation *s, enum xfp_choose_from from, struct solver_input *v,
			    struct xfp_error *err)
{
	size_t total = 0, next = 0;

	for (uint32_t u = 0; u < s->count; u++)
		total += s->unit[u].count;
	*v = (struct solver_input){
		.units = calloc(s->count + (size_t)1, sizeof *v->units),
		.options = malloc((total + 1) * sizeof *v->options),
		.unit = malloc((s->count + (size_t)1) * sizeof *v->unit),
		.variant = malloc((total + 1) * sizeof *v->variant),
		.chosen = malloc((s->count + (size_t)1) * sizeof *v->chosen),
	};
	if (!v->units || !v->options || !v->unit || !v->variant || !v->chosen)
		return xfp_no_memory(err);
	for (uint32_t u = 0; u < s->count; u++) {
		const struct xfp_unit_allocation *share = &s->unit[u];
		struct xfp_solve_unit *seen = &v->units[v->count];

		seen->options = v->options + next;
		for (uint32_t i = 0; i < share->count; i++) {
			const struct xfp_variant *variant = &share->variants[i];

			if (!is_allowed(share, i, from))
				continue;
			v->options[next] = (struct xfp_solve_option){ xfp_variant_cost(s, u, variant),
								      share->weight * variant->error };
			v->variant[next++] = i;
			seen->count++;
		}
		if (seen->count)
			v->unit[v->count++] = u;
	}
	return XFP_OK;
}

static void apply_choice(struct xfp_allocation *s, const struct solver_input *v)
{
	for (uint32_t i = 0; i < v->count; i++) {
		const struct xfp_solve_option *first = v->units[i].options;

		s->unit[v->unit[i]].at = v->variant[(first - v->options) + v->chosen[i]];
	}
}

enum xfp_status xfp_allocation_solve(struct xfp_allocation *s, enum xfp_choose_from from, uint64_t budget,
				     struct xfp_solution *solution, uint64_t *total, struct xfp_error *err)
{
	struct solver_input v = { 0 };
	enum xfp_status status = look(s, from, &v, err);
	uint64_t beside = 0;

	/* The overhead outside units hardly depends on the chosen variants. Each pass subtracts the largest overhead
	 * seen so far from the budget, until the total fits. */
	for (int pass = 0; !status && pass < SETTLING; pass++) {
		status = xfp_solve(v.units, v.count, pass && budget > beside ? budget - beside : 0, v.chosen, solution,
				   err);
		if (!status) {
			apply_choice(s, &v);
			status = xfp_allocation_total(s, total, NULL, err);
		}
		if (status || (pass && (!solution->feasible || *total <= budget)))
			break;
		if (*total - solution->cost > beside)
			beside = *total - solution->cost;
	}
	solver_input_free(&v);
	return status;
}

double xfp_allocation_error(const struct xfp_allocation *s)
{
	double error = 0;

	for (uint32_t u = 0; u < s->count; u++)
		if (s->unit[u].variants && !s->unit[u].source && s->unit[u].at != XFP_NO_VARIANT)
			error += s->unit[u].weight * s->unit[u].variants[s->unit[u].at].error;
	return error;
}

double xfp_allocation_weight(const struct xfp_allocation *s)
{
	double weight = 0;

	for (uint32_t u = 0; u < s->count; u++)
		weight += s->unit[u].variants ? s->unit[u].weight : 0;
	return weight;
}

/* ---- results ----------------------------------------------------------------------------------- */

struct xfp_assignment *xfp_allocation_assign(const struct xfp_allocation *s)
{
	struct xfp_assignment *list = malloc((s->count + (size_t)1) * sizeof *list);

	for (uint32_t u = 0; list && u < s->count; u++) {
		const struct xfp_unit_allocation *share = &s->unit[u];
		const struct xfp_policy policy = xfp_policy_of_unit(&s->c->parameters, &s->c->units.ledger->units[u]);

		list[u] = (struct xfp_assignment){ .mode = XFP_UNASSIGNED };
		if (share->variants && share->at != XFP_NO_VARIANT)
			list[u] = xfp_variant_assignment(&share->variants[share->at], &policy);
	}
	return list;
}

void xfp_allocation_expect(const struct xfp_allocation *s)
{
	for (uint32_t u = 0; u < s->count; u++) {
		const struct xfp_unit_allocation *share = &s->unit[u];
		struct xfp_unit_state *state = &s->c->units.state[u];

		state->expected = share->variants && share->at != XFP_NO_VARIANT;
		if (state->expected) {
			const struct xfp_variant *variant = &share->variants[share->at];
			uint64_t parts[XFP_PARTS];

			xfp_variant_parts(&s->c->units.ledger->units[u], variant, share->balanced, parts);
			state->candidate = (struct xfp_candidate){ .mode = variant->mode,
								   .k = variant->k,
								   .sigma_milli = variant->sigma_milli,
								   .group = variant->group,
								   .library = variant->library,
								   .bytes = variant->bytes,
								   .outliers = parts[XFP_PART_OUTLIER] / 4,
								   .cos_median = variant->cosine,
								   .error = variant->error };
		}
	}
}

/* ---- in words ---------------------------------------------------------------------------------- */

/* Round bits up, so that a goal of the printed size suffices. */
const char *xfp_allocation_text(const struct xfp_conversion *c, uint64_t bytes, char text[64])
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
