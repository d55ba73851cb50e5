/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - bundles of points, from surveys alone: units are decided in memory, and summed up as a plan does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/system/file.h"
#include "base/text/size.h"
#include "conversion/estimate/gpu.h"
#include "conversion/goal/allocation.h"
#include "conversion/plan/plan.h"
#include "conversion/prepare.h"
#include "conversion/state/prepare_unit.h"
#include "conversion/walk/walk.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/target.h"
#include "stages/quantize/variants.h"

#define ERROR_OF_MISS 2 /* the relative squared error is about twice 1 - cosine */

void xfp_walk_free(struct xfp_walk *walk)
{
	for (uint32_t i = 0; i < walk->count; i++) {
		for (int w = 0; w < XFP_WALK_WORDS; w++)
			free(walk->point[i].words[w]);
		xfp_parameters_free(&walk->point[i].parameters);
	}
	free(walk->point);
	walk->point = NULL;
	walk->count = 0;
}

uint64_t xfp_walk_cost(const struct xfp_walk *walk, const struct xfp_walk_point *point)
{
	const bool built = point->probe.bytes;

	if (walk->limit.goal && walk->limit.goal->kind == XFP_GOAL_ENVELOPE)
		return built ? point->probe.gpu : point->gpu;
	return built ? point->probe.bytes : point->bytes;
}

/* ---- surveys ----------------------------------------------------------------------------------- */

void xfp_walk_surveys_free(struct xfp_walk_surveys *surveys)
{
	for (uint32_t u = 0; surveys->unit && u < surveys->count; u++)
		free(surveys->unit[u].list);
	free(surveys->unit);
	*surveys = (struct xfp_walk_surveys){ 0 };
}

static enum xfp_status read_survey(struct xfp_conversion *c, uint32_t u, struct xfp_candidate *list,
				   struct xfp_walk_survey *survey, struct xfp_error *err)
{
	uint32_t count = 0;
	bool found = false;
	enum xfp_status status = xfp_prepare_survey(c, u, false, list, &count, &found, err);

	if (status || !found)
		return status;
	if (!(survey->list = malloc((count + (size_t)1) * sizeof *list)))
		return xfp_no_memory(err);
	memcpy(survey->list, list, count * sizeof *list);
	survey->count = count;
	return XFP_OK;
}

enum xfp_status xfp_walk_surveys_read(struct xfp_conversion *c, struct xfp_walk_surveys *surveys, struct xfp_error *err)
{
	struct xfp_candidate *list = calloc(XFP_MAX_SURVEYED, sizeof *list);
	enum xfp_status status = XFP_OK;

	*surveys = (struct xfp_walk_surveys){ .count = c->units.ledger->unit_count };
	surveys->unit = calloc(surveys->count + (size_t)1, sizeof *surveys->unit);
	if (!list || !surveys->unit)
		status = xfp_no_memory(err);
	if (c->place.manifest)
		xfp_manifest_begin(c->place.manifest, NULL);
	for (uint32_t u = 0; !status && u < surveys->count; u++) {
		if (c->signals && xfp_signals_arrived(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (c->units.ledger->units[u].plan == XFP_PLAN_FIT)
			status = read_survey(c, u, list, &surveys->unit[u], err);
	}
	if (c->place.manifest)
		xfp_manifest_commit(c->place.manifest, NULL);
	free(list);
	return status;
}

/* ---- sums -------------------------------------------------------------------------------------- */

/* The error of a unit's expected form. */
static double error_of(const struct xfp_unit_state *state, const struct xfp_estimate *e)
{
	if (e->mode == XFP_MODE_KEEP)
		return 0;
	if (state->decided)
		return state->choice.candidate.error;
	return state->expected ? state->candidate.error : ERROR_OF_MISS * (1 - e->cos_median);
}

static uint64_t gpu_bytes(const struct xfp_conversion *c, const struct xfp_walk *walk,
			  const struct xfp_ledger_unit *unit, const struct xfp_estimate *e)
{
	const struct xfp_variant variant = { .mode = (uint8_t)e->mode,
					     .k = (uint8_t)e->k,
					     .group = e->group,
					     .library = e->library,
					     .bytes = e->bytes };
	uint64_t parts[XFP_PARTS];

	xfp_variant_parts(unit, &variant, c->parameters.balance > 0, parts);
	return xfp_gpu_unit(unit, e->mode, parts, walk->limit.goal->gpus);
}

/* Sum up the units in their current states. */
static void sum_up(struct xfp_conversion *c, const struct xfp_walk *walk, struct xfp_walk_point *point)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	const bool gpus = walk->limit.goal && walk->limit.goal->kind == XFP_GOAL_ENVELOPE;
	struct xfp_plan_facts facts = { .c = c };
	struct xfp_composition composition;
	double weight = 0, weights = 0;

	facts.bundle[XFP_EXPECTED] = point->target ? point->bytes : xfp_footprint_bundle(&input, XFP_EXPECTED);
	composition = xfp_plan_composition(&facts);
	point->bytes = composition.bytes;
	point->bits = xfp_composition_bits(&composition);
	point->paper = xfp_composition_paper_bits(&composition);
	point->gpu = gpus ? xfp_gpu_kept(c->units.ledger, walk->limit.goal->gpus) : 0;
	point->units = point->surveyed = point->missed = 0;
	point->error = point->unweighted = 0;
	memset(point->stored, 0, sizeof point->stored);
	memset(point->weights, 0, sizeof point->weights);
	memset(point->size, 0, sizeof point->size);
	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];
		const struct xfp_estimate e = xfp_estimate(&input, u, XFP_EXPECTED);
		double error;

		point->stored[e.mode][e.k]++;
		point->weights[unit->class_] += xfp_unit_weights(unit);
		point->size[unit->class_] += e.bytes;
		if (gpus)
			point->gpu += gpu_bytes(c, walk, unit, &e);
		if (unit->plan != XFP_PLAN_FIT)
			continue;
		point->units++;
		point->surveyed += c->units.state[u].decided || c->units.state[u].expected;
		point->missed += !e.met;
		error = error_of(&c->units.state[u], &e);
		point->error += xfp_goal_weight(&c->request->goal, unit) * error;
		weight += xfp_goal_weight(&c->request->goal, unit);
		point->unweighted += (double)xfp_unit_weights(unit) * error;
		weights += (double)xfp_unit_weights(unit);
	}
	point->error = weight > 0 ? point->error / weight : 0;
	point->unweighted = weights > 0 ? point->unweighted / weights : 0;
	point->predicted = true;
}

/* Use the parameters of a point for a while; returns those to restore. */
static struct xfp_parameters use_parameters(struct xfp_conversion *c, const struct xfp_walk_point *point)
{
	struct xfp_parameters before = c->parameters;

	c->parameters = point->parameters;
	c->parameters.calibration = before.calibration;
	return before;
}

enum xfp_status xfp_walk_predict(struct xfp_conversion *c, const struct xfp_walk_surveys *surveys,
				 const struct xfp_walk *walk, struct xfp_walk_point *point, struct xfp_error *err)
{
	struct xfp_parameters before = use_parameters(c, point);
	enum xfp_status status = XFP_OK;

	for (uint32_t u = 0; u < surveys->count; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];
		struct xfp_unit_state *state = &c->units.state[u];
		struct xfp_policy policy;

		if (unit->plan != XFP_PLAN_FIT)
			continue;
		xfp_decide_parameters(&c->parameters, unit, &policy);
		state->decided = state->expected = false;
		if (surveys->unit[u].list)
			xfp_expect_target(
				state, unit, &policy, c->parameters.on_miss,
				xfp_target_candidate(surveys->unit[u].list, surveys->unit[u].count, unit, &policy));
	}
	sum_up(c, walk, point);
	c->parameters = before;
	if (c->signals && xfp_signals_arrived(c->signals))
		status = xfp_fail(err, XFP_FAILED, "interrupted");
	return status;
}

/* Digest the keys of packed units, which follow from choices. */
static void digest_units(const struct xfp_conversion *c, char hex[65])
{
	struct xfp_sha256 sha;
	uint8_t digest[32];

	*hex = '\0';
	xfp_sha256_init(&sha);
	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		const char *key = c->units.state[u].key[XFP_STAMP_PACKED];

		if (!*key)
			return;
		xfp_sha256_update(&sha, key, strlen(key));
	}
	xfp_sha256_final(&sha, digest);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

enum xfp_status xfp_walk_predict_prepared(struct xfp_conversion *c, const struct xfp_walk *walk,
					  struct xfp_walk_point *point, struct xfp_error *err)
{
	struct xfp_parameters before = use_parameters(c, point);
	enum xfp_status status = xfp_prepare_units(c, false, err);

	if (!status) {
		sum_up(c, walk, point);
		digest_units(c, point->digest);
	}
	c->parameters = before;
	return status;
}

/* ---- sizes ------------------------------------------------------------------------------------- */

/* The options of a size: the limit's own, or a size of the file. */
static bool set_words(const struct xfp_goal *limit, uint64_t size, char *words[XFP_WALK_WORDS])
{
	const enum xfp_goal_kind kind = limit ? limit->kind : XFP_GOAL_SIZE;
	char text[32];
	int count = 2;

	if (kind == XFP_GOAL_ENVELOPE) {
		words[0] = strdup("--envelope");
		words[1] = xfp_formatted("%" PRIu32 "x%s", limit->gpus, xfp_size_exact(limit->bytes, text));
	} else if (kind == XFP_GOAL_BPW) {
		words[0] = strdup("--target-bpw");
		words[1] = strdup(xfp_decimal_format(limit->micro, 1000000, text));
	} else {
		words[0] = strdup("--target-size");
		words[1] = limit ? strdup(xfp_size_exact(size, text)) : xfp_formatted("%" PRIu64, size);
	}
	if (kind == XFP_GOAL_ENVELOPE && limit->reserve) {
		words[count++] = strdup("--reserve");
		words[count++] = xfp_formatted("all=%s", xfp_size_exact(limit->reserve, text));
	}
	while (count > 0 && words[count - 1])
		count--;
	return !count;
}

/* Append a point unless the size is out of reach, or another point has it already. */
static enum xfp_status add_size(struct xfp_allocation *allocation, const struct xfp_goal *limit, uint64_t size,
				struct xfp_walk *walk, struct xfp_error *err)
{
	struct xfp_bundle_breakdown breakdown;
	struct xfp_walk_point *grown, *point;
	struct xfp_solution solution;
	uint64_t total;
	enum xfp_status status = xfp_allocation_solve(allocation, XFP_FROM_ALL, size, &solution, &total, err);

	if (!status && (!solution.feasible || total > size))
		return XFP_OK;
	if (!status)
		status = xfp_allocation_total(allocation, &total, &breakdown, err);
	if (status)
		return status;
	for (uint32_t i = 0; i < walk->count; i++)
		if (walk->point[i].bytes == breakdown.file)
			return XFP_OK;
	if (!(grown = realloc(walk->point, (walk->count + (size_t)1) * sizeof *grown)))
		return xfp_no_memory(err);
	walk->point = grown;
	point = &grown[walk->count++];
	*point = (struct xfp_walk_point){ .bytes = breakdown.file };
	point->target = limit && limit->kind == XFP_GOAL_ENVELOPE ? breakdown.file : size;
	if (!set_words(limit, size, point->words))
		return xfp_no_memory(err);
	xfp_allocation_expect(allocation);
	sum_up(allocation->c, walk, point);
	if (allocation->c->request->goal.kind == XFP_GOAL_ENVELOPE)
		point->gpu = total;
	return XFP_OK;
}

/* The best bundle that fits the limit lies between two sizes of the curve. */
static enum xfp_status add_limit(struct xfp_conversion *c, struct xfp_walk *walk, struct xfp_error *err)
{
	const struct xfp_request *asked = c->request;
	struct xfp_request limited = *asked;
	struct xfp_allocation allocation = { 0 };
	enum xfp_status status;

	limited.goal = *walk->limit.goal;
	c->request = &limited;
	status = xfp_allocation_begin(c, false, &allocation, err);
	if (!status)
		status = add_size(&allocation, &limited.goal, walk->limit.bytes, walk, err);
	xfp_allocation_free(&allocation);
	c->request = asked;
	return status;
}

enum xfp_status xfp_walk_add_sizes(struct xfp_conversion *c, struct xfp_walk *walk, struct xfp_error *err)
{
	struct xfp_plan_facts facts = { .c = c };
	struct xfp_allocation allocation = { 0 };
	struct xfp_parameters before = c->parameters;
	enum xfp_status status = xfp_plan_curve(&facts, err);

	/* As a goal does by default: it decides instead of floors. */
	memset(c->parameters.floor, 0, sizeof c->parameters.floor);
	if (!status)
		status = xfp_allocation_begin(c, false, &allocation, err);
	for (uint32_t i = 0; !status && i < facts.curve.count; i++)
		status = add_size(&allocation, NULL, facts.curve.point[i].file, walk, err);
	xfp_allocation_free(&allocation);
	if (!status && walk->limit.bytes)
		status = add_limit(c, walk, err);
	c->parameters = before;
	free(facts.curve.point);
	return status;
}

/* ---- order ------------------------------------------------------------------------------------- */

static int by_cost(const void *a, const void *b)
{
	const struct xfp_walk_point *x = a, *y = b;
	const uint64_t cost[2] = { x->gpu ? x->gpu : x->bytes, y->gpu ? y->gpu : y->bytes };

	if (cost[0] != cost[1])
		return (cost[0] > cost[1]) - (cost[0] < cost[1]);
	if (x->lazy != y->lazy)
		return (x->lazy > y->lazy) - (x->lazy < y->lazy);
	return (x->strict > y->strict) - (x->strict < y->strict);
}

void xfp_walk_sort(struct xfp_walk *walk)
{
	if (walk->count)
		qsort(walk->point, walk->count, sizeof *walk->point, by_cost);
	for (uint32_t i = 0; i < walk->count; i++) {
		struct xfp_walk_point *point = &walk->point[i];
		const uint64_t cost = xfp_walk_cost(walk, point);

		point->fits = !walk->limit.bytes || cost <= walk->limit.bytes;
		point->margin = walk->limit.bytes ? (int64_t)walk->limit.bytes - (int64_t)cost : 0;
	}
}
