/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/report/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "conversion/report/inputs.h"

#define MAX_BITS 6 /* per index */

/* Whether an evaluation says which layer is worst: its own error is known, and it has units. */
static bool find_by_drift(const struct xfp_report *report, uint32_t *worst)
{
	const struct xfp_report_evaluation *e = report->evaluation;
	double largest = 0;
	bool found = false;

	for (uint32_t i = 0; i < report->layer_count; i++) {
		uint32_t number = report->layers[i].number;

		if (e && number < e->layer_count && e->layers[number].alone > largest) {
			largest = e->layers[number].alone;
			*worst = i;
			found = true;
		}
	}
	return found;
}

uint32_t xfp_report_worst_layer(const struct xfp_report *report)
{
	uint32_t worst = report->layer_count;

	if (find_by_drift(report, &worst))
		return worst;
	for (uint32_t i = 0; i < report->layer_count; i++)
		if (worst == report->layer_count || report->layers[i].sum.squared > report->layers[worst].sum.squared)
			worst = i;
	return worst;
}

uint32_t xfp_report_worst_part(const struct xfp_report *report)
{
	uint32_t worst = report->part_count;

	for (uint32_t i = 0; i < report->part_count; i++)
		if (worst == report->part_count || report->parts[i].sum.squared > report->parts[worst].sum.squared)
			worst = i;
	return worst;
}

/* Whether advice is about a unit. */
static bool covers(const struct xfp_report_advice *advice, const struct xfp_report_unit *unit)
{
	return advice->layer == XFP_REPORT_NO_LAYER
		       ? unit->part == advice->part
		       : unit->column == advice->layer && unit->info.class_ == advice->class_;
}

/* "model.layers.3.self_attn.*", from what the names of the units have in common. NULL: other units have it, too, or
 * out of memory. */
static char *common_pattern(const struct xfp_report *report, const struct xfp_report_advice *advice)
{
	const char *common = NULL;
	size_t length = 0;

	for (uint32_t u = 0; u < report->info.units; u++) {
		const char *name = report->units[u].info.name;
		size_t same = 0;

		if (!covers(advice, &report->units[u]))
			continue;
		while (common && same < length && name[same] == common[same])
			same++;
		length = common ? same : strlen(name);
		common = common ? common : name;
	}
	while (length && common[length - 1] != '.')
		length--;
	for (uint32_t u = 0; u < report->info.units; u++)
		if (!length ||
		    (!covers(advice, &report->units[u]) && !strncmp(report->units[u].info.name, common, length)))
			return NULL;
	return xfp_formatted("%.*s*", (int)length, common);
}

/* Fill in the figures. If the units have different bits, those with fewer get the most that one has now. False: no
 * bits, or some units have no index, whose format the option would replace. */
static bool predict(const struct xfp_report *report, struct xfp_report_advice *advice)
{
	double squared = 0, before = 0, weights = 0;

	advice->low = MAX_BITS + 1;
	for (uint32_t u = 0; u < report->info.units; u++)
		if (covers(advice, &report->units[u])) {
			advice->low = report->units[u].info.k < advice->low ? report->units[u].info.k : advice->low;
			advice->high = report->units[u].info.k > advice->high ? report->units[u].info.k : advice->high;
		}
	advice->bits = advice->high + (advice->low == advice->high);
	if (!advice->low || advice->bits > MAX_BITS || !(report->all.squared > 0))
		return false;
	for (uint32_t u = 0; u < report->info.units; u++) {
		const struct xfp_report_unit *unit = &report->units[u];
		int more = (int)advice->bits - unit->info.k;
		double one = unit->error * (double)unit->info.weights;

		if (!covers(advice, unit))
			continue;
		weights += (double)unit->info.weights;
		advice->bytes += more * (double)unit->info.weights / 8;
		before += one;
		squared += one * ldexp(1, -2 * more);
	}
	advice->share = before / report->all.squared;
	advice->error = weights > 0 ? before / weights : 0;
	advice->remaining = 1 - (before - squared) / report->all.squared;
	advice->saved = (1 - advice->remaining) / (advice->bytes / 1e6);
	return advice->bytes > 0;
}

static int by_saved(const void *a, const void *b)
{
	const struct xfp_report_advice *x = a, *y = b;

	if (x->saved != y->saved)
		return x->saved < y->saved ? 1 : -1;
	if (x->layer != y->layer)
		return x->layer > y->layer ? -1 : 1; /* a component before a layer */
	return x->layer == XFP_REPORT_NO_LAYER ? (x->part > y->part) - (x->part < y->part) : x->class_ - y->class_;
}

/* Whether bits can be added, and an option can express it: fill in the advice. */
static bool complete(const struct xfp_report *report, struct xfp_report_advice *advice)
{
	if (!predict(report, advice))
		return false;
	advice->pattern = advice->layer == XFP_REPORT_NO_LAYER ? strdup(report->parts[advice->part].pattern)
							       : common_pattern(report, advice);
	return advice->pattern != NULL;
}

uint32_t xfp_report_advise(const struct xfp_report *report, struct xfp_report_advice list[XFP_REPORT_ADVICE])
{
	struct xfp_report_advice *all = calloc(report->part_count + (size_t)XFP_CLASSES, sizeof *all);
	uint32_t layer = xfp_report_worst_layer(report), count = 0, kept;

	if (!all)
		return 0;
	for (unsigned class_ = 0; layer < report->layer_count && class_ < XFP_CLASSES; class_++) {
		all[count] = (struct xfp_report_advice){ .layer = layer, .class_ = (uint8_t)class_ };
		count += complete(report, &all[count]);
	}
	for (uint32_t part = 0; part < report->part_count; part++) {
		all[count] = (struct xfp_report_advice){ .layer = XFP_REPORT_NO_LAYER, .part = part };
		count += complete(report, &all[count]);
	}
	qsort(all, count, sizeof *all, by_saved);
	kept = count < XFP_REPORT_ADVICE ? count : XFP_REPORT_ADVICE;
	for (uint32_t i = 0; i < count; i++)
		if (i < kept)
			list[i] = all[i];
		else
			free(all[i].pattern);
	free(all);
	return kept;
}
