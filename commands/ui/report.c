/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "commands/ui/table.h"
#include "schemas/json_print.h"
#include "schemas/layout/classes.h"

enum { CLASS, UNITS, WEIGHTS, BITS, FLOOR, MEDIAN, P5, WORST, STORED, SIZE, OUTLIERS, COLUMNS };

static const struct xfp_table_column layout[COLUMNS + 1] = {
	[CLASS] = { "class", 1, 0 }, [UNITS] = { "units", 0, 1 },       [WEIGHTS] = { "weights", 0, 1 },
	[BITS] = { "bits", 1, 2 },   [FLOOR] = { "floor", 1, 1 },       [MEDIAN] = { "cos median", 0, 2 },
	[P5] = { "cos p5", 0, 2 },   [WORST] = { "worst unit", 0, 2 },  [STORED] = { "bits/weight", 0, 2 },
	[SIZE] = { "size", 0, 1 },   [OUTLIERS] = { "outliers", 0, 1 },
};

/* What a line of the table sums up. */
struct group {
	uint32_t units, missed;
	uint64_t weights, bytes, outliers;
	unsigned least_k, most_k;       /* of units with codebooks; 0: none */
	double least_floor, most_floor; /* of units with a floor; 0: none */
	uint32_t fp8, kept;             /* units stored so */
	double *median, *p5;            /* of each unit */
};

double xfp_true_bits(const struct xfp_unit_info *unit)
{
	return unit->weights ? (double)unit->bytes * 8 / (double)unit->weights : 0;
}

static void add_unit(struct group *group, const struct xfp_unit_info *unit)
{
	if (group->median) {
		group->median[group->units] = unit->cos_median;
		group->p5[group->units] = unit->cos_p5;
	}
	group->units++;
	group->missed += !unit->met;
	group->weights += unit->weights;
	group->bytes += unit->bytes;
	group->outliers += unit->outliers;
	group->fp8 += unit->mode == XFP_MODE_FP8;
	group->kept += unit->mode == XFP_MODE_KEEP;
	if (unit->floor > 0) {
		if (!(group->least_floor > 0) || unit->floor < group->least_floor)
			group->least_floor = unit->floor;
		if (unit->floor > group->most_floor)
			group->most_floor = unit->floor;
	}
	if (unit->k) {
		if (!group->least_k || unit->k < group->least_k)
			group->least_k = unit->k;
		if (unit->k > group->most_k)
			group->most_k = unit->k;
	}
}

const char *xfp_bits_text(unsigned least, unsigned most, bool fp8, bool kept, char text[32])
{
	int length = 0;

	*text = 0;
	if (least)
		length = snprintf(text, 32, least < most ? "%u-%u" : "%u", least, most);
	if (fp8)
		length += snprintf(text + length, 32 - (size_t)length, "%sfp8", length ? "+" : "");
	if (kept)
		snprintf(text + length, 32 - (size_t)length, "%ssrc", length ? "+" : "");
	return text;
}

static const char *bits_of(const struct group *group, char text[32])
{
	return xfp_bits_text(group->least_k, group->most_k, group->fp8, group->kept, text);
}

/* "0.98", "0.98-0.99", "-" */
static const char *floor_of(const struct group *group, char text[32])
{
	if (!(group->least_floor > 0))
		return strcpy(text, "-");
	snprintf(text, 32, group->least_floor < group->most_floor ? "%.9g-%.9g" : "%.9g", group->least_floor,
		 group->most_floor);
	return text;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts; the lower of the two middle values. */
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
	bits_of(group, row[BITS]);
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

/* The units of a class. Without memory for them the cosines are lacking. */
static struct group group_of(const struct xfp_bundle *bundle, uint32_t units, unsigned class_)
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
			add_unit(&group, &unit);
	return group;
}

static void group_free(struct group *group)
{
	free(group->median);
	free(group->p5);
}

void xfp_report_table(FILE *out, const struct xfp_bundle *bundle)
{
	struct xfp_table table = { .column = layout };
	uint32_t missed[XFP_CLASSES] = { 0 };
	struct group all = { 0 };
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;
	const char *before = "";

	xfp_bundle_info(bundle, &info);
	for (unsigned class_ = 0; class_ < XFP_CLASSES; class_++) {
		struct group group = group_of(bundle, info.units, class_);

		if (group.units)
			add_group(&table, xfp_class_name((enum xfp_class)class_), &group);
		missed[class_] = group.missed;
		group_free(&group);
	}
	for (uint32_t u = 0; u < info.units; u++)
		if (xfp_bundle_unit(bundle, u, &unit))
			add_unit(&all, &unit);
	add_group(&table, "all units", &all);
	if (table.rows)
		*table.cell[table.rows - 1][FLOOR] = 0; /* they are the classes' */
	add_rest(&table, bundle, &info);
	xfp_table_print(out, &table);
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

/* NULL: no memory. */
static json_t *group_json(struct group *group, enum xfp_class class_)
{
	double median;

	if (!group->median)
		return NULL;
	median = middle(group->median, group->units); /* which sorts them */
	return XFP_JSON(
		{ "class", xfp_json_text(xfp_class_name(class_)) }, { "units", json_integer(group->units) },
		{ "weights", json_integer((json_int_t)group->weights) },
		{ "bytes", json_integer((json_int_t)group->bytes) },
		{ "true_bits", json_real(group->weights ? (double)group->bytes * 8 / (double)group->weights : 0) },
		{ "outliers", json_integer((json_int_t)group->outliers) }, { "cos_median", json_real(median) },
		{ "cos_median_least", json_real(group->median[0]) }, { "source_precision", json_integer(group->kept) },
		{ "below_floor", json_integer(group->missed) });
}

json_t *xfp_report_classes(const struct xfp_bundle *bundle)
{
	json_t *list = json_array();
	struct xfp_bundle_info info;

	xfp_bundle_info(bundle, &info);
	for (unsigned class_ = 0; class_ < XFP_CLASSES; class_++) {
		struct group group = group_of(bundle, info.units, class_);

		if (group.units)
			xfp_json_add(&list, group_json(&group, (enum xfp_class)class_));
		group_free(&group);
	}
	return list;
}

static void print_reason(FILE *out, const char *what, char *by)
{
	if (by)
		fprintf(out, "; %s by %s", what, xfp_printable(by).text);
	free(by);
}

/* What an option said of this unit and not of all. */
static void print_reasons(FILE *out, const struct xfp_recorded *recorded, const struct xfp_unit_info *unit)
{
	struct xfp_policy policy = xfp_recorded_policy(recorded, unit);
	uint32_t sample = xfp_recorded_sample(recorded, unit);

	print_reason(out, policy.fixed ? "bits fixed" : "format", xfp_policy_format_by(&recorded->parameters, &policy));
	print_reason(out, "floor", xfp_policy_floor_by(&recorded->parameters, &policy));
	if (sample)
		fprintf(out, "; %" PRIu32 " of %" PRIu32 " experts decided", sample, unit->experts);
}

void xfp_report_units(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded)
{
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;
	char bytes[32], bits[32], floor[32];

	xfp_bundle_info(bundle, &info);
	fprintf(out, "%-5s%-7s%4s  %10s%10s%12s%9s%9s  %s\n", "bits", "floor", "met", "cos median", "cos p5",
		"bits/weight", "size", "outliers", "unit");
	for (uint32_t u = 0; u < info.units; u++) {
		struct group group = { 0 };

		if (!xfp_bundle_unit(bundle, u, &unit))
			continue;
		add_unit(&group, &unit);
		fprintf(out, "%-5s%-7s%4s  %10.6f%10.6f%12.3f%9s%8.3f%%  %s (%s, ", bits_of(&group, bits),
			floor_of(&group, floor), unit.floor > 0 ? unit.met ? "yes" : "no" : "-", unit.cos_median,
			unit.cos_p5, xfp_true_bits(&unit), xfp_human((double)unit.bytes, "B", bytes),
			unit.weights ? 100 * (double)unit.outliers / (double)unit.weights : 0,
			xfp_printable(unit.name).text, xfp_printable(unit.role).text);
		if (unit.experts > 1)
			fprintf(out, "%" PRIu32 " x ", unit.experts);
		fprintf(out, "%" PRIu64 " x %" PRIu64 ")", unit.rows, unit.cols);
		if (unit.group_size)
			fprintf(out, "; %s, groups of %" PRIu32 ", library of %" PRIu32, unit.mode_name,
				unit.group_size, unit.library_size);
		if (recorded)
			print_reasons(out, recorded, &unit);
		putc('\n', out);
	}
}
