/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - prints a plan as text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "commands/convert/goal_print.h"
#include "commands/plan/print.h"
#include "commands/ui/composition_print.h"
#include "commands/ui/pace.h"
#include "commands/ui/report.h"
#include "conversion/disk_space.h"

#define LABELS 9 /* columns of "bundle   " and the like */

enum { CLASS, ROLE, UNITS, WEIGHTS, FLOOR, MODE, GROUP, BITS, STORED, SIZE, SOURCE, MEASURED, COLUMNS };

static const struct xfp_table_column layout[COLUMNS + 1] = {
	[CLASS] = { "class", 1, 0, 0 },     [ROLE] = { "role", 1, 1, 0 },     [UNITS] = { "units", 0, 1, 0 },
	[WEIGHTS] = { "weights", 0, 1, 0 }, [FLOOR] = { "floor", 1, 2, 0 },   [MODE] = { "mode", 1, 1, 0 },
	[GROUP] = { "group", 0, 1, 0 },     [BITS] = { "bits", 0, 1, 0 },     [STORED] = { "bits/weight", 0, 2, 1 },
	[SIZE] = { "size", 0, 1, 0 },       [SOURCE] = { "source", 0, 1, 0 }, [MEASURED] = { "measured", 0, 1, 0 },
};

static void add_row(struct xfp_table *table, const struct xfp_plan_group *group)
{
	char(*row)[XFP_TABLE_CELL] = xfp_table_row(table, group->role ? xfp_class_name(group->class_) : "all units");
	char min[24], max[24];

	if (group->role)
		snprintf(row[ROLE], sizeof row[ROLE], "%.*s", XFP_TABLE_CELL - 1, xfp_printable(group->role).text);
	snprintf(row[UNITS], sizeof row[UNITS], "%" PRIu32, group->units);
	xfp_human((double)group->weights, "", row[WEIGHTS]);
	xfp_human((double)group->source, "B", row[SOURCE]);
	if (group->role && group->has_floor)
		snprintf(row[FLOOR], sizeof row[FLOOR], group->min_floor < group->max_floor ? "%s-%s" : "%s",
			 xfp_decimal_format(group->min_floor, XFP_NANO, min),
			 xfp_decimal_format(group->max_floor, XFP_NANO, max));
	else if (group->role)
		strcpy(row[FLOOR], "-");
	xfp_format_ranges_mode(&group->ranges, row[MODE]);
	xfp_format_ranges_group(&group->ranges, row[GROUP]);
	xfp_format_ranges_bits(&group->ranges, row[BITS]);
	snprintf(row[STORED], sizeof row[STORED], "%.3f", xfp_plan_bits(group, XFP_EXPECTED));
	xfp_human((double)group->bytes[XFP_EXPECTED], "B", row[SIZE]);
	snprintf(row[MEASURED], sizeof row[MEASURED], "%" PRIu32, group->measured);
}

static void add_tensors(struct xfp_table *table, const struct xfp_plan_fates *fates, enum xfp_fate fate,
			const char *name, bool stored)
{
	char(*row)[XFP_TABLE_CELL];

	if (!fates->tensors[fate])
		return;
	row = xfp_table_row(table, name);
	snprintf(row[UNITS], sizeof row[UNITS], "%" PRIu32, fates->tensors[fate]);
	xfp_human((double)fates->bytes[fate], "B", row[SOURCE]);
	xfp_human(stored ? (double)fates->bytes[fate] : 0, "B", row[SIZE]);
}

static void print_table(const struct xfp_plan_facts *facts, const struct xfp_plan_groups *groups)
{
	struct xfp_table table = { .column = layout, .keys = 2 };
	struct xfp_plan_fates fates = xfp_plan_count_fates(facts->c->units.ledger);

	for (unsigned i = 0; i < groups->count; i++)
		add_row(&table, &groups->list[i]);
	add_row(&table, &groups->all);
	add_tensors(&table, &fates, XFP_FATE_KEPT, "kept tensors", true);
	add_tensors(&table, &fates, XFP_FATE_TIED, "tied tensors", false);
	add_tensors(&table, &fates, XFP_FATE_DROPPED, "dropped tensors", false);
	xfp_table_print(stdout, &table);
}

static void print_basis(const struct xfp_plan_facts *facts, const struct xfp_plan_groups *groups)
{
	uint32_t units = facts->c->units.ledger->unit_count, fit = 0, known,
		 surveyed = xfp_plan_surveyed_units(facts->c);
	const char *by = surveyed ? "surveys" : "measurements";

	if (!units) {
		puts("\nThere is nothing to quantize: all tensors are kept unchanged.");
		return;
	}
	for (uint32_t i = 0; i < units; i++)
		fit += facts->c->units.ledger->units[i].plan == XFP_PLAN_FIT;
	if (facts->measured && surveyed)
		by = "measurements and surveys";
	known = facts->measured + surveyed;
	if (known == fit)
		printf("\nBits follow from %s.\n", fit ? by : "measurements");
	else if (known)
		printf("\nBits of %" PRIu32 " units follow from %s;\nthose of %" PRIu32
		       " are an estimate, from typical cosines.\n",
		       known, by, fit - known);
	else
		puts("\nBits are an estimate, from typical cosines.");
	if (groups->all.fixed_missed)
		printf("%" PRIu32 " units are expected to be below their floor: their bits are fixed.\n",
		       groups->all.fixed_missed);
	if (groups->all.missed > groups->all.fixed_missed)
		printf("%" PRIu32 " units are expected to miss their floor: %s.\n",
		       groups->all.missed - groups->all.fixed_missed,
		       facts->c->parameters.on_miss == XFP_MISS_KEEP   ? "they stay at source precision"
		       : facts->c->parameters.on_miss == XFP_MISS_BEST ? "they take the best candidate"
								       : "the conversion would fail");
}

static void print_disk(const struct xfp_plan_facts *facts)
{
	const struct xfp_disk *disk = &facts->disk;
	uint64_t out_free = xfp_free_bytes_at(facts->c->request->out);
	uint64_t cache_free = xfp_free_bytes_at(facts->c->request->cache);
	char a[32], b[32], d[32], e[32], text[400];
	int length;

	length = snprintf(text, sizeof text, "%s%s: bundle %s, cache %s, work folder %s; ",
			  xfp_human((double)xfp_disk_total(disk), "B", a),
			  facts->c->drop.units && !facts->current ? " at a time" : "",
			  xfp_human((double)disk->bundle, "B", b), xfp_human((double)disk->artifacts, "B", d),
			  xfp_human((double)disk->work, "B", e));
	if (out_free == cache_free)
		snprintf(text + length, sizeof text - (size_t)length, "%s free", xfp_human((double)out_free, "B", a));
	else
		snprintf(text + length, sizeof text - (size_t)length, "%s free for the bundle, %s for the cache",
			 xfp_human((double)out_free, "B", a), xfp_human((double)cache_free, "B", b));
	fputs("disk     ", stdout);
	xfp_fold_in(stdout, text, LABELS);
	if (facts->shortage.status) {
		puts(facts->c->request->force ? "         too little, but convert would start (--force):"
					      : "         too little; convert would not start:");
		xfp_fold(stdout, facts->shortage.text, LABELS);
	}
	if (facts->c->request->drop_cache && !facts->c->drop.units)
		puts(facts->c->request->goal.kind
			     ? "         --drop-cache waits for the bundle, since the goal needs the cache"
			     : "         --drop-cache removes nothing: the cache is read-only");
	else if (facts->staying)
		printf("         --drop-cache leaves %" PRIu32 " packed units that other outputs need\n",
		       facts->staying);
}

static void print_layers(const struct xfp_conversion *c)
{
	char a[32], took[32], text[200];

	if (!c->layers.count)
		return;
	snprintf(text, sizeof text,
		 "%" PRIu32 " of %" PRIu32 " layers to compute for %" PRIu64
		 " tokens, %s of inputs%s; about %s of one processor",
		 xfp_plan_missing_layers(c), c->layers.count, c->parameters.calibration.tokens,
		 xfp_human((double)c->layers.bytes, "B", a), c->layers.stay ? "" : " at a time",
		 xfp_duration_text(xfp_plan_pace_layers(c), took));
	printf("%-*s", LABELS, "layers");
	xfp_fold_in(stdout, text, LABELS);
}

static void print_needs(const struct xfp_plan_facts *facts)
{
	const struct xfp_conversion *c = facts->c;
	const bool known = facts->memory.largest < c->units.ledger->unit_count;
	char a[32], b[32], d[32], text[400];

	printf("bundle   %s", xfp_human((double)facts->bundle[XFP_EXPECTED], "B", a));
	if (facts->bundle[XFP_MINIMUM] < facts->bundle[XFP_MAXIMUM])
		printf(", from %s to %s", xfp_human((double)facts->bundle[XFP_MINIMUM], "B", b),
		       xfp_human((double)facts->bundle[XFP_MAXIMUM], "B", d));
	putchar('\n');
	snprintf(text, sizeof text, "memory   %s with %u job%s%s%s%s", xfp_human((double)facts->memory.peak, "B", a),
		 facts->jobs, facts->jobs == 1 ? "" : "s", c->request->launcher ? " of one step on a node" : "",
		 known ? "; the largest unit is " : "",
		 known ? xfp_printable(c->units.ledger->units[facts->memory.largest].name).text : "");
	xfp_fold(stdout, text, 0);
	print_disk(facts);
	print_layers(c);
}

static void print_time(const struct xfp_plan_facts *facts)
{
	const double *weight = facts->pace.kind[0].weight;
	unsigned processors = facts->processors;
	char text[32];

	if (facts->c->units.todo && !facts->current && !facts->pace.known) {
		puts("time     unknown: the stages could not be run for measuring");
		return;
	}
	printf("time     about %s", xfp_duration_text(xfp_plan_seconds(facts), text));
	if (facts->c->units.todo && !facts->current)
		printf(" on %u processor%s%s;\n         measured now: %.0f ns per weight, %.0f ms per unit",
		       facts->jobs < processors ? facts->jobs : processors,
		       (facts->jobs < processors ? facts->jobs : processors) == 1 ? "" : "s",
		       facts->c->request->launcher ? " of one node" : "",
		       1e9 * (facts->pace.scan + weight[XFP_STAMP_OUTLIERS] + weight[XFP_STAMP_FIT] +
			      weight[XFP_STAMP_LIBRARY] + weight[XFP_STAMP_EXTENDED] +
			      weight[XFP_STAMP_EXTENDED_LIBRARY] + weight[XFP_STAMP_PACKED]),
		       1e3 * facts->pace.unit);
	putchar('\n');
}

static void print_cache(const struct xfp_plan_facts *facts)
{
	const struct xfp_conversion *c = facts->c;
	uint32_t known = xfp_plan_known_units(c);
	struct xfp_plan_hits hits[XFP_STAMPS];
	unsigned count = xfp_plan_count_hits(c, hits);
	char text[80 * XFP_STAMPS];
	int length;

	if (!c->place.manifest)
		xfp_screen_printf(stdout, "cache    %s: there is none%s\n", c->request->cache,
				  facts->current ? ", and the bundle needs none" : " yet");
	else if (!known)
		xfp_screen_printf(stdout, "cache    %s: knows none of these files\n", c->request->cache);
	else {
		/* Print the path on its own line, since it may be long. */
		xfp_screen_printf(stdout, "cache    %s:\n", c->request->cache);
		length = snprintf(text, sizeof text, "knows %" PRIu32 " of %" PRIu32 " units", known,
				  c->units.ledger->unit_count);
		for (unsigned s = 0; s < count; s++)
			if (hits[s].needed)
				length += snprintf(text + length, sizeof text - (size_t)length,
						   "%s %s %" PRIu32 " of %" PRIu32, s ? "," : ";",
						   xfp_steps[hits[s].stamp].display_name, hits[s].present,
						   hits[s].needed);
		printf("%*s", LABELS, "");
		xfp_fold_in(stdout, text, LABELS);
	}
	if (facts->current)
		xfp_screen_printf(stdout, "%s is up to date\n", c->request->out);
}

enum xfp_status xfp_plan_print(const struct xfp_plan_facts *facts, const struct xfp_plan_cluster *cluster,
			       struct xfp_error *err)
{
	struct xfp_plan_groups groups = { 0 };
	enum xfp_status status;
	bool counted = xfp_plan_group_units(facts->c, &groups);
	struct xfp_composition composition = xfp_plan_composition(facts);
	char weights[32];

	puts(xfp_printable(facts->c->request->model).text);
	if (counted)
		xfp_composition_print(stdout, "bundle of ", &composition);
	printf("family %s, %s, %s weights in %" PRIu32 " units\n\n", xfp_printable(facts->c->units.ledger->family).text,
	       xfp_printable(facts->c->units.ledger->format).text,
	       xfp_human((double)facts->c->units.weights, "", weights), facts->c->units.ledger->unit_count);
	if (counted)
		print_table(facts, &groups);
	else
		puts("the table is missing: out of memory");
	print_basis(facts, &groups);
	print_needs(facts);
	xfp_goal_print(facts->c, LABELS);
	print_time(facts);
	print_cache(facts);
	free(groups.list);
	if (cluster->count && (status = xfp_plan_print_nodes(cluster, err)))
		return status;
	return xfp_plan_print_curve(facts, err);
}
