/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/select.h"

#include <stdio.h>
#include <string.h>

/* The cost of a unit at source precision. */
static struct xfp_candidate source_precision(const struct xfp_ledger_unit *unit)
{
	struct xfp_candidate keep = { .mode = XFP_MODE_KEEP, .cos_median = 1, .cos_p5 = 1 };

	keep.bytes = xfp_unit_source_bytes(unit);
	return keep;
}

/* A candidate, its measurements, and the fit that contains it. */
struct option {
	const struct xfp_candidate *candidate;   /* NULL: none */
	const struct xfp_output_measure *output; /* NULL: not calibrated */
	struct xfp_sampled judged;
	const char *key;
};

struct choice_search {
	const struct xfp_policy *policy;
	uint64_t max;            /* size at source precision: a larger candidate is never chosen */
	struct option met, best; /* met: the smallest that meets the floor; best: the highest median of all */
};

/* Fewer bytes win, then the higher median, then the earlier candidate. */
static bool better(const struct option *a, const struct option *b)
{
	if (!b->candidate)
		return true;
	return a->candidate->bytes != b->candidate->bytes ? a->candidate->bytes < b->candidate->bytes
							  : a->judged.median > b->judged.median;
}

static bool meets(const struct choice_search *search, double median)
{
	return median >= (double)search->policy->floor / XFP_NANO;
}

static void consider(struct choice_search *search, const struct xfp_fit_set *set, const struct xfp_sampled *sampled)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct xfp_candidate *c = &set->candidates[i];
		struct option option = {
			c, set->outputs ? &set->outputs[i] : NULL, { c->cos_median, c->cos_p5 }, set->key
		};

		if (c->bytes >= search->max || c->cos_median < 0 || !(search->policy->format.bits >> c->k & 1) ||
		    (option.output && option.output->median < 0))
			continue;
		if (option.output)
			option.judged = (struct xfp_sampled){ option.output->median, option.output->p5 };
		else if (sampled)
			option.judged = sampled[i];
		if ((search->policy->fixed || search->policy->assigned || meets(search, option.judged.median)) &&
		    better(&option, &search->met))
			search->met = option;
		if (!search->best.candidate || option.judged.median > search->best.judged.median)
			search->best = option;
	}
}

static void take(const struct choice_search *search, const struct option *option, struct xfp_choice *choice)
{
	choice->candidate = *option->candidate;
	choice->met = meets(search, option->output ? option->output->median : option->candidate->cos_median);
	snprintf(choice->fit, sizeof choice->fit, "%s", option->key);
	if (option->output)
		choice->output = *option->output;
	if (choice->sample) {
		choice->sample_median = option->judged.median;
		choice->sample_p5 = option->judged.p5;
	}
}

/* "v2c with 6 bits", "fp8" */
static const char *name_of(const struct xfp_candidate *candidate, char text[32])
{
	const char *mode = xfp_mode_name((enum xfp_mode)candidate->mode);

	if (candidate->mode == XFP_MODE_FP8)
		return mode;
	snprintf(text, 32, "%s with %u bits", mode, candidate->k);
	return text;
}

static enum xfp_status fail_unmet(const struct choice_search *search, struct xfp_error *err)
{
	char floor[24], name[32];

	xfp_decimal_format(search->policy->floor, XFP_NANO, floor);
	return xfp_fail(err, XFP_UNMET,
			"no candidate meets the floor %s: the best, %s, has median cosine %.6f%s; lower the floor,%s "
			"or choose --on-miss keep",
			floor, name_of(search->best.candidate, name), search->best.judged.median,
			search->best.output ? " of outputs" : "",
			search->policy->format.bits >> 6 & 1 ? "" : " allow more bits,");
}

/* Whether the extended set may help: no candidate meets the floor so far, or only ones that are no smaller than fp8,
 * which is in that set. */
static bool wants_more(const struct xfp_select_input *input, const struct choice_search *search,
		       const struct xfp_parameters *seen)
{
	if (!search->met.candidate)
		return xfp_parameters_extended_bits(seen);
	return search->met.candidate->bytes >= xfp_unit_fp8_bytes(input->unit) &&
	       search->policy->format.bits & xfp_parameters_extended_bits(input->parameters) & XFP_FP8_BIT;
}

enum xfp_status xfp_select(const struct xfp_select_input *input, struct xfp_choice *choice, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = input->unit;
	const struct xfp_parameters seen = xfp_policy_parameters(input->parameters, input->policy);
	struct xfp_candidate keep = source_precision(unit);
	struct choice_search search = { .policy = input->policy, .max = keep.bytes };
	uint32_t measured = 0, calibrated = 0, sets = 0;

	for (int i = 0; i < XFP_FIT_KINDS; i++) {
		measured |= i < XFP_FIT_EXTENDED ? input->fits[i].count : 0;
		calibrated += xfp_fit_set_is_calibrated(&input->fits[i]);
		sets += input->fits[i].count > 0;
	}
	if (calibrated && calibrated < sets) /* cosines of outputs and of weights are not comparable */
		return xfp_fail(err, XFP_FAILED, "only some of its fits have outputs");
	if (!measured && input->parameters->on_nonfinite == XFP_NONFINITE_FAIL)
		return xfp_fail(err, XFP_BAD_INPUT,
				"has NaN or infinite weights; repair the checkpoint, or keep such tensors "
				"unchanged with --on-nonfinite keep");
	for (int i = 0; i < XFP_FIT_KINDS; i++)
		if (input->fits[i].key)
			consider(&search, &input->fits[i], input->sampled[i]);
	if (measured && !input->fits[XFP_FIT_EXTENDED].key && !input->fits[XFP_FIT_EXTENDED_LIBRARY].key &&
	    !input->policy->fixed && wants_more(input, &search, &seen))
		return xfp_fail(err, XFP_WANT_EXTENDED, "no candidate meets the floor; measuring the extended set");

	*choice = (struct xfp_choice){ .floor = input->policy->floor, .fixed = input->policy->fixed };
	if ((choice->calibrated = calibrated))
		choice->output = (struct xfp_output_measure){ 1, 1, 0 }; /* at source precision */
	if (!input->policy->fixed && !input->policy->assigned && !calibrated)
		choice->sample = xfp_sample_experts(&input->parameters->moe_sample, unit->experts);
	if (search.met.candidate) {
		take(&search, &search.met, choice);
	} else if (search.best.candidate && input->parameters->on_miss == XFP_MISS_BEST) {
		take(&search, &search.best, choice);
	} else if (search.best.candidate && input->parameters->on_miss == XFP_MISS_FAIL) {
		return fail_unmet(&search, err);
	} else {
		choice->candidate = keep;
		choice->met = 1;
		choice->sample_median = choice->sample_p5 = choice->sample ? 1 : 0;
		snprintf(choice->fit, sizeof choice->fit, "%s", input->outliers);
	}
	return XFP_OK;
}
