/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - a plan as JSON: a stable interface, documented in xfp-plan(1).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/system/processors.h"
#include "commands/plan/plan.h"
#include "schemas/json_print.h"

static json_t *bounds_json(const uint64_t bytes[XFP_BOUNDS])
{
	return json_pack("{s:I, s:I, s:I}", "least", (json_int_t)bytes[XFP_LEAST], "expected",
			 (json_int_t)bytes[XFP_EXPECTED], "most", (json_int_t)bytes[XFP_MOST]);
}

static json_t *group_json(const struct xfp_plan_group *group)
{
	double floor = (double)group->least_floor / XFP_NANO;
	json_t *bits = json_object(), *json;
	bool ok = bits;

	for (unsigned k = 1; ok && k <= XFP_MAX_K; k++)
		if (group->bits[k])
			ok = !json_object_set_new(bits, (char[2]){ (char)('0' + k), 0 }, json_integer(group->bits[k]));
	json = json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:f, s:o, s:I, s:I}", "class",
			 xfp_class_name(group->class_), "role", group->role, "units", (json_int_t)group->units,
			 "weights", (json_int_t)group->weights, "source_bytes", (json_int_t)group->source, "floor",
			 group->has_floor ? json_real(floor) : json_null(), "bits", bits, "fp8", (json_int_t)group->fp8,
			 "source_precision", (json_int_t)group->kept, "true_bits", xfp_plan_bits(group, XFP_EXPECTED),
			 "bytes", bounds_json(group->bytes), "below_floor", (json_int_t)group->missed, "measured",
			 (json_int_t)group->measured);
	if (ok)
		return json;
	json_decref(json);
	return NULL;
}

static json_t *groups_json(const struct xfp_plan_groups *groups)
{
	json_t *list = json_array();

	for (unsigned i = 0; list && i < groups->count; i++)
		if (json_array_append_new(list, group_json(&groups->list[i]))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

static json_t *tensors_json(const struct xfp_ledger *ledger)
{
	struct xfp_plan_fates fates = xfp_plan_count_fates(ledger);
	json_t *json = json_object();

	for (int fate = 0; json && fate < XFP_FATES; fate++)
		if (json_object_set_new(json, xfp_fate_name((enum xfp_fate)fate),
					json_pack("{s:I, s:I}", "tensors", (json_int_t)fates.tensors[fate], "bytes",
						  (json_int_t)fates.bytes[fate]))) {
			json_decref(json);
			json = NULL;
		}
	return json;
}

static json_t *memory_json(const struct xfp_plan_facts *facts)
{
	const struct xfp_memory *memory = &facts->memory;
	const struct xfp_ledger *ledger = facts->c->ledger;

	return json_pack("{s:I, s:I, s:I, s:I, s:s?}", "peak", (json_int_t)memory->peak, "inspect",
			 (json_int_t)memory->inspect, "units", (json_int_t)memory->units, "bundle",
			 (json_int_t)memory->bundle, "largest_unit",
			 memory->largest < ledger->unit_count ? ledger->units[memory->largest].name : NULL);
}

static json_t *disk_json(const struct xfp_plan_facts *facts)
{
	const struct xfp_disk *disk = &facts->disk;
	const struct xfp_options *options = &facts->c->options;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "total", (json_int_t)xfp_disk_total(disk), "bundle",
			 (json_int_t)disk->bundle, "cache", (json_int_t)disk->artifacts, "work", (json_int_t)disk->work,
			 "bundle_free", (json_int_t)xfp_plan_free_bytes(options->out), "cache_free",
			 (json_int_t)xfp_plan_free_bytes(options->cache));
}

static json_t *time_json(const struct xfp_plan_facts *facts)
{
	const struct xfp_plan_pace *pace = &facts->pace;

	if (facts->c->todo && !pace->known)
		return json_null();
	return json_pack("{s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "seconds", xfp_plan_seconds(facts),
			 "processors", (int)xfp_processors(), "seconds_a_unit", pace->unit, "survey",
			 pace->weight[XFP_STAMP_SURVEY], "outlier_extract", pace->weight[XFP_STAMP_OUTLIERS],
			 "lloyd_fit", pace->weight[XFP_STAMP_FIT], "lloyd_fit_extended",
			 pace->weight[XFP_STAMP_EXTENDED], "libfit", pace->weight[XFP_STAMP_LIBRARY], "libfit_extended",
			 pace->weight[XFP_STAMP_EXTENDED_LIBRARY], "pack", pace->weight[XFP_STAMP_PACKED], "pack_fp8",
			 pace->fp8);
}

static json_t *cache_json(const struct xfp_conversion *c)
{
	json_t *stages = json_array();
	struct xfp_plan_hits hits[XFP_STAMPS];
	unsigned count = xfp_plan_count_hits(c, hits);

	for (unsigned s = 0; stages && s < count; s++)
		if (json_array_append_new(stages,
					  json_pack("{s:s, s:I, s:I}", "stage", xfp_steps[hits[s].stamp].said, "needed",
						    (json_int_t)hits[s].needed, "there", (json_int_t)hits[s].there))) {
			json_decref(stages);
			stages = NULL;
		}
	return json_pack("{s:o, s:b, s:I, s:I, s:o?}", "folder", xfp_json_text(c->options.cache), "exists",
			 c->manifest != NULL, "known", (json_int_t)xfp_plan_known_units(c), "done",
			 (json_int_t)(c->ledger->unit_count - c->todo), "stages", stages);
}

enum xfp_status xfp_plan_print_json(const struct xfp_plan_facts *facts, struct xfp_error *err)
{
	const struct xfp_conversion *c = facts->c;
	struct xfp_plan_groups groups = { 0 };
	json_t *root = NULL;

	if (xfp_plan_group_units(c, &groups))
		root = json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:b}",
				 "model", xfp_json_text(c->options.model), "family", c->ledger->family, "format",
				 c->ledger->format, "weights", (json_int_t)c->weights, "units",
				 (json_int_t)c->ledger->unit_count, "measured", (json_int_t)facts->measured, "estimate",
				 (int)(facts->measured < groups.all.units - groups.all.fp8), "groups",
				 groups_json(&groups), "tensors", tensors_json(c->ledger), "bundle",
				 bounds_json(facts->bundle), "memory", memory_json(facts), "disk", disk_json(facts),
				 "jobs", (int)facts->jobs, "time", time_json(facts), "cache", cache_json(c), "current",
				 (int)facts->current);
	free(groups.list);
	return xfp_json_print(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9), err);
}
