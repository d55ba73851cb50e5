/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - xfp compare: the best setting for each number of bits, and the llama.cpp types it can replace.
 */
#include <string.h>

#include "commands/compare/compare.h"

static const double sizes[XFP_ANSWERS] = { 2.5, 3, 3.5, 4, 4.5, 5, 6 };

/* llama.cpp's type names: Q4_0, Q4_K, IQ4_XS. */
static bool is_of_llama(const struct xfp_compared *c)
{
	return c->peer && c->candidate.cos_median >= 0 && (*c->peer->name == 'Q' || !strncmp(c->peer->name, "IQ", 2));
}

static const struct xfp_compared *best_within(const struct xfp_compared_unit *unit, double bits)
{
	const struct xfp_compared *best = NULL;

	for (uint32_t i = 0; i < unit->count; i++) {
		const struct xfp_compared *c = &unit->list[i];

		if (c->peer || c->published || c->candidate.cos_median < 0 || xfp_compared_bits(unit, c) > bits)
			continue;
		if (!best || c->candidate.error < best->candidate.error ||
		    (!(c->candidate.error > best->candidate.error) && c->candidate.bytes < best->candidate.bytes))
			best = c;
	}
	return best;
}

static void add_types(const struct xfp_compared_unit *unit, struct xfp_compare_answer *answer)
{
	const struct xfp_candidate *ours = &answer->ours->candidate;

	for (uint32_t i = 0; i < unit->count; i++) {
		const struct xfp_compared *c = &unit->list[i];

		if (!is_of_llama(c))
			continue;
		if (c->candidate.bytes >= ours->bytes && c->candidate.error >= ours->error &&
		    (!answer->replaces || c->candidate.error < answer->replaces->candidate.error))
			answer->replaces = c;
		if (c->candidate.error <= ours->error &&
		    (!answer->cheapest || c->candidate.bytes < answer->cheapest->candidate.bytes))
			answer->cheapest = c;
	}
}

void xfp_compare_answers(const struct xfp_compared_unit *unit, struct xfp_compare_answer answers[XFP_ANSWERS])
{
	for (unsigned i = 0; i < XFP_ANSWERS; i++) {
		answers[i] = (struct xfp_compare_answer){ .bits = sizes[i], .ours = best_within(unit, sizes[i]) };
		if (answers[i].ours)
			add_types(unit, &answers[i]);
	}
}
