/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "base/text/text.h"
#include "schemas/json_print.h"
#include "schemas/layout/classes.h"

/* Sizes first, then quality: 80 columns break there. */
enum { CLASS, UNITS, WEIGHTS, MODE, GROUP, BITS, STORED, SIZE, OUTLIERS, FLOOR, MEDIAN, P5, WORST, COLUMNS };

static const struct xfp_table_column layout[COLUMNS + 1] = {
	[CLASS] = { "class", 1, 0, 0 },        [UNITS] = { "units", 0, 1, 0 },
	[WEIGHTS] = { "weights", 0, 1, 0 },    [MODE] = { "mode", 1, 1, 0 },
	[GROUP] = { "group", 0, 1, 0 },        [BITS] = { "bits", 0, 1, 0 },
	[STORED] = { "bits/weight", 0, 2, 0 }, [SIZE] = { "size", 0, 1, 0 },
	[OUTLIERS] = { "outliers", 0, 1, 0 },  [FLOOR] = { "floor", 1, 2, 1 },
	[MEDIAN] = { "cos median", 0, 2, 0 },  [P5] = { "cos p5", 0, 2, 0 },
	[WORST] = { "worst unit", 0, 2, 0 },
};

enum { U_MODE, U_GROUP, U_BITS, U_STORED, U_SIZE, U_OUTLIERS, U_FLOOR, U_MET, U_MEDIAN, U_P5, U_COLUMNS };

static const struct xfp_table_column unit_layout[U_COLUMNS + 1] = {
	[U_MODE] = { "mode", 1, 0, 0 },     [U_GROUP] = { "group", 0, 1, 0 },
	[U_BITS] = { "bits", 0, 1, 0 },     [U_STORED] = { "bits/weight", 0, 1, 0 },
	[U_SIZE] = { "size", 0, 1, 0 },     [U_OUTLIERS] = { "outliers", 0, 1, 0 },
	[U_FLOOR] = { "floor", 1, 1, 0 },   [U_MET] = { "met", 1, 1, 0 },
	[U_MEDIAN] = { "median", 0, 1, 0 }, [U_P5] = { "p5", 0, 1, 0 },
};

/* ---- how units are stored ---------------------------------------------------------------------- */

const char *xfp_format_ranges_mode(const struct xfp_format_ranges *ranges, char text[XFP_FORMAT_RANGES_TEXT])
{
	static const enum xfp_mode order[] = { XFP_MODE_V2, XFP_MODE_V2A, XFP_MODE_V2C, XFP_MODE_FP8, XFP_MODE_KEEP };
	size_t length = 0;

	*text = 0;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (ranges->modes >> order[i] & 1)
			length += (size_t)snprintf(text + length, XFP_FORMAT_RANGES_TEXT - length, "%s%s",
						   length ? "+" : "",
						   order[i] == XFP_MODE_KEEP ? "src" : xfp_mode_name(order[i]));
	return text;
}

static const char *range_text(uint32_t min, uint32_t max, char text[XFP_FORMAT_RANGES_TEXT])
{
	if (!max)
		return strcpy(text, "-");
	if (min < max)
		snprintf(text, XFP_FORMAT_RANGES_TEXT, "%" PRIu32 "-%" PRIu32, min, max);
	else
		snprintf(text, XFP_FORMAT_RANGES_TEXT, "%" PRIu32, max);
	return text;
}

const char *xfp_format_ranges_group(const struct xfp_format_ranges *ranges, char text[XFP_FORMAT_RANGES_TEXT])
{
	return range_text(ranges->min_group, ranges->max_group, text);
}

const char *xfp_format_ranges_bits(const struct xfp_format_ranges *ranges, char text[XFP_FORMAT_RANGES_TEXT])
{
	return range_text(ranges->min_k, ranges->max_k, text);
}

/* ---- sums -------------------------------------------------------------------------------------- */

/* One line of the table. */
struct group {
	uint32_t units, missed, calibrated;
	uint64_t weights, bytes, outliers;
	double min_floor, max_floor; /* over units with a floor; 0 if none */
	struct xfp_format_ranges ranges;
	uint32_t kept;       /* units at source precision */
	double *median, *p5; /* of each unit */
};

double xfp_unit_stored_bits(const struct xfp_unit_info *unit)
{
	return unit->weights ? (double)unit->bytes * 8 / (double)unit->weights : 0;
}

/* `outputs` NULL: not calibrated. */
static void add_unit(struct group *group, const struct xfp_unit_info *unit, const struct xfp_output_measure *outputs)
{
	if (group->median) {
		group->median[group->units] = outputs ? outputs->median : unit->cos_median;
		group->p5[group->units] = outputs ? outputs->p5 : unit->cos_p5;
	}
	group->units++;
	group->calibrated += outputs != NULL;
	group->missed += !unit->met;
	group->weights += unit->weights;
	group->bytes += unit->bytes;
	group->outliers += unit->outliers;
	group->kept += unit->mode == XFP_MODE_KEEP;
	xfp_format_ranges_add(&group->ranges, (enum xfp_mode)unit->mode, unit->k, unit->group_size);
	if (unit->floor > 0) {
		if (!(group->min_floor > 0) || unit->floor < group->min_floor)
			group->min_floor = unit->floor;
		if (unit->floor > group->max_floor)
			group->max_floor = unit->floor;
	}
}

/* "0.98", "0.98-0.99", "-" */
static const char *floor_of(const struct group *group, char text[32])
{
	if (!(group->min_floor > 0))
		return strcpy(text, "-");
	snprintf(text, 32, group->min_floor < group->max_floor ? "%.9g-%.9g" : "%.9g", group->min_floor,
		 group->max_floor);
	return text;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sort; returns the lower median. */
static double middle(double *value, uint32_t count)
{
	qsort(value, count, sizeof *value, ascending);
	return value[(count - 1) / 2];
}

static void add_group(struct xfp_table *table, const char *name, struct group *group)
{
	char(*row)[XFP_TABLE_CELL] = xfp_table_row(table, name);
	double weights = (double)group->weights;

	snprintf(row[UNITS], sizeof row[UNITS], "%" PRIu32, group->units);
	xfp_human(weights, "", row[WEIGHTS]);
	xfp_format_ranges_mode(&group->ranges, row[MODE]);
	xfp_format_ranges_group(&group->ranges, row[GROUP]);
	xfp_format_ranges_bits(&group->ranges, row[BITS]);
	floor_of(group, row[FLOOR]);
	if (group->median) {
		snprintf(row[MEDIAN], sizeof row[MEDIAN], "%.6f", middle(group->median, group->units));
		snprintf(row[P5], sizeof row[P5], "%.6f", middle(group->p5, group->units));
		snprintf(row[WORST], sizeof row[WORST], "%.6f", group->median[0]);
	}
	snprintf(row[STORED], sizeof row[STORED], "%.3f", weights > 0 ? (double)group->bytes * 8 / weights : 0);
	xfp_human((double)group->bytes, "B", row[SIZE]);
	snprintf(row[OUTLIERS], sizeof row[OUTLIERS], "%.3f%%",
		 weights > 0 ? 100 * (double)group->outliers / weights : 0);
}

static void add_rest(struct xfp_table *table, const struct xfp_bundle *bundle, const struct xfp_bundle_info *info)
{
	uint64_t kept = 0, kept_bytes = 0, file_bytes = 0;
	uint32_t tensors = 0;
	char(*row)[XFP_TABLE_CELL];

	for (uint32_t t = 0; t < info->tensors; t++) {
		struct xfp_tensor_info tensor;

		if (xfp_bundle_tensor(bundle, t, &tensor) && tensor.data) {
			tensors++;
			kept += tensor.elements;
			kept_bytes += tensor.bytes;
		}
	}
	for (uint32_t f = 0; f < info->files; f++) {
		struct xfp_file_info file;

		if (xfp_bundle_file(bundle, f, &file))
			file_bytes += file.bytes;
	}
	row = xfp_table_row(table, "kept tensors");
	snprintf(row[UNITS], sizeof row[UNITS], "%" PRIu32, tensors);
	xfp_human((double)kept, "", row[WEIGHTS]);
	xfp_human((double)kept_bytes, "B", row[SIZE]);
	row = xfp_table_row(table, "files");
	snprintf(row[UNITS], sizeof row[UNITS], "%" PRIu32, info->files);
	xfp_human((double)file_bytes, "B", row[SIZE]);
	row = xfp_table_row(table, "bundle");
	xfp_human((double)info->file_bytes, "B", row[SIZE]);
}

/* Sum up the units of a class. Without memory, cosines are missing. */
static struct group group_of(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded, uint32_t units,
			     unsigned class_)
{
	struct group group = { .median = malloc((units + (size_t)1) * sizeof(double)),
			       .p5 = malloc((units + (size_t)1) * sizeof(double)) };
	struct xfp_unit_info unit;

	if (!group.median || !group.p5) {
		free(group.median);
		free(group.p5);
		group.median = group.p5 = NULL;
	}
	for (uint32_t u = 0; u < units; u++)
		if (xfp_bundle_unit(bundle, u, &unit) && unit.class_ == class_)
			add_unit(&group, &unit, xfp_recorded_outputs(recorded, u));
	return group;
}

static void group_free(struct group *group)
{
	free(group->median);
	free(group->p5);
}

/* Print what the floors apply to, if some units are calibrated. */
static void print_quantity(FILE *out, const struct group *all)
{
	if (all->calibrated)
		fprintf(out, "floors and cosines are those of outputs for %" PRIu32 " of %" PRIu32 " units%s\n",
			all->calibrated, all->units,
			all->calibrated < all->units ? "; the others have no calibration" : "");
}

void xfp_report_table(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded)
{
	struct xfp_table table = { .column = layout };
	uint32_t missed[XFP_CLASSES] = { 0 };
	struct group all = { 0 };
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;
	const char *before = "";

	xfp_bundle_describe(bundle, &info);
	for (unsigned class_ = 0; class_ < XFP_CLASSES; class_++) {
		struct group group = group_of(bundle, recorded, info.units, class_);

		if (group.units)
			add_group(&table, xfp_class_name((enum xfp_class)class_), &group);
		missed[class_] = group.missed;
		group_free(&group);
	}
	for (uint32_t u = 0; u < info.units; u++)
		if (xfp_bundle_unit(bundle, u, &unit))
			add_unit(&all, &unit, xfp_recorded_outputs(recorded, u));
	add_group(&table, "all units", &all);
	if (table.rows)
		*table.row[table.rows - 1].cell[FLOOR] = 0; /* floors are per class */
	add_rest(&table, bundle, &info);
	xfp_table_print(out, &table);
	print_quantity(out, &all);
	for (unsigned class_ = 0; class_ < XFP_CLASSES; class_++) {
		if (missed[class_]) {
			fprintf(out, "%s%" PRIu32 " %s", *before ? before : "below the floor: ", missed[class_],
				xfp_class_name((enum xfp_class)class_));
			before = ", ";
		}
	}
	if (*before)
		putc('\n', out);
}

/* NULL if out of memory. */
static json_t *group_json(struct group *group, enum xfp_class class_)
{
	double median;

	if (!group->median)
		return NULL;
	median = middle(group->median, group->units); /* sorts them */
	return XFP_JSON(
		{ "class", xfp_json_text(xfp_class_name(class_)) }, { "units", json_integer(group->units) },
		{ "weights", xfp_json_count(group->weights) }, { "bytes", xfp_json_count(group->bytes) },
		{ "true_bits", json_real(group->weights ? (double)group->bytes * 8 / (double)group->weights : 0) },
		{ "outliers", xfp_json_count(group->outliers) }, { "cos_median", json_real(median) },
		{ "cos_median_least", json_real(group->median[0]) }, { "source_precision", json_integer(group->kept) },
		{ "below_floor", json_integer(group->missed) });
}

json_t *xfp_report_classes(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded)
{
	json_t *list = json_array(), *one;
	struct xfp_bundle_info info;

	xfp_bundle_describe(bundle, &info);
	for (unsigned class_ = 0; class_ < XFP_CLASSES; class_++) {
		struct group group = group_of(bundle, recorded, info.units, class_);

		if (group.units) {
			one = group_json(&group, (enum xfp_class)class_);
			if (recorded && recorded->outputs)
				xfp_json_put(&one, "calibrated", xfp_json_count(group.calibrated));
			xfp_json_add(&list, one);
		}
		group_free(&group);
	}
	return list;
}

/* ---- misses ------------------------------------------------------------------------------------ */

void xfp_report_misses(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded, uint32_t max)
{
	struct xfp_unit_info unit;
	uint32_t count = 0;
	char text[600];

	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
		const struct xfp_output_measure *outputs = xfp_recorded_outputs(recorded, u);
		const char *why = xfp_unit_missed(recorded, &unit);

		if (!why || count++ >= max)
			continue;
		snprintf(text, sizeof text, "%s (%s)", xfp_printable(unit.name).text, xfp_printable(unit.role).text);
		xfp_fold(out, text, 2);
		fprintf(out, "    %s", why);
		if (!unit.met)
			fprintf(out, " (%s%.6f of %.9g)", outputs ? "outputs " : "",
				outputs ? outputs->median : unit.cos_median, unit.floor);
		putc('\n', out);
	}
	if (count > max)
		fprintf(out, "  and %" PRIu32 " more: xfp info --units\n", count - max);
}

/* ---- units ------------------------------------------------------------------------------------- */

static void print_by(FILE *out, const char *what, char *by)
{
	if (by)
		fprintf(out, "; %s by %s", what, xfp_printable(by).text);
	free(by);
}

/* Print the option that decided this unit's format, unless it applies to all units. */
static void print_reason(FILE *out, const struct xfp_recorded *recorded, const struct xfp_unit_info *unit)
{
	struct xfp_policy policy = xfp_recorded_policy(recorded, unit);
	uint32_t sample = xfp_recorded_sample(recorded, unit);

	print_by(out, policy.fixed ? "bits fixed" : "format", xfp_policy_format_by(&recorded->parameters, &policy));
	print_by(out, "floor", xfp_policy_floor_by(&recorded->parameters, &policy));
	if (sample)
		fprintf(out, "; %" PRIu32 " of %" PRIu32 " experts decided", sample, unit->experts);
}

json_t *xfp_report_outputs(const struct xfp_recorded *recorded, uint32_t u)
{
	const struct xfp_output_measure *o = xfp_recorded_outputs(recorded, u);

	if (!o)
		return json_null();
	return XFP_JSON({ "cos_median", json_real(o->median) }, { "cos_p5", json_real(o->p5) },
			{ "error", json_real(o->error) });
}

/* Print how the outputs of unit u differ, if it was calibrated; the floor applies to them. */
static void print_outputs(FILE *out, const struct xfp_recorded *recorded, uint32_t u, double floor)
{
	const struct xfp_output_measure *o = xfp_recorded_outputs(recorded, u);

	if (o)
		fprintf(out, "; %soutputs: cos median %.6f, p5 %.6f, error %.6f", floor > 0 ? "floor of " : "",
			o->median, o->p5, o->error);
}

/* Allocated; NULL if out of memory. */
static char *unit_text(const struct xfp_recorded *recorded, uint32_t u, const struct xfp_unit_info *unit)
{
	const char *missed = xfp_unit_missed(recorded, unit);
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (out) {
		fprintf(out, "%s (%s, ", xfp_printable(unit->name).text, xfp_printable(unit->role).text);
		if (unit->experts > 1)
			fprintf(out, "%" PRIu32 " x ", unit->experts);
		fprintf(out, "%" PRIu64 " x %" PRIu64 ")", unit->rows, unit->cols);
		if (unit->library_size)
			fprintf(out, "; library of %" PRIu32, unit->library_size);
		if (recorded) {
			print_reason(out, recorded, unit);
			print_outputs(out, recorded, u, unit->floor);
		}
		if (missed)
			fprintf(out, "; %s", missed);
	}
	return xfp_text_end(&text) ? text.bytes : NULL;
}

void xfp_report_units(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded)
{
	struct xfp_table table = { .column = unit_layout, .text = "unit" };
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;

	xfp_bundle_describe(bundle, &info);
	for (uint32_t u = 0; u < info.units; u++) {
		struct group group = { 0 };
		char(*row)[XFP_TABLE_CELL];
		char *text;

		if (!xfp_bundle_unit(bundle, u, &unit))
			continue;
		add_unit(&group, &unit, NULL);
		row = xfp_table_row(&table, "");
		xfp_format_ranges_mode(&group.ranges, row[U_MODE]);
		xfp_format_ranges_group(&group.ranges, row[U_GROUP]);
		xfp_format_ranges_bits(&group.ranges, row[U_BITS]);
		snprintf(row[U_STORED], sizeof row[0], "%.3f", xfp_unit_stored_bits(&unit));
		xfp_human((double)unit.bytes, "B", row[U_SIZE]);
		snprintf(row[U_OUTLIERS], sizeof row[0], "%.3f%%",
			 unit.weights ? 100 * (double)unit.outliers / (double)unit.weights : 0);
		floor_of(&group, row[U_FLOOR]);
		snprintf(row[U_MET], sizeof row[0], "%s", unit.floor > 0 ? unit.met ? "yes" : "no" : "-");
		snprintf(row[U_MEDIAN], sizeof row[0], "%.6f", unit.cos_median);
		snprintf(row[U_P5], sizeof row[0], "%.6f", unit.cos_p5);
		if ((text = unit_text(recorded, u, &unit)))
			xfp_table_text(&table, "%s", text);
		free(text);
	}
	xfp_table_print(out, &table);
}
