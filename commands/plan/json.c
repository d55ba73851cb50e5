/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - a plan as JSON: a stable interface, documented in xfp-plan(1).
 */
#include <stdio.h>
#include <stdlib.h>

#include "commands/convert/goal_print.h"
#include "commands/plan/print.h"
#include "commands/ui/composition_print.h"
#include "conversion/disk_space.h"
#include "schemas/json_print.h"

static json_t *bounds_json(const uint64_t bytes[XFP_BOUNDS])
{
	return XFP_JSON({ "least", xfp_json_count(bytes[XFP_MINIMUM]) },
			{ "expected", xfp_json_count(bytes[XFP_EXPECTED]) },
			{ "most", xfp_json_count(bytes[XFP_MAXIMUM]) });
}

static json_t *modes_json(const struct xfp_format_ranges *ranges)
{
	json_t *list = json_array();

	for (int mode = 0; mode < XFP_MODES; mode++)
		if (ranges->modes >> mode & 1)
			xfp_json_add(&list, xfp_json_text(xfp_mode_name((enum xfp_mode)mode)));
	return list;
}

static json_t *group_json(const struct xfp_plan_group *group)
{
	double floor = (double)group->min_floor / XFP_NANO;
	json_t *bits = json_object();

	for (unsigned k = 1; k <= XFP_MAX_K; k++)
		if (group->bits[k])
			xfp_json_put(&bits, (char[2]){ (char)('0' + k), 0 }, json_integer(group->bits[k]));
	return XFP_JSON({ "class", xfp_json_text(xfp_class_name(group->class_)) },
			{ "role", xfp_json_text(group->role) }, { "units", xfp_json_count(group->units) },
			{ "weights", xfp_json_count(group->weights) },
			{ "source_bytes", xfp_json_count(group->source) },
			{ "floor", group->has_floor ? json_real(floor) : json_null() }, { "bits", bits },
			{ "fp8", xfp_json_count(group->fp8) }, { "source_precision", xfp_json_count(group->kept) },
			{ "modes", modes_json(&group->ranges) },
			{ "least_group_size", xfp_json_count_or_null(group->ranges.min_group) },
			{ "most_group_size", xfp_json_count_or_null(group->ranges.max_group) },
			{ "true_bits", json_real(xfp_plan_bits(group, XFP_EXPECTED)) },
			{ "paper_bits", json_real(group->weights ? group->paper / (double)group->weights : 0) },
			{ "bytes", bounds_json(group->bytes) }, { "below_floor", xfp_json_count(group->missed) },
			{ "measured", xfp_json_count(group->measured) });
}

static json_t *groups_json(const struct xfp_plan_groups *groups)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < groups->count; i++)
		xfp_json_add(&list, group_json(&groups->list[i]));
	return list;
}

static json_t *tensors_json(const struct xfp_ledger *ledger)
{
	struct xfp_plan_fates fates = xfp_plan_count_fates(ledger);
	json_t *json = json_object();

	for (int fate = 0; fate < XFP_FATES; fate++)
		xfp_json_put(&json, xfp_fate_name((enum xfp_fate)fate),
			     XFP_JSON({ "tensors", xfp_json_count(fates.tensors[fate]) },
				      { "bytes", xfp_json_count(fates.bytes[fate]) }));
	return json;
}

static json_t *memory_json(const struct xfp_plan_facts *facts)
{
	const struct xfp_memory *memory = &facts->memory;
	const struct xfp_ledger *ledger = facts->c->units.ledger;

	return XFP_JSON({ "peak", xfp_json_count(memory->peak) }, { "inspect", xfp_json_count(memory->inspect) },
			{ "units", xfp_json_count(memory->units) }, { "bundle", xfp_json_count(memory->bundle) },
			{ "largest_unit", xfp_json_text_or_null(memory->largest < ledger->unit_count
									? ledger->units[memory->largest].name
									: NULL) });
}

static json_t *disk_json(const struct xfp_plan_facts *facts)
{
	const struct xfp_disk *disk = &facts->disk;
	const struct xfp_request *request = facts->c->request;

	return XFP_JSON({ "total", xfp_json_count(xfp_disk_total(disk)) }, { "bundle", xfp_json_count(disk->bundle) },
			{ "cache", xfp_json_count(disk->artifacts) }, { "work", xfp_json_count(disk->work) },
			{ "staying_units", xfp_json_count(facts->staying) },
			{ "bundle_free", xfp_json_count(xfp_free_bytes_at(request->out)) },
			{ "cache_free", xfp_json_count(xfp_free_bytes_at(request->cache)) },
			{ "shortage", facts->shortage.status ? xfp_json_text(facts->shortage.text) : json_null() });
}

static json_t *time_json(const struct xfp_plan_facts *facts)
{
	const struct xfp_plan_pace *pace = &facts->pace;

	if (facts->c->units.todo && !facts->current && !pace->known)
		return json_null();
	return XFP_JSON(
		{ "seconds", json_real(xfp_plan_seconds(facts)) }, { "processors", xfp_json_count(facts->processors) },
		{ "layers", json_real(xfp_plan_pace_layers(facts->c)) }, { "seconds_a_unit", json_real(pace->unit) },
		{ "survey_scan", json_real(pace->scan) },
		{ "survey", json_real(pace->kind[0].weight[XFP_STAMP_SURVEY]) },
		{ "outlier_extract", json_real(pace->kind[0].weight[XFP_STAMP_OUTLIERS]) },
		{ "lloyd_fit", json_real(pace->kind[0].weight[XFP_STAMP_FIT]) },
		{ "lloyd_fit_extended", json_real(pace->kind[0].weight[XFP_STAMP_EXTENDED]) },
		{ "libfit", json_real(pace->kind[0].weight[XFP_STAMP_LIBRARY]) },
		{ "libfit_extended", json_real(pace->kind[0].weight[XFP_STAMP_EXTENDED_LIBRARY]) },
		{ "pack", json_real(pace->kind[0].weight[XFP_STAMP_PACKED]) }, { "pack_fp8", json_real(pace->fp8) });
}

static json_t *cache_json(const struct xfp_conversion *c)
{
	json_t *stages = json_array();
	struct xfp_plan_hits hits[XFP_STAMPS];
	unsigned count = xfp_plan_count_hits(c, hits);

	for (unsigned s = 0; s < count; s++)
		xfp_json_add(&stages, XFP_JSON({ "stage", xfp_json_text(xfp_steps[hits[s].stamp].display_name) },
					       { "needed", xfp_json_count(hits[s].needed) },
					       { "there", xfp_json_count(hits[s].present) }));
	return XFP_JSON({ "folder", xfp_json_text(c->request->cache) },
			{ "exists", json_boolean(c->place.manifest != NULL) },
			{ "known", xfp_json_count(xfp_plan_known_units(c)) },
			{ "done", xfp_json_count(c->units.ledger->unit_count - c->units.todo) }, { "stages", stages });
}

static json_t *calibration_json(const struct xfp_conversion *c)
{
	if (!c->layers.count)
		return json_null();
	return XFP_JSON({ "tokens", xfp_json_count(c->parameters.calibration.tokens) },
			{ "layers", xfp_json_count(c->layers.count) },
			{ "layers_missing", xfp_json_count(xfp_plan_missing_layers(c)) },
			{ "bytes", xfp_json_count(c->layers.bytes) });
}

enum xfp_status xfp_plan_print_json(const struct xfp_plan_facts *facts, const struct xfp_plan_cluster *cluster,
				    struct xfp_error *err)
{
	const struct xfp_conversion *c = facts->c;
	struct xfp_plan_groups groups = { 0 };
	struct xfp_composition composition;
	json_t *root = NULL;

	if (!xfp_plan_group_units(c, &groups))
		return xfp_json_print(NULL, err);
	composition = xfp_plan_composition(facts);
	root = XFP_JSON(
		{ "model", xfp_json_text(c->request->model) }, { "family", xfp_json_text(c->units.ledger->family) },
		{ "format", xfp_json_text(c->units.ledger->format) }, { "weights", xfp_json_count(c->units.weights) },
		{ "units", xfp_json_count(c->units.ledger->unit_count) },
		{ "measured", xfp_json_count(facts->measured) },
		{ "surveyed", xfp_json_count(xfp_plan_surveyed_units(c)) },
		{ "estimate", json_boolean((facts->measured < groups.all.units - groups.all.fp8)) },
		{ "groups", groups_json(&groups) }, { "tensors", tensors_json(c->units.ledger) },
		{ "bundle", bounds_json(facts->bundle) }, { "whole", xfp_composition_json(&composition) },
		{ "memory", memory_json(facts) }, { "disk", disk_json(facts) }, { "calibration", calibration_json(c) },
		{ "jobs", xfp_json_count(facts->jobs) }, { "time", time_json(facts) },
		{ "nodes", xfp_plan_nodes_json(cluster) }, { "cache", cache_json(c) },
		{ "current", json_boolean(facts->current) }, { "goal", xfp_goal_json(c) },
		{ "curve", xfp_plan_curve_json(facts) });
	free(groups.list);
	return xfp_json_print(root, err);
}
