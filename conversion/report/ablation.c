/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ablation.c - the gain of outliers, by component: pairs of measurements of the same units are summed up, and measured
 * on the weights of the source.
 */
#include <math.h>
#include <stdlib.h>

#include "conversion/measure/unit_survey.h"
#include "conversion/report/inputs.h"

/* ---- sums -------------------------------------------------------------------------------------- */

static int by_part_and_ratio(const void *a, const void *b)
{
	const struct xfp_report_pair *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

/* Sum up pairs of one component, sorted by ratio. */
static struct xfp_report_ablation sum_of(const struct xfp_report_pair *pairs, uint32_t count)
{
	struct xfp_report_ablation sum = { .part = pairs->part, .units = count, .max_gain = -INFINITY };

	for (uint32_t i = 0; i < count; i++) {
		sum.without += pairs[i].without / count;
		sum.with += pairs[i].with / count;
		sum.share += pairs[i].share / count;
		sum.max_gain = fmax(sum.max_gain, pairs[i].with - pairs[i].without);
	}
	sum.mean_gain = sum.with - sum.without;
	sum.ratio_50 = pairs[(count - 1) / 2].ratio;
	sum.ratio_90 = pairs[(count * (uint64_t)9 + 9) / 10 - 1].ratio; /* the nearest rank */
	return sum;
}

enum xfp_status xfp_report_sum_pairs(struct xfp_report_pair *pairs, uint32_t count, struct xfp_report_ablations *sums,
				     struct xfp_error *err)
{
	if (count)
		qsort(pairs, count, sizeof *pairs, by_part_and_ratio);
	sums->list = calloc(count + (size_t)1, sizeof *sums->list);
	if (!sums->list)
		return xfp_no_memory(err);
	for (uint32_t first = 0, end; first < count; first = end) {
		for (end = first; end < count && pairs[end].part == pairs[first].part; end++)
			;
		sums->list[sums->count++] = sum_of(pairs + first, end - first);
	}
	return XFP_OK;
}

void xfp_report_ablations_free(struct xfp_report_ablations *sums)
{
	free(sums->list);
	*sums = (struct xfp_report_ablations){ .count = 0 };
}

/* ---- measuring --------------------------------------------------------------------------------- */

struct ablating {
	const struct xfp_report_unit *unit;
	const struct xfp_ledger *ledger;
	const struct xfp_ledger_unit *source;
	struct xfp_parameters parameters; /* of the bundle's fits, in the unit's format */
	struct xfp_signals *signals;
};

/* Measure the unit's format with one threshold. *found is false if it cannot store the unit so. */
static enum xfp_status measure(const struct ablating *a, const struct xfp_survey *survey, uint32_t sigma_milli,
			       struct xfp_candidate *candidate, bool *found, struct xfp_error *err)
{
	const struct xfp_thresholds threshold = { 1, { sigma_milli } };
	const struct xfp_unit_info *info = &a->unit->info;
	struct xfp_candidate list[2 * XFP_MAX_CANDIDATES];
	enum xfp_status status;
	uint32_t count = 0;

	*found = false;
	if (a->signals && xfp_signals_arrived(a->signals))
		return xfp_fail(err, XFP_FAILED, "interrupted");
	status = xfp_survey_measure(survey, &a->parameters, 1u << info->k, &threshold, list, &count, err);
	for (uint32_t i = 0; !status && i < count; i++)
		if (list[i].mode == info->mode && list[i].k == info->k && list[i].group == info->group_size &&
		    list[i].cos_median >= 0) {
			*candidate = list[i];
			*found = true;
		}
	return status;
}

static enum xfp_status measure_pair(struct ablating *a, struct xfp_report_ablations *sums, struct xfp_report_pair *pair,
				    bool *found, struct xfp_error *err)
{
	struct xfp_unit_survey surveyed = { .tile = NULL };
	const uint32_t sigma_milli = (uint32_t)lround(1000 * XFP_REPORT_SIGMA);
	struct xfp_candidate without, with;
	enum xfp_status status = xfp_unit_survey_load(a->ledger, a->source, &a->parameters,
						      xfp_unit_survey_rows(a->source), &surveyed, err);

	*found = false;
	if (!status && surveyed.survey.rows)
		status = measure(a, &surveyed.survey, 0, &without, found, err);
	if (!status && *found)
		status = measure(a, &surveyed.survey, sigma_milli, &with, found, err);
	if (!status && *found) {
		*pair = (struct xfp_report_pair){ a->unit->part, without.cos_median, with.cos_median,
						  with.error > 0 ? without.error / with.error : 0,
						  (double)with.outliers / (double)a->unit->info.weights };
		sums->rows += a->source->experts * a->source->rows;
		sums->measured += surveyed.survey.rows;
	}
	xfp_unit_survey_free(&surveyed);
	return status;
}

enum xfp_status xfp_report_ablate(const struct xfp_report *report, const struct xfp_report_source *source,
				  struct xfp_signals *signals, struct xfp_report_ablations *sums, struct xfp_error *err)
{
	struct ablating a = { .ledger = source->ledger, .signals = signals };
	struct xfp_report_pair *pairs = calloc(report->info.units + (size_t)1, sizeof *pairs);
	enum xfp_status status = pairs ? XFP_OK : xfp_no_memory(err);
	uint32_t count = 0;

	*sums = (struct xfp_report_ablations){ .count = 0 };
	for (uint32_t u = 0; !status && u < report->info.units; u++) {
		const struct xfp_unit_info *info = &report->units[u].info;
		bool found = false;

		a.unit = &report->units[u];
		a.source = &source->ledger->units[source->units[u]];
		a.parameters = report->recorded->parameters;
		a.parameters.modes = 1u << info->mode;
		a.parameters.group_size = info->group_size;
		a.parameters.outlier_sigma = XFP_SIGMA_AUTO;
		a.parameters.outlier_cap = XFP_CAP_AUTO;
		if (info->k)
			status = measure_pair(&a, sums, &pairs[count], &found, err);
		count += found;
		sums->left_out += !found;
	}
	if (!status)
		status = xfp_report_sum_pairs(pairs, count, sums, err);
	free(pairs);
	return status;
}
