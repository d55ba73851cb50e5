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

/* "model.layers.3.*", from the name of a unit of the layer; NULL: out of memory. */
static char *layer_pattern(const struct xfp_report *report, uint32_t column)
{
	for (uint32_t u = 0; u < report->info.units; u++) {
		const char *name = report->units[u].info.name, *part = report->parts[report->units[u].part].pattern;
		size_t same = 0;

		if (report->units[u].column != column)
			continue;
		while (name[same] && name[same] == part[same])
			same++;
		return xfp_formatted("%.*s%u.*", (int)same, name, report->units[u].layer);
	}
	return NULL;
}

/* Fill in the figures of units that the advice's pattern selects. False: these units have no more bits to get. */
static bool predict(const struct xfp_report *report, struct xfp_report_advice *advice)
{
	const struct xfp_report_sum *sum = advice->layer != XFP_REPORT_NO_LAYER ? &report->layers[advice->layer].sum
										: &report->parts[advice->part].sum;
	double squared = 0;

	advice->bits = sum->ranges.max_k + 1;
	if (!sum->ranges.max_k || advice->bits > MAX_BITS || !(report->all.squared > 0))
		return false;
	for (uint32_t u = 0; u < report->info.units; u++) {
		const struct xfp_report_unit *unit = &report->units[u];
		int more;

		if (advice->layer != XFP_REPORT_NO_LAYER ? unit->column != advice->layer : unit->part != advice->part)
			continue;
		more = unit->info.k ? (int)advice->bits - unit->info.k : 0;
		advice->bytes += more * (double)unit->info.weights / 8;
		squared += unit->error * (double)unit->info.weights * ldexp(1, -2 * more);
	}
	advice->share = sum->squared / report->all.squared;
	advice->error = xfp_report_error(sum);
	advice->remaining = 1 - (sum->squared - squared) / report->all.squared;
	advice->saved = (1 - advice->remaining) / (advice->bytes / 1e6);
	return true;
}

/* The component with the largest relative error that is not yet `used`. */
static uint32_t next_part(const struct xfp_report *report, const bool *used)
{
	uint32_t best = report->part_count;

	for (uint32_t p = 0; p < report->part_count; p++)
		if (!used[p] && (best == report->part_count ||
				 xfp_report_error(&report->parts[p].sum) > xfp_report_error(&report->parts[best].sum)))
			best = p;
	return best;
}

static int by_saved(const void *a, const void *b)
{
	const struct xfp_report_advice *x = a, *y = b;

	return (x->saved < y->saved) - (x->saved > y->saved);
}

uint32_t xfp_report_advise(const struct xfp_report *report, struct xfp_report_advice list[XFP_REPORT_ADVICE])
{
	bool *used = calloc(report->part_count + (size_t)1, sizeof *used);
	uint32_t layer = xfp_report_worst_layer(report), part, count = 0;

	if (!used)
		return 0;
	if (layer < report->layer_count) {
		list[0] = (struct xfp_report_advice){ .layer = layer };
		if (predict(report, &list[0]) && (list[0].pattern = layer_pattern(report, layer)))
			count++;
	}
	while (count < XFP_REPORT_ADVICE && (part = next_part(report, used)) < report->part_count) {
		used[part] = true;
		list[count] = (struct xfp_report_advice){ .layer = XFP_REPORT_NO_LAYER, .part = part };
		if (!predict(report, &list[count]))
			continue;
		if (!(list[count].pattern = strdup(report->parts[part].pattern)))
			break;
		count++;
	}
	free(used);
	qsort(list, count, sizeof *list, by_saved);
	return count;
}
