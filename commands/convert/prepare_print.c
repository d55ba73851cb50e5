/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/prepare_print.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/printable.h"
#include "base/text/size.h"

static bool needs_step(const struct xfp_conversion *c, uint32_t number, enum xfp_stamp stamp)
{
	uint32_t fits = c->units.state[number].fits;

	return xfp_steps[stamp].fit && fits ? fits >> xfp_step_fit(stamp) & 1
					    : xfp_step_wanted(&c->parameters, stamp, false);
}

/* Print the steps before the choice: those of the first fits, and the extended ones if requested. */
static void print_measuring(const struct xfp_conversion *c, uint32_t number)
{
	const struct xfp_unit_state *state = &c->units.state[number];
	bool fit_named = false;

	for (enum xfp_stamp s = XFP_STAMP_SURVEY; s < XFP_STAMP_CHOICE; s++) {
		const char *key = state->key[s];
		bool there = *key && xfp_store_has(&c->place.store, key), extended = xfp_steps[s].extended;

		if (extended ? !*key : state->decided || !needs_step(c, number, s))
			continue;
		/* The survey will determine which of the fits is needed. */
		if (!there)
			printf("%s %s", !extended && !state->fits && fit_named ? " or" : "", xfp_steps[s].display_name);
		fit_named = s == XFP_STAMP_FIT;
	}
}

static void print_missing(const struct xfp_conversion *c, uint32_t number)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	const struct xfp_unit_state *state = &c->units.state[number];
	const struct xfp_candidate *chosen = &state->choice.candidate;

	printf("u%06" PRIu32 " %s:", number, xfp_printable(unit->name).text);
	if (unit->plan != XFP_PLAN_FIT) {
		puts(unit->plan == XFP_PLAN_FP8 ? " pack as fp8" : " pack as it is");
		return;
	}
	print_measuring(c, number);
	if (state->unmet)
		puts(" fails: no candidate meets its floor");
	else if (!state->decided)
		printf(" %s %s\n", xfp_steps[XFP_STAMP_CHOICE].display_name, xfp_steps[XFP_STAMP_PACKED].display_name);
	else if (chosen->mode == XFP_MODE_KEEP)
		puts(" pack at source precision");
	else
		printf(" pack%s%s with %u bits%s\n", chosen->group ? " as " : "",
		       chosen->group ? xfp_mode_name((enum xfp_mode)chosen->mode) : "", (unsigned)chosen->k,
		       state->choice.met ? "" : ", below its floor");
}

void xfp_prepare_print(const struct xfp_conversion *c)
{
	char weights[32];

	for (uint32_t i = 0; i < c->layers.count; i++)
		if (xfp_layer_is_missing(&c->layers.state[i]))
			printf("l%06" PRIu32 ": %s\n", i, xfp_steps[XFP_STAMP_INPUTS].display_name);
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		if (!c->units.state[i].done)
			print_missing(c, i);
	printf("%" PRIu32 " of %" PRIu32 " units to do, %s weights in all\n", c->units.todo,
	       c->units.ledger->unit_count, xfp_human((double)c->units.weights, "", weights));
}
