/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - xfp compare: our modes, measured on a unit's rows.
 *
 * A survey (survey.h) with one threshold at a time: then libraries are trained for that threshold, as a conversion
 * trains them. v2a as published has neither balance nor outliers, and therefore needs its own scan.
 */
#include <stdlib.h>
#include <string.h>

#include "commands/compare/compare.h"
#include "conversion/measure/unit_survey.h"
#include "stages/quantize/candidates.h"

static uint64_t rows_of(const struct xfp_ledger_unit *unit, const struct xfp_compare_request *request)
{
	uint64_t all = unit->experts * unit->rows;

	if (!request->rows)
		return xfp_unit_survey_rows(unit);
	return request->rows < all ? request->rows : all;
}

/* Bytes of row scales, balance and library, which a format without them does not store. */
static uint64_t shared_bytes(const struct xfp_candidate *candidate, const struct xfp_outliers *known)
{
	uint64_t bytes[XFP_PARTS], shared;

	xfp_candidate_parts(candidate, known, bytes);
	shared = bytes[XFP_PART_BALANCE];
	if (candidate->group)
		shared += bytes[XFP_PART_CODE];
	if (candidate->mode == XFP_MODE_V2C)
		shared += bytes[XFP_PART_GROUP] -
			  known->matrices * known->rows * ((known->cols + candidate->group - 1) / candidate->group);
	return shared;
}

static enum xfp_status interrupted(struct xfp_signals *signals, struct xfp_error *err)
{
	return xfp_signals_arrived(signals) ? xfp_fail(err, XFP_FAILED, "interrupted") : XFP_OK;
}

/* Append candidates of the parameters' modes for each threshold. */
static enum xfp_status measure(const struct xfp_survey *survey, const struct xfp_parameters *parameters, uint32_t bits,
			       const struct xfp_thresholds *thresholds, bool published, struct xfp_signals *signals,
			       struct xfp_compared_unit *compared, struct xfp_error *err)
{
	struct xfp_candidate list[2 * XFP_MAX_CANDIDATES];
	enum xfp_status status = XFP_OK;

	for (uint32_t t = 0; !status && t < thresholds->count; t++) {
		const struct xfp_thresholds one = { 1, { thresholds->sigma_milli[t] } };
		uint32_t count = 0;

		status = interrupted(signals, err);
		if (!status)
			status = xfp_survey_measure(survey, parameters, bits, &one, list, &count, err);
		for (uint32_t i = 0; !status && i < count; i++)
			compared->list[compared->count++] =
				(struct xfp_compared){ .published = published,
						       .candidate = list[i],
						       .shared = shared_bytes(&list[i], survey->known) };
	}
	return status;
}

static const struct xfp_thresholds no_outliers = { 1, { 0 } };

static enum xfp_status add_ours(const struct xfp_survey *survey, const struct xfp_compare_request *request,
				struct xfp_signals *signals, struct xfp_compared_unit *compared, struct xfp_error *err)
{
	struct xfp_parameters parameters = request->parameters;
	uint32_t fp8 = parameters.bits & XFP_FP8_BIT;
	enum xfp_status status;

	parameters.modes = request->refined ? XFP_ALL_MODES : XFP_AUTO_MODES;
	parameters.libfit = XFP_LIBFIT_REFINED;
	status = measure(survey, &parameters, parameters.bits & ~XFP_FP8_BIT, &request->thresholds, false, signals,
			 compared, err);
	/* fp8 has no thresholds. */
	if (!status && fp8)
		status = measure(survey, &parameters, fp8, &no_outliers, false, signals, compared, err);
	return status;
}

static enum xfp_status add_published(const struct xfp_survey *survey, const struct xfp_parameters *parameters,
				     struct xfp_signals *signals, struct xfp_compared_unit *compared,
				     struct xfp_error *err)
{
	return measure(survey, parameters, parameters->bits & ~XFP_FP8_BIT, &no_outliers, true, signals, compared, err);
}

enum xfp_status xfp_compare_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				 const struct xfp_compare_request *request, struct xfp_signals *signals,
				 struct xfp_compared_unit *compared, struct xfp_error *err)
{
	size_t max = request->thresholds.count * 2 * XFP_MAX_CANDIDATES + XFP_MAX_CANDIDATES + 1 + XFP_PEERS;
	struct xfp_compared peers[XFP_PEERS];
	struct xfp_parameters recipe = request->parameters;
	struct xfp_unit_survey surveyed = { .tile = NULL };
	enum xfp_status status;

	*compared = (struct xfp_compared_unit){ .unit = unit,
						.rows = unit->experts * unit->rows,
						.weights = xfp_unit_weights(unit),
						.sampled = rows_of(unit, request) };
	compared->list = calloc(max, sizeof *compared->list);
	surveyed.tile = calloc(unit->experts * xfp_tiles(unit->rows) * xfp_tiles(unit->cols), sizeof *surveyed.tile);
	status = compared->list && surveyed.tile
			 ? xfp_unit_survey_load(ledger, unit, &request->parameters, compared->sampled, &surveyed, err)
			 : xfp_no_memory(err);
	if (status || !surveyed.survey.rows)
		goto done;
	status = xfp_compare_peers(unit, &surveyed.survey, surveyed.tile, signals, peers, &compared->norm, err);
	if (!status)
		status = add_ours(&surveyed.survey, request, signals, compared, err);
	recipe.modes = 1u << XFP_MODE_V2A;
	recipe.libfit = XFP_LIBFIT_PUBLISHED;
	recipe.balance = 0;
	xfp_unit_survey_free(&surveyed);
	if (!status && request->published)
		status = xfp_unit_survey_load(ledger, unit, &recipe, compared->sampled, &surveyed, err);
	if (!status && request->published)
		status = add_published(&surveyed.survey, &recipe, signals, compared, err);
	if (status)
		goto done;
	qsort(compared->list, compared->count, sizeof *compared->list, xfp_compared_order);
	memcpy(compared->list + compared->count, peers, sizeof peers);
	compared->count += XFP_PEERS;
done:
	xfp_unit_survey_free(&surveyed);
	return status;
}
