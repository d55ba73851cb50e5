/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/todo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "base/text/text.h"
#include "conversion/goal/goal.h"
#include "conversion/launch/batches.h"
#include "conversion/launch/jobs.h"
#include "conversion/state/layers.h"
#include "conversion/state/prepare_unit.h"

/* Whether the survey of a unit must predict outputs. */
static bool needs_scales(const struct xfp_conversion *c, uint32_t unit)
{
	struct xfp_policy policy;
	const struct xfp_parameters parameters = xfp_prepare_parameters(c, unit, &policy);

	return xfp_layers_key(c, unit, &parameters) && !(c->units.state[unit].in_store >> XFP_STAMP_SCALES & 1);
}

bool xfp_unit_needs_inputs(const struct xfp_conversion *c, uint32_t unit)
{
	const struct xfp_unit_state *state = &c->units.state[unit];
	/* Without fits yet, a survey will determine the threshold of its libraries. */
	bool library = !state->fits || state->fits >> XFP_FIT_LIBRARY & 1;

	if (xfp_layers_of(c, unit) == XFP_NO_LAYER || state->done || state->decided)
		return false;
	return xfp_goal_surveys(c, unit) ? needs_scales(c, unit) : library;
}

enum list { FIT_UNITS, PACK_UNITS, SURVEY_UNITS, SCALED_UNITS, CALIBRATED_UNITS };

static enum list list_of(const struct xfp_conversion *c, uint32_t unit)
{
	if (xfp_goal_surveys(c, unit))
		return xfp_unit_needs_inputs(c, unit) ? SCALED_UNITS : SURVEY_UNITS;
	if (xfp_unit_needs_inputs(c, unit))
		return CALIBRATED_UNITS;
	return c->units.ledger->units[unit].plan == XFP_PLAN_FIT ? FIT_UNITS : PACK_UNITS;
}

static bool is_todo(const struct xfp_conversion *c, uint32_t unit, enum list list)
{
	const struct xfp_unit_state *state = &c->units.state[unit];
	bool done = list == SURVEY_UNITS ? state->in_store >> XFP_STAMP_SURVEY & 1 : state->done;

	return !done && list_of(c, unit) == list;
}

static void write_units(const struct xfp_conversion *c, enum list list, FILE *out)
{
	static const char *const names[] = { "FIT_UNITS", "PACK_UNITS", "SURVEY_UNITS", "SCALED_UNITS",
					     "CALIBRATED_UNITS" };

	fprintf(out, "%s =", names[list]);
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		if (is_todo(c, i, list))
			fprintf(out, " u%06" PRIu32, i);
	fputc('\n', out);
}

/* ---- layers ------------------------------------------------------------------------------------ */

/* A layer that has its stamp is not a target, and nothing waits for it. */
static void write_layers(const struct xfp_conversion *c, FILE *out)
{
	const struct xfp_layer_state *layers = c->layers.state;

	fputs("LAYERS =", out);
	for (uint32_t i = 0; i < c->layers.count; i++)
		if (xfp_layer_is_missing(&layers[i]))
			fprintf(out, " l%06" PRIu32, i);
	fputc('\n', out);
	for (uint32_t i = 1; i < c->layers.count; i++)
		if (xfp_layer_is_missing(&layers[i]) && xfp_layer_is_missing(&layers[i - 1]))
			fprintf(out, "l%06" PRIu32 "-inputs: | l%06" PRIu32 "-inputs\n", i, i - 1);
}

static void write_waiting_units(const struct xfp_conversion *c, FILE *out)
{
	const struct xfp_layer_state *layers = c->layers.state;

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		uint32_t layer = c->layers.of_unit[u];
		bool surveys = xfp_goal_surveys(c, u);

		if (!xfp_unit_needs_inputs(c, u))
			continue;
		if (xfp_layer_is_missing(&layers[layer]))
			fprintf(out, "u%06" PRIu32 "-%s: | l%06" PRIu32 "-inputs\n", u, surveys ? "scales" : "tried",
				layer);
		/* A goal keeps the inputs of all layers. */
		if (!surveys && layer + 2 < c->layers.count && xfp_layer_is_missing(&layers[layer + 2]))
			fprintf(out, "l%06" PRIu32 "-inputs: | u%06" PRIu32 "-tried\n", layer + 2, u);
	}
}

/* ---- batches ----------------------------------------------------------------------------------- */

/* The work that fast processors do in a second: a shorter prediction gives fewer batches. */
static const struct {
	const char *target;
	double unit_seconds, weights_a_second;
} paces[] = {
	[FIT_UNITS] = { "packed", .1, 40e6 },       [PACK_UNITS] = { "packed", .03, 400e6 },
	[SURVEY_UNITS] = { "survey", .03, 200e6 },  [SCALED_UNITS] = { "scales", .03, 20e6 },
	[CALIBRATED_UNITS] = { "packed", .1, 2e6 },
};

double xfp_todo_seconds(uint64_t weights)
{
	return paces[FIT_UNITS].unit_seconds + (double)weights / paces[FIT_UNITS].weights_a_second;
}

struct batching {
	const struct xfp_conversion *c;
	FILE *out;
	struct xfp_batch_unit *units; /* [all units] */
	unsigned jobs;
	double worth;
	uint32_t batches; /* written so far */
};

/* Add the units of a list to the first `count`; all layers: XFP_NO_LAYER. Returns the new count. */
static uint32_t add_units(struct batching *batching, enum list list, uint32_t layer, uint32_t count)
{
	const struct xfp_conversion *c = batching->c;

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		bool packs = list == PACK_UNITS || c->units.state[u].decided;
		double weights = (double)xfp_unit_weights(&c->units.ledger->units[u]);
		enum list pace = packs ? PACK_UNITS : list;

		if (is_todo(c, u, list) && (layer == XFP_NO_LAYER || c->layers.of_unit[u] == layer))
			batching->units[count++] = (struct xfp_batch_unit){
				.unit = u,
				.seconds = paces[pace].unit_seconds + weights / paces[pace].weights_a_second,
			};
	}
	return count;
}

/* Make a batch wait for the inputs of its layer, and the next layer but one for a calibrated batch. */
static void write_waiting_batch(const struct batching *batching, uint32_t batch, enum list list, uint32_t layer)
{
	const struct xfp_conversion_layers *layers = &batching->c->layers;
	const char *suffix = list == CALIBRATED_UNITS ? "-tried" : "";

	if (xfp_layer_is_missing(&layers->state[layer]))
		fprintf(batching->out, "b%06" PRIu32 "%s: | l%06" PRIu32 "-inputs\n", batch, suffix, layer);
	if (list == CALIBRATED_UNITS && layer + 2 < layers->count && xfp_layer_is_missing(&layers->state[layer + 2]))
		fprintf(batching->out, "l%06" PRIu32 "-inputs: | b%06" PRIu32 "-tried\n", layer + 2, batch);
}

/* Write the batches of the first `count` units, of one layer unless it is XFP_NO_LAYER. */
static void write_batches_of(struct batching *batching, enum list list, uint32_t layer, uint32_t count)
{
	uint32_t first = batching->batches;

	if (!count)
		return;
	batching->batches += xfp_batches(batching->units, count, batching->jobs, batching->worth);
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_batch_unit *unit = &batching->units[i];

		if (!i || unit->batch != unit[-1].batch)
			fprintf(batching->out, "%sb%06" PRIu32 " = --heaviest %" PRIu32, i ? "\n" : "",
				first + unit->batch, xfp_batch_heaviest(unit, count - i));
		fprintf(batching->out, " u%06" PRIu32 "-%s", unit->unit, paces[list].target);
	}
	fputc('\n', batching->out);
	for (uint32_t b = first; layer != XFP_NO_LAYER && b < batching->batches; b++)
		write_waiting_batch(batching, b, list, layer);
}

static void write_names(const char *name, uint32_t first, uint32_t end, FILE *out)
{
	fprintf(out, "%s =", name);
	for (uint32_t b = first; b < end; b++)
		fprintf(out, " b%06" PRIu32, b);
	fputc('\n', out);
}

/* For a launcher: batches take the place of units. */
static void write_batches(const struct xfp_conversion *c, struct xfp_batch_unit *units, FILE *out)
{
	struct batching batching = {
		.c = c,
		.out = out,
		.units = units,
		.jobs = xfp_jobs(c->request),
		.worth = XFP_TODO_STEP_SECONDS * xfp_step_processors_expected(),
	};
	uint32_t uncalibrated;

	write_batches_of(&batching, SURVEY_UNITS, XFP_NO_LAYER, add_units(&batching, SURVEY_UNITS, XFP_NO_LAYER, 0));
	write_batches_of(
		&batching, FIT_UNITS, XFP_NO_LAYER,
		add_units(&batching, PACK_UNITS, XFP_NO_LAYER, add_units(&batching, FIT_UNITS, XFP_NO_LAYER, 0)));
	for (uint32_t i = 0; i < c->layers.count; i++)
		write_batches_of(&batching, SCALED_UNITS, i, add_units(&batching, SCALED_UNITS, i, 0));
	uncalibrated = batching.batches;
	for (uint32_t i = 0; i < c->layers.count; i++)
		write_batches_of(&batching, CALIBRATED_UNITS, i, add_units(&batching, CALIBRATED_UNITS, i, 0));
	write_names("BATCHES", 0, uncalibrated, out);
	write_names("CALIBRATED_BATCHES", uncalibrated, batching.batches, out);
}

enum xfp_status xfp_todo_write(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *path = xfp_path(c->request->work, XFP_TODO_FILE);
	const bool launched = c->request->launcher;
	struct xfp_batch_unit *units = launched ? calloc(c->units.ledger->unit_count + 1, sizeof *units) : NULL;
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	enum xfp_status status;

	if (out) {
		write_units(c, FIT_UNITS, out);
		write_units(c, PACK_UNITS, out);
		if (c->request->goal.kind || c->request->survey)
			write_units(c, SURVEY_UNITS, out);
	}
	if (out && c->layers.count) {
		write_units(c, SCALED_UNITS, out);
		write_units(c, CALIBRATED_UNITS, out);
		write_layers(c, out);
		if (!launched)
			write_waiting_units(c, out);
	}
	if (out && units)
		write_batches(c, units, out);
	if (!xfp_text_end(&text) || !path || (launched && !units))
		status = xfp_no_memory(err);
	else
		status = xfp_write_file(path, text.bytes, text.size, false, err);
	free(text.bytes);
	free(units);
	free(path);
	return status;
}

uint32_t xfp_todo_width(const struct xfp_conversion *c)
{
	uint32_t width = 0, of_layer = 0, before = XFP_NO_LAYER;

	if (!c->layers.count || ((c->request->goal.kind || c->request->survey) && !c->solved.steps))
		return c->units.todo;
	/* Units are in the order of layers. */
	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		if (!xfp_unit_needs_inputs(c, u))
			continue;
		of_layer = c->layers.of_unit[u] == before ? of_layer + 1 : 1;
		before = c->layers.of_unit[u];
		width = of_layer > width ? of_layer : width;
	}
	return width ? width : c->units.todo;
}
