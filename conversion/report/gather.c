/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - the data of a report that the bundle's index contains: units, components, layers, classes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/report/report.h"

/* ---- sums -------------------------------------------------------------------------------------- */

double xfp_report_error(const struct xfp_report_sum *sum)
{
	return sum->weights ? sum->squared / (double)sum->weights : 0;
}

double xfp_report_weight_error(const struct xfp_report_sum *sum)
{
	return sum->weights ? sum->weight_squared / (double)sum->weights : 0;
}

const char *xfp_report_measured(const struct xfp_report_sum *sum, char text[XFP_REPORT_MEASURED])
{
	uint32_t others = sum->units - sum->calibrated;

	if (!sum->calibrated || !others)
		return sum->calibrated ? "outputs" : "weights";
	snprintf(text, XFP_REPORT_MEASURED, "outputs (weights for %u of %u units)", others, sum->units);
	return text;
}

const char *xfp_report_unit_measured(const struct xfp_report_unit *unit)
{
	return unit->calibrated ? "outputs" : "weights";
}

static void add(struct xfp_report_sum *sum, const struct xfp_report_unit *unit)
{
	const struct xfp_unit_info *info = &unit->info;

	if (!sum->units || unit->median < sum->worst) {
		sum->worst = unit->median;
		sum->worst_unit = unit->number;
	}
	sum->units++;
	sum->missed += !info->met;
	sum->weights += info->weights;
	sum->bytes += info->bytes;
	sum->outliers += info->outliers;
	sum->paper += unit->paper_bits * (double)info->weights;
	sum->squared += unit->error * (double)info->weights;
	sum->weight_squared += info->error * (double)info->weights;
	sum->floors += info->floor > 0;
	sum->calibrated += unit->calibrated;
	xfp_format_ranges_add(&sum->ranges, (enum xfp_mode)info->mode, info->k, info->group_size);
}

/* ---- units ------------------------------------------------------------------------------------- */

/* Find the first part of a name that is a number: its value, or XFP_REPORT_NO_LAYER, and its position and length. A
 * number of more than nine digits is no layer. */
static uint32_t layer_of(const char *name, size_t *begin, size_t *length)
{
	for (const char *part = name; *part; part += *part == '.') {
		size_t size = strcspn(part, ".");

		if (size && size < 10 && strspn(part, "0123456789") == size) {
			*begin = (size_t)(part - name);
			*length = size;
			return (uint32_t)strtoul(part, NULL, 10);
		}
		part += size;
	}
	*begin = *length = 0;
	return XFP_REPORT_NO_LAYER;
}

static void read_unit(struct xfp_report *report, uint32_t number)
{
	struct xfp_report_unit *unit = &report->units[number];
	const struct xfp_output_measure *outputs = xfp_recorded_outputs(report->recorded, number);
	size_t begin, length;

	unit->number = number;
	xfp_bundle_unit(report->bundle, number, &unit->info);
	unit->layer = layer_of(unit->info.name, &begin, &length);
	unit->bits = xfp_bits_per_weight(unit->info.bytes, unit->info.weights);
	unit->paper_bits = xfp_unit_paper_bits(report->bundle, &unit->info);
	unit->median = outputs ? outputs->median : unit->info.cos_median;
	unit->p5 = outputs ? outputs->p5 : unit->info.cos_p5;
	unit->error = outputs ? outputs->error : unit->info.error;
	unit->calibrated = outputs != NULL;
	unit->missed = xfp_unit_missed(report->recorded, &unit->info);
	add(&report->all, unit);
}

/* ---- components -------------------------------------------------------------------------------- */

const char *xfp_report_part_name(const struct xfp_report_part *part, char text[XFP_REPORT_PART_NAME])
{
	bool same = !strcmp(part->class_name, part->role);

	snprintf(text, XFP_REPORT_PART_NAME, "%s%s%s", part->class_name, same ? "" : " ", same ? "" : part->role);
	return text;
}

/* The unit's name with * for its layer; NULL: out of memory. */
static char *pattern_of(const struct xfp_report_unit *unit)
{
	size_t begin, length;
	char *pattern = strdup(unit->info.name);

	layer_of(unit->info.name, &begin, &length);
	if (pattern && length) {
		pattern[begin] = '*';
		memmove(pattern + begin + 1, pattern + begin + length, strlen(pattern + begin + length) + 1);
	}
	return pattern;
}

struct keyed_unit {
	char *pattern;
	const struct xfp_report_unit *unit;
};

static int by_pattern(const void *a, const void *b)
{
	const struct keyed_unit *x = a, *y = b;
	int order = (x->unit->info.class_ > y->unit->info.class_) - (x->unit->info.class_ < y->unit->info.class_);

	if (!order)
		order = strcmp(x->pattern, y->pattern);
	if (!order)
		order = strcmp(x->unit->info.role, y->unit->info.role);
	return order ? order : (x->unit->number > y->unit->number) - (x->unit->number < y->unit->number);
}

static bool same_part(const struct xfp_report_part *part, const struct keyed_unit *key)
{
	return part->class_ == key->unit->info.class_ && !strcmp(part->pattern, key->pattern) &&
	       !strcmp(part->role, key->unit->info.role);
}

static int by_class_and_unit(const void *a, const void *b)
{
	const struct xfp_report_part *x = a, *y = b;

	if (x->class_ != y->class_)
		return x->class_ < y->class_ ? -1 : 1;
	return (x->first_unit > y->first_unit) - (x->first_unit < y->first_unit);
}

/* Units of a component differ in their layers, so a name with other numbers is a component of its own. */
static enum xfp_status gather_parts(struct xfp_report *report, struct xfp_error *err)
{
	uint32_t count = report->info.units, *of_first;
	struct keyed_unit *keys = calloc(count + (size_t)1, sizeof *keys);
	enum xfp_status status = XFP_OK;
	struct xfp_report_part *part;

	report->parts = calloc(count + (size_t)1, sizeof *report->parts);
	of_first = calloc(count + (size_t)1, sizeof *of_first);
	if (!keys || !report->parts || !of_first)
		status = xfp_no_memory(err);
	for (uint32_t u = 0; !status && u < count; u++) {
		keys[u] = (struct keyed_unit){ pattern_of(&report->units[u]), &report->units[u] };
		if (!keys[u].pattern)
			status = xfp_no_memory(err);
	}
	if (!status)
		qsort(keys, count, sizeof *keys, by_pattern);
	for (uint32_t u = 0; !status && u < count; u++) {
		const struct xfp_unit_info *info = &keys[u].unit->info;

		if (!report->part_count || !same_part(&report->parts[report->part_count - 1], &keys[u])) {
			report->parts[report->part_count++] =
				(struct xfp_report_part){ .pattern = keys[u].pattern,
							  .role = info->role,
							  .class_name = info->class_name,
							  .class_ = info->class_,
							  .first_unit = keys[u].unit->number };
			keys[u].pattern = NULL;
		}
		part = &report->parts[report->part_count - 1];
		add(&part->sum, keys[u].unit);
		report->units[keys[u].unit->number].part = part->first_unit;
	}
	if (!status) {
		qsort(report->parts, report->part_count, sizeof *report->parts, by_class_and_unit);
		for (uint32_t p = 0; p < report->part_count; p++)
			of_first[report->parts[p].first_unit] = p;
		for (uint32_t u = 0; u < count; u++)
			report->units[u].part = of_first[report->units[u].part];
	}
	for (uint32_t u = 0; keys && u < count; u++)
		free(keys[u].pattern);
	free(keys);
	free(of_first);
	return status;
}

/* ---- layers ------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	const struct xfp_report_layer *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static struct xfp_report_layer *find_layer(const struct xfp_report *report, uint32_t number)
{
	const struct xfp_report_layer key = { .number = number };

	return bsearch(&key, report->layers, report->layer_count, sizeof key, by_number);
}

static enum xfp_status gather_layers(struct xfp_report *report, struct xfp_error *err)
{
	uint32_t found = 0;

	report->layers = calloc(report->info.units + (size_t)1, sizeof *report->layers);
	if (!report->layers)
		return xfp_no_memory(err);
	for (uint32_t u = 0; u < report->info.units; u++)
		if (report->units[u].layer != XFP_REPORT_NO_LAYER)
			report->layers[found++].number = report->units[u].layer;
	qsort(report->layers, found, sizeof *report->layers, by_number);
	for (uint32_t i = 0; i < found; i++)
		if (!i || report->layers[i].number != report->layers[report->layer_count - 1].number)
			report->layers[report->layer_count++] = report->layers[i];
	for (uint32_t u = 0; u < report->info.units; u++) {
		struct xfp_report_unit *unit = &report->units[u];
		struct xfp_report_layer *layer = find_layer(report, unit->layer);

		unit->column = layer ? (uint32_t)(layer - report->layers) : report->layer_count;
		if (layer)
			add(&layer->sum, unit);
	}
	return XFP_OK;
}

/* ---- classes ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double lower_median(double *value, uint32_t count)
{
	qsort(value, count, sizeof *value, ascending);
	return value[(count - 1) / 2];
}

static enum xfp_status gather_classes(struct xfp_report *report, struct xfp_error *err)
{
	double *median = calloc(report->info.units + (size_t)1, sizeof *median);
	double *p5 = calloc(report->info.units + (size_t)1, sizeof *p5);
	enum xfp_status status = median && p5 ? XFP_OK : xfp_no_memory(err);

	for (unsigned class_ = 0; !status && class_ < XFP_CLASSES; class_++) {
		struct xfp_report_class one = { .name = xfp_class_name((enum xfp_class)class_),
						.class_ = (uint8_t)class_ };

		for (uint32_t u = 0; u < report->info.units; u++) {
			const struct xfp_report_unit *unit = &report->units[u];
			double floor = unit->info.floor;

			if (unit->info.class_ != class_)
				continue;
			median[one.sum.units] = unit->median;
			p5[one.sum.units] = unit->p5;
			add(&one.sum, unit);
			if (floor > 0 && (!(one.min_floor > 0) || floor < one.min_floor))
				one.min_floor = floor;
			if (floor > one.max_floor)
				one.max_floor = floor;
		}
		if (!one.sum.units)
			continue;
		one.median = lower_median(median, one.sum.units);
		one.p5 = lower_median(p5, one.sum.units);
		report->classes[report->class_count++] = one;
	}
	free(median);
	free(p5);
	return status;
}

/* ---- all of it --------------------------------------------------------------------------------- */

enum xfp_status xfp_report_gather(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded,
				  struct xfp_report *report, struct xfp_error *err)
{
	enum xfp_status status;

	*report = (struct xfp_report){ .bundle = bundle, .recorded = recorded };
	xfp_bundle_describe(bundle, &report->info);
	report->composition = xfp_composition_of_bundle(bundle);
	report->units = calloc(report->info.units + (size_t)1, sizeof *report->units);
	if (!report->units)
		return xfp_no_memory(err);
	for (uint32_t u = 0; u < report->info.units; u++)
		read_unit(report, u);
	if (!(status = gather_parts(report, err)) && !(status = gather_layers(report, err)) &&
	    !(status = gather_classes(report, err)))
		status = xfp_report_gather_fates(report, err);
	return status;
}

void xfp_report_free(struct xfp_report *report)
{
	for (uint32_t p = 0; p < report->part_count; p++)
		free(report->parts[p].pattern);
	for (uint32_t f = 0; f < report->fate_count; f++)
		free(report->fates[f].pattern);
	free(report->units);
	free(report->parts);
	free(report->layers);
	free(report->fates);
	*report = (struct xfp_report){ .bundle = NULL };
}
