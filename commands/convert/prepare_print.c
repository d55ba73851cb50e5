/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare_print.c - what a conversion has still to do, for people.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "commands/convert/prepare.h"

static bool goes_through(const struct xfp_conversion *c, uint32_t number, enum xfp_stamp stamp)
{
	uint32_t fits = c->units[number].fits;
	int kind = (int)stamp - XFP_STAMP_FIT;

	if (stamp == XFP_STAMP_SURVEY)
		return c->options.parameters.outlier_sigma == XFP_SIGMA_AUTO;
	if (stamp == XFP_STAMP_OUTLIERS)
		return true;
	return fits ? fits >> kind & 1 : xfp_fit_wanted(&c->options.parameters, (enum xfp_fit_kind)kind);
}

static void print_missing(const struct xfp_conversion *c, uint32_t number)
{
	static const struct {
		enum xfp_stamp stamp;
		const char *stage;
	} chain[] = {
		{ XFP_STAMP_SURVEY, "survey" },
		{ XFP_STAMP_OUTLIERS, "outlier-extract" },
		{ XFP_STAMP_FIT, "lloyd-fit" },
		{ XFP_STAMP_LIBRARY, "libfit" },
	}, more[] = {
		{ XFP_STAMP_EXTENDED, "lloyd-fit --extended" },
		{ XFP_STAMP_EXTENDED_LIBRARY, "libfit --extended" },
	};
	const struct xfp_ledger_unit *unit = &c->ledger->units[number];
	const struct xfp_unit_state *state = &c->units[number];
	const struct xfp_candidate *chosen = &state->choice.candidate;
	bool fit_named = false;

	printf("u%06" PRIu32 " %s:", number, xfp_printable(unit->name).text);
	if (unit->plan != XFP_PLAN_FIT) {
		puts(unit->plan == XFP_PLAN_FP8 ? " pack as fp8" : " pack as it is");
		return;
	}
	for (size_t i = 0; !state->decided && i < sizeof chain / sizeof chain[0]; i++) {
		const char *key = state->key[chain[i].stamp];

		if (!goes_through(c, number, chain[i].stamp))
			continue;
		/* One of them, as the survey is still to say. */
		if (!*key || !xfp_store_has(&c->store, key))
			printf("%s %s", !state->fits && fit_named ? " or" : "", chain[i].stage);
		fit_named = chain[i].stamp == XFP_STAMP_FIT;
	}
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
		const char *key = state->key[more[i].stamp];

		if (*key && !xfp_store_has(&c->store, key))
			printf(" %s", more[i].stage);
	}
	if (state->unmet)
		puts(" fails: no candidate meets its floor");
	else if (!state->decided)
		puts(" autoselect pack");
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

	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		if (!c->units[i].done)
			print_missing(c, i);
	printf("%" PRIu32 " of %" PRIu32 " units to do, %s weights in all\n", c->todo, c->ledger->unit_count,
	       xfp_human((double)c->weights, "", weights));
}
