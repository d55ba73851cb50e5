/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - computes the sums of a plan: units by class and role, tensors by fate, stages by cached artifacts.
 */
#include <stdlib.h>
#include <string.h>

#include "conversion/plan/plan.h"

static struct xfp_plan_group *find_group(struct xfp_plan_groups *groups, const struct xfp_ledger_unit *unit)
{
	struct xfp_plan_group *grown;

	for (unsigned i = groups->count; i-- > 0;)
		if (groups->list[i].class_ == unit->class_ && !strcmp(groups->list[i].role, unit->role))
			return &groups->list[i];
	if (groups->count == groups->capacity) {
		unsigned capacity = 2 * groups->capacity + 16;

		if (!(grown = realloc(groups->list, capacity * sizeof *grown)))
			return NULL;
		groups->list = grown;
		groups->capacity = capacity;
	}
	groups->list[groups->count] = (struct xfp_plan_group){ .class_ = unit->class_, .role = unit->role };
	return &groups->list[groups->count++];
}

static void add_unit(struct xfp_plan_group *group, const struct xfp_conversion *c, uint32_t number)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	struct xfp_policy policy = xfp_policy_of_unit(&c->parameters, unit);
	struct xfp_estimate expected = xfp_estimate(&input, number, XFP_EXPECTED);

	group->units++;
	group->measured += c->units.state[number].decided;
	group->missed += !expected.met;
	group->weights += xfp_unit_weights(unit);
	group->source += xfp_unit_source_bytes(unit);
	for (int bound = 0; bound < XFP_BOUNDS; bound++)
		group->bytes[bound] += xfp_estimate(&input, number, (enum xfp_bound)bound).bytes;
	group->bits[expected.k]++;
	group->paper +=
		(double)xfp_unit_weights(unit) * xfp_paper_bits(expected.mode, expected.k, expected.group, unit->dtype);
	xfp_format_ranges_add(&group->ranges, expected.mode, expected.k, expected.group);
	group->fp8 += expected.mode == XFP_MODE_FP8;
	group->kept += expected.mode == XFP_MODE_KEEP;
	group->fixed_missed += policy.fixed && !expected.met;
	if (unit->plan != XFP_PLAN_FIT || (c->request->goal.kind && !policy.floor))
		return;
	if (!group->has_floor || policy.floor < group->min_floor)
		group->min_floor = policy.floor;
	if (!group->has_floor || policy.floor > group->max_floor)
		group->max_floor = policy.floor;
	group->has_floor = true;
}

static int by_class(const void *a, const void *b)
{
	const struct xfp_plan_group *x = a, *y = b;

	return x->class_ != y->class_ ? (x->class_ > y->class_) - (x->class_ < y->class_) : strcmp(x->role, y->role);
}

bool xfp_plan_group_units(const struct xfp_conversion *c, struct xfp_plan_groups *groups)
{
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		struct xfp_plan_group *group = find_group(groups, &c->units.ledger->units[i]);

		if (!group)
			return false;
		add_unit(group, c, i);
		add_unit(&groups->all, c, i);
	}
	if (groups->count)
		qsort(groups->list, groups->count, sizeof *groups->list, by_class);
	return true;
}

double xfp_plan_bits(const struct xfp_plan_group *group, enum xfp_bound bound)
{
	return group->weights ? (double)group->bytes[bound] * 8 / (double)group->weights : 0;
}

struct xfp_composition xfp_plan_composition(const struct xfp_plan_facts *facts)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(facts->c);
	struct xfp_composition composition = xfp_composition_of_ledger(facts->c->units.ledger);

	composition.compact = facts->c->parameters.modes >> XFP_MODE_V2C & 1;
	composition.bytes = facts->bundle[XFP_EXPECTED];
	for (uint32_t u = 0; u < facts->c->units.ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &facts->c->units.ledger->units[u];
		struct xfp_estimate e = xfp_estimate(&input, u, XFP_EXPECTED);

		xfp_composition_add_unit(&composition, unit->class_, e.mode, e.bytes, xfp_unit_weights(unit),
					 unit->cols, xfp_paper_bits(e.mode, e.k, e.group, unit->dtype));
	}
	composition.files = xfp_footprint_files(facts->c->units.ledger);
	return composition;
}

struct xfp_plan_fates xfp_plan_count_fates(const struct xfp_ledger *ledger)
{
	struct xfp_plan_fates fates = { 0 };

	for (uint32_t i = 0; i < ledger->tensor_count; i++) {
		fates.tensors[ledger->tensors[i].fate]++;
		fates.bytes[ledger->tensors[i].fate] += ledger->tensors[i].bytes;
	}
	return fates;
}

/* ---- cached artifacts ---------------------------------------------------------------------------- */

/* Whether a fitted unit needs a stage. */
static bool is_needed(const struct xfp_conversion *c, uint32_t number, enum xfp_stamp stamp)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	const struct xfp_unit_state *state = &c->units.state[number];
	struct xfp_estimate estimate = xfp_estimate(&input, number, XFP_EXPECTED);

	if (!xfp_steps[stamp].fit)
		return true;
	if (xfp_steps[stamp].extended)
		/* The survey determines the bits, so the extended set is rarely needed. */
		return c->parameters.outlier_sigma == XFP_SIGMA_AUTO ? *state->key[stamp] : estimate.extended;
	/* Without a survey, assume the fit of the expected mode. */
	return state->fits ? state->fits >> xfp_step_fit(stamp) & 1
			   : (estimate.group != 0) == (stamp == XFP_STAMP_LIBRARY);
}

unsigned xfp_plan_count_hits(const struct xfp_conversion *c, struct xfp_plan_hits hits[XFP_STAMPS])
{
	unsigned count = 0;

	for (enum xfp_stamp s = XFP_STAMP_SURVEY; s < XFP_STAMPS; s++)
		if (xfp_step_wanted(&c->parameters, s, true))
			hits[count++] = (struct xfp_plan_hits){ s, 0, 0 };
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		bool fit = c->units.ledger->units[i].plan == XFP_PLAN_FIT;

		for (unsigned s = 0; s < count; s++) {
			enum xfp_stamp stamp = hits[s].stamp;

			if (fit ? !is_needed(c, i, stamp) : stamp != XFP_STAMP_PACKED)
				continue;
			hits[s].needed++;
			hits[s].present += c->units.state[i].in_store >> stamp & 1;
		}
	}
	return count;
}

uint32_t xfp_plan_surveyed_units(const struct xfp_conversion *c)
{
	uint32_t surveyed = 0;

	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		const struct xfp_unit_state *state = &c->units.state[i];

		surveyed += !state->decided && state->expected && state->in_store >> XFP_STAMP_SURVEY & 1;
	}
	return surveyed;
}

uint32_t xfp_plan_missing_layers(const struct xfp_conversion *c)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < c->layers.count; i++)
		missing += xfp_layer_is_missing(&c->layers.state[i]);
	return missing;
}

uint32_t xfp_plan_known_units(const struct xfp_conversion *c)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		known += c->units.state[i].known;
	return known;
}
