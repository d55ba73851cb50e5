/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "conversion.h"
#include "printable.h"

/* What a line of the table sums up. */
struct group {
	uint32_t units, missed;
	uint64_t weights, bytes, outliers;
	unsigned least_k, most_k; /* of units with codebooks; 0: none */
	bool fp8, kept;
	double *median, *p5; /* of each unit */
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
	group->fp8 = group->fp8 || unit->mode == XFP_MODE_FP8;
	group->kept = group->kept || unit->mode == XFP_MODE_KEEP;
	if (unit->k) {
		if (!group->least_k || unit->k < group->least_k)
			group->least_k = unit->k;
		if (unit->k > group->most_k)
			group->most_k = unit->k;
	}
}

/* "3", "2-4", "fp8", "2-4+src": source precision beside quantized units. */
static const char *bits_of(const struct group *group, char text[32])
{
	int length = 0;

	*text = 0;
	if (group->least_k)
		length = snprintf(text, 32, group->least_k < group->most_k ? "%u-%u" : "%u", group->least_k,
				  group->most_k);
	if (group->fp8)
		length += snprintf(text + length, 32 - (size_t)length, "%sfp8", length ? "+" : "");
	if (group->kept)
		snprintf(text + length, 32 - (size_t)length, "%ssrc", length ? "+" : "");
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

static void print_group(FILE *out, const char *name, struct group *group)
{
	char bits[32], weights[32], bytes[32];
	double median, p5;

	fprintf(out, "%-17s%7" PRIu32 "%10s  %-12s", name, group->units, xfp_human((double)group->weights, "", weights),
		bits_of(group, bits));
	if (group->median) {
		median = middle(group->median, group->units);
		p5 = middle(group->p5, group->units);
		fprintf(out, "  %8.6f  %8.6f  %8.6f", median, p5, group->median[0]);
	} else {
		fprintf(out, "  %8s  %8s  %8s", "", "", "");
	}
	fprintf(out, "%7.3f%12s", group->weights ? (double)group->bytes * 8 / (double)group->weights : 0,
		xfp_human((double)group->bytes, "B", bytes));
	fprintf(out, "%9.3f%%", group->weights ? 100 * (double)group->outliers / (double)group->weights : 0);
	if (group->missed)
		fprintf(out, "  %" PRIu32 " below the floor", group->missed);
	putc('\n', out);
}

static void print_rest(FILE *out, const struct xfp_bundle *bundle, const struct xfp_bundle_info *info)
{
	uint64_t kept = 0, kept_bytes = 0, file_bytes = 0;
	uint32_t tensors = 0;
	char size[32], weights[32];

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
	fprintf(out, "%-17s%7" PRIu32 "%10s%63s\n", "kept tensors", tensors, xfp_human((double)kept, "", weights),
		xfp_human((double)kept_bytes, "B", size));
	fprintf(out, "%-17s%7" PRIu32 "%73s\n", "files", info->files, xfp_human((double)file_bytes, "B", size));
	fprintf(out, "%-17s%80s\n", "bundle", xfp_human((double)info->file_bytes, "B", size));
}

void xfp_report_table(FILE *out, const struct xfp_bundle *bundle)
{
	struct group all = { 0 };
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;

	xfp_bundle_info(bundle, &info);
	fprintf(out, "%-17s%7s%10s  %-12s  %8s  %8s  %8s%7s%12s%10s\n", "class", "units", "weights", "bits", "median",
		"p5", "least", "true", "size", "outliers");
	for (unsigned class_ = 0; class_ < XFP_CLASSES; class_++) {
		/* Without memory for the cosines the line lacks them. */
		struct group group = { .median = malloc((info.units + (size_t)1) * sizeof(double)),
				       .p5 = malloc((info.units + (size_t)1) * sizeof(double)) };

		if (!group.median || !group.p5) {
			free(group.median);
			free(group.p5);
			group.median = group.p5 = NULL;
		}
		for (uint32_t u = 0; u < info.units; u++) {
			if (xfp_bundle_unit(bundle, u, &unit) && unit.class_ == class_) {
				add_unit(&group, &unit);
				add_unit(&all, &unit);
			}
		}
		if (group.units)
			print_group(out, xfp_class_name((enum xfp_class)class_), &group);
		free(group.median);
		free(group.p5);
	}
	print_group(out, "all units", &all);
	print_rest(out, bundle, &info);
}

void xfp_report_units(FILE *out, const struct xfp_bundle *bundle)
{
	struct xfp_bundle_info info;
	struct xfp_unit_info unit;
	char bytes[32], bits[32];

	xfp_bundle_info(bundle, &info);
	fprintf(out, "%-17s%-9s  %8s  %8s  %8s%7s%12s%10s  %s\n", "class", "bits", "median", "p5", "floor", "true",
		"size", "outliers", "unit");
	for (uint32_t u = 0; u < info.units; u++) {
		struct group group = { 0 };

		if (!xfp_bundle_unit(bundle, u, &unit))
			continue;
		add_unit(&group, &unit);
		fprintf(out,
			"%-17s%-9s  %8.6f  %8.6f  %8.6f%7.3f%12s%9.3f%%  %s (%s, %" PRIu32 " x %" PRIu64 " x %" PRIu64
			")%s\n",
			unit.class_name, bits_of(&group, bits), unit.cos_median, unit.cos_p5, unit.floor,
			xfp_true_bits(&unit), xfp_human((double)unit.bytes, "B", bytes),
			unit.weights ? 100 * (double)unit.outliers / (double)unit.weights : 0,
			xfp_printable(unit.name).text, xfp_printable(unit.role).text, unit.experts, unit.rows,
			unit.cols, unit.met ? "" : "  below the floor");
	}
}
