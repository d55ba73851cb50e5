/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/todo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "base/text/text.h"
#include "conversion/goal/goal.h"
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

static void write_units(const struct xfp_conversion *c, enum list list, FILE *out)
{
	static const char *const names[] = { "FIT_UNITS", "PACK_UNITS", "SURVEY_UNITS", "SCALED_UNITS",
					     "CALIBRATED_UNITS" };

	fprintf(out, "%s =", names[list]);
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		const struct xfp_unit_state *state = &c->units.state[i];
		bool done = list == SURVEY_UNITS ? state->in_store >> XFP_STAMP_SURVEY & 1 : state->done;

		if (!done && list_of(c, i) == list)
			fprintf(out, " u%06" PRIu32, i);
	}
	fputc('\n', out);
}

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

enum xfp_status xfp_todo_write(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *path = xfp_path(c->request->work, XFP_TODO_FILE);
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
	}
	if (!xfp_text_end(&text) || !path)
		status = xfp_no_memory(err);
	else
		status = xfp_write_file(path, text.bytes, text.size, false, err);
	free(text.bytes);
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
