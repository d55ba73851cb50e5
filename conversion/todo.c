/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/todo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "base/text/text.h"
#include "conversion/goal/goal.h"
#include "conversion/state/layers.h"

bool xfp_unit_needs_inputs(const struct xfp_conversion *c, uint32_t unit)
{
	const struct xfp_unit_state *state = &c->units.state[unit];
	/* Without fits yet, a survey will determine the threshold of its libraries. */
	bool library = !state->fits || state->fits >> XFP_FIT_LIBRARY & 1;

	return xfp_layers_of(c, unit) != XFP_NO_LAYER && library && !state->done && !state->decided &&
	       !xfp_goal_surveys(c, unit);
}

static bool is_in(const struct xfp_conversion *c, uint32_t unit, enum xfp_plan plan)
{
	bool fit = c->units.ledger->units[unit].plan == XFP_PLAN_FIT;

	return !c->units.state[unit].done && fit == (plan == XFP_PLAN_FIT) && !xfp_goal_surveys(c, unit) &&
	       !xfp_unit_needs_inputs(c, unit);
}

static bool is_to_survey(const struct xfp_conversion *c, uint32_t unit, enum xfp_plan plan)
{
	(void)plan;
	return xfp_goal_surveys(c, unit) && !(c->units.state[unit].in_store >> XFP_STAMP_SURVEY & 1);
}

static bool is_calibrated(const struct xfp_conversion *c, uint32_t unit, enum xfp_plan plan)
{
	(void)plan;
	return xfp_unit_needs_inputs(c, unit);
}

static void write_units(const struct xfp_conversion *c, const char *name, enum xfp_plan plan,
			bool (*listed)(const struct xfp_conversion *c, uint32_t unit, enum xfp_plan plan), FILE *out)
{
	fprintf(out, "%s =", name);
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		if (listed(c, i, plan))
			fprintf(out, " u%06" PRIu32, i);
	fputc('\n', out);
}

/* A layer that already has its stamp is no target, and needs no order. */
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

		if (!xfp_unit_needs_inputs(c, u))
			continue;
		if (xfp_layer_is_missing(&layers[layer]))
			fprintf(out, "u%06" PRIu32 "-tried: | l%06" PRIu32 "-inputs\n", u, layer);
		if (layer + 2 < c->layers.count && xfp_layer_is_missing(&layers[layer + 2]))
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
		write_units(c, "FIT_UNITS", XFP_PLAN_FIT, is_in, out);
		write_units(c, "PACK_UNITS", XFP_PLAN_KEEP, is_in, out);
		if (c->request->goal.kind || c->request->survey)
			write_units(c, "SURVEY_UNITS", XFP_PLAN_FIT, is_to_survey, out);
	}
	if (out && c->layers.count) {
		write_units(c, "CALIBRATED_UNITS", XFP_PLAN_FIT, is_calibrated, out);
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

	if (!c->layers.count)
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
