/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.c - the bits that a sample of a stack's experts would have chosen, compared with those that all of its
 * experts need. The cosines of all rows are in the fits of the cache.
 */
#include <stdlib.h>
#include <string.h>

#include "cache/store.h"
#include "conversion/report/inputs.h"
#include "schemas/fit.h"
#include "stages/quantize/sample.h"
#include "stages/work/work.h"

static const uint32_t sizes[XFP_REPORT_SAMPLES] = { 4, 16 };

/* The smallest candidate that meets the floor: by all experts, then by each sample. Bytes 0: none. */
#define DECIDERS (1 + XFP_REPORT_SAMPLES)
struct decided_unit {
	uint32_t part;
	uint64_t weights, bytes[DECIDERS];
};

struct sample_reading {
	const char *work;
	struct xfp_store store;
	const struct xfp_report_unit *unit;
	struct decided_unit decided;
};

static void consider(struct sample_reading *reading, unsigned decider, double median, uint64_t bytes)
{
	uint64_t *least = &reading->decided.bytes[decider];

	if (median >= reading->unit->info.floor - 1e-12 && (!*least || bytes < *least))
		*least = bytes;
}

static enum xfp_status read_candidates(struct sample_reading *reading, struct xfp_artifact *artifact,
				       const struct xfp_fit *fit, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t c = 0; c < fit->candidate_count; c++)
		consider(reading, 0, fit->candidates[c].cos_median, fit->candidates[c].bytes);
	for (unsigned s = 0; !status && s < XFP_REPORT_SAMPLES; s++) {
		const struct xfp_moe_sample sample = { .experts = sizes[s] };
		struct xfp_sampled sampled[XFP_MAX_CANDIDATES];

		if (sizes[s] >= fit->matrices)
			continue;
		status = xfp_sample_fit(artifact, fit, &sample, sampled, err);
		for (uint32_t c = 0; !status && c < fit->candidate_count; c++)
			consider(reading, s + 1, sampled[c].median, fit->candidates[c].bytes);
	}
	return status;
}

/* Read one fit of the unit, if it is in the cache. */
static enum xfp_status read_fit(struct sample_reading *reading, enum xfp_fit_kind kind, struct xfp_error *err)
{
	const struct xfp_step *step = &xfp_steps[xfp_fit_stamp(kind)];
	struct xfp_fit *fit = calloc(1, sizeof *fit);
	struct xfp_artifact artifact = { 0 };
	char key[33] = "", *path = NULL;
	enum xfp_status status =
		fit ? xfp_stamp_find(reading->work, reading->unit->number, xfp_fit_stamp(kind), key, err)
		    : xfp_no_memory(err);

	if (status || !*key || !xfp_store_has(&reading->store, key))
		goto done;
	if (!(path = xfp_store_path(&reading->store, key))) {
		status = xfp_no_memory(err);
		goto done;
	}
	status = xfp_artifact_open(path, step->kind, step->version, key, &artifact, err);
	if (!status)
		status = xfp_fit_read(&artifact, fit, err);
	/* The floor of a calibrated unit applies to its outputs, whose rows are not stored. */
	if (!status && !fit->calibrated && fit->matrices == reading->unit->info.experts)
		status = read_candidates(reading, &artifact, fit, err);
	if (status == XFP_DAMAGED)
		status = xfp_context(err, XFP_BAD_INPUT, "--cache (xfp cache check lists damage)");
done:
	xfp_artifact_close(&artifact);
	free(path);
	free(fit);
	return status;
}

/* ---- sums -------------------------------------------------------------------------------------- */

static int by_part(const void *a, const void *b)
{
	const struct decided_unit *x = a, *y = b;

	return (x->part > y->part) - (x->part < y->part);
}

static void add(struct xfp_report_sampled *sum, const struct decided_unit *unit)
{
	sum->units++;
	sum->weights += unit->weights;
	sum->bytes += unit->bytes[0];
	for (unsigned s = 0; s < XFP_REPORT_SAMPLES; s++) {
		uint64_t bytes = unit->bytes[s + 1];

		if (!sum->of[s].possible)
			continue;
		if (bytes && bytes < unit->bytes[0])
			sum->of[s].few++;
		else if (!bytes || bytes > unit->bytes[0])
			sum->of[s].many++;
		else
			sum->of[s].same++;
	}
}

static enum xfp_status sum_up(const struct xfp_report *report, struct decided_unit *list, uint32_t count,
			      struct xfp_report_samples *samples, struct xfp_error *err)
{
	qsort(list, count, sizeof *list, by_part);
	samples->list = calloc(count + (size_t)1, sizeof *samples->list);
	if (!samples->list)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		struct xfp_report_sampled *last = samples->list + samples->count;

		if (!i || list[i].part != list[i - 1].part) {
			last = &samples->list[samples->count++];
			last->part = list[i].part;
			last->experts = report->units[report->parts[last->part].first_unit].info.experts;
			for (unsigned s = 0; s < XFP_REPORT_SAMPLES; s++)
				last->of[s].possible = sizes[s] < last->experts;
		}
		add(&samples->list[samples->count - 1], &list[i]);
	}
	return XFP_OK;
}

/* ---- the cache --------------------------------------------------------------------------------- */

enum xfp_status xfp_report_read_samples(const char *cache, const char *work, const struct xfp_report *report,
					struct xfp_report_samples *samples, struct xfp_error *err)
{
	struct decided_unit *list = calloc(report->info.units + (size_t)1, sizeof *list);
	struct sample_reading reading = { .work = work };
	enum xfp_status status = list ? XFP_OK : xfp_no_memory(err);
	uint32_t count = 0;
	bool open = false;

	*samples = (struct xfp_report_samples){ .count = 0 };
	if (!status)
		open = !(status = xfp_store_open_readonly(cache, &reading.store, err));
	for (uint32_t u = 0; !status && u < report->info.units; u++) {
		const struct xfp_unit_info *info = &report->units[u].info;

		if (info->experts <= sizes[0])
			continue;
		reading.unit = &report->units[u];
		reading.decided = (struct decided_unit){ .part = reading.unit->part, .weights = info->weights };
		for (int kind = 0; !status && info->floor > 0 && kind < XFP_FIT_KINDS; kind++)
			status = read_fit(&reading, (enum xfp_fit_kind)kind, err);
		if (reading.decided.bytes[0])
			list[count++] = reading.decided;
		else
			samples->left_out++;
	}
	if (!status)
		status = sum_up(report, list, count, samples, err);
	if (open)
		xfp_store_close(&reading.store);
	free(list);
	return status;
}

void xfp_report_samples_free(struct xfp_report_samples *samples)
{
	free(samples->list);
	*samples = (struct xfp_report_samples){ .count = 0 };
}
