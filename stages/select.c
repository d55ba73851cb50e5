/* SPDX-License-Identifier: Apache-2.0 */
#include "select.h"

#include <stdio.h>
#include <string.h>

/* Fewer bytes win, then the higher median, then the earlier candidate. */
static bool better(const struct xfp_candidate *a, const struct xfp_candidate *b)
{
	return a->bytes != b->bytes ? a->bytes < b->bytes : a->cos_median > b->cos_median;
}

/* What a unit costs at source precision. */
static struct xfp_candidate source_precision(const struct xfp_ledger_unit *unit)
{
	struct xfp_candidate keep = { .mode = XFP_MODE_KEEP, .cos_median = 1, .cos_p5 = 1 };

	keep.bytes = unit->experts * unit->rows * unit->cols * (xfp_dtype_bits(unit->dtype) / 8);
	return keep;
}

struct search {
	uint32_t floor;
	uint64_t most;                          /* bytes at source precision: nothing larger is chosen */
	const struct xfp_candidate *met, *best; /* fewest bytes that meet; highest median of all */
	const char *met_key, *best_key;
};

static void consider(struct search *search, const struct xfp_candidate *candidates, uint32_t count, const char *key)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &candidates[i];

		if (c->bytes >= search->most || c->cos_median < 0)
			continue;
		if (c->cos_median >= (double)search->floor / XFP_NANO && (!search->met || better(c, search->met))) {
			search->met = c;
			search->met_key = key;
		}
		if (!search->best || c->cos_median > search->best->cos_median) {
			search->best = c;
			search->best_key = key;
		}
	}
}

enum xfp_status xfp_select(const struct xfp_select_input *input, struct xfp_choice *choice, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = input->unit;
	struct xfp_candidate keep = source_precision(unit);
	struct search search = { .floor = input->parameters->floor[unit->class_], .most = keep.bytes };
	char floor[24];

	if (!input->base_count && input->parameters->on_nonfinite == XFP_NONFINITE_FAIL)
		return xfp_fail(err, XFP_BAD_INPUT,
				"has NaN or infinite weights; mend the checkpoint, or keep such tensors as "
				"they are with --on-nonfinite keep");
	consider(&search, input->base_candidates, input->base_count, input->base);
	if (!search.met && input->base_count && !input->extended && xfp_parameters_extended_bits(input->parameters))
		return xfp_fail(err, XFP_WANT_MORE, "no candidate meets the floor; measuring the extended set");
	if (input->extended)
		consider(&search, input->extended_candidates, input->extended_count, input->extended);

	memset(choice, 0, sizeof *choice);
	choice->floor = search.floor;
	choice->met = 1;
	if (search.met) {
		choice->candidate = *search.met;
		snprintf(choice->fit, sizeof choice->fit, "%s", search.met_key);
	} else if (search.best && input->parameters->on_miss == XFP_MISS_BEST) {
		choice->candidate = *search.best;
		choice->met = 0;
		snprintf(choice->fit, sizeof choice->fit, "%s", search.best_key);
	} else if (search.best && input->parameters->on_miss == XFP_MISS_FAIL) {
		xfp_decimal_format(search.floor, XFP_NANO, floor);
		return xfp_fail(err, XFP_UNMET,
				"no candidate reaches the floor %s; the best, %u bits, has median cosine %.6f. "
				"Lower the floor,%s or choose --on-miss keep",
				floor, search.best->k, search.best->cos_median,
				input->parameters->bits >> 6 & 1 ? "" : " allow more bits,");
	} else {
		choice->candidate = keep;
		snprintf(choice->fit, sizeof choice->fit, "%s", input->outliers);
	}
	return XFP_OK;
}
