/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/measure.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/scale.h"
#include "stages/quantize/candidates.h"

#define SUMMARY_BLOCK 65536 /* cosines in memory at once */

enum xfp_status xfp_measure_begin(struct xfp_measure *measure, uint64_t max, uint64_t cols, struct xfp_error *err)
{
	bool short_of_memory =
		!(measure->cosine = malloc(max * sizeof *measure->cosine)) || !(measure->row_byte = malloc(max));

	measure->cols = cols;
	measure->fitted = xfp_candidates_fitted(measure->candidates, measure->count);
	for (uint32_t i = 0; i < measure->count; i++) {
		const struct xfp_candidate *candidate = &measure->candidates[i];

		measure->row[i] = malloc(max * sizeof *measure->row[i]);
		short_of_memory |= !measure->row[i];
		if (candidate->mode == XFP_MODE_V2)
			short_of_memory |=
				!(measure->codebook[i] = malloc((max << candidate->k) * sizeof *measure->codebook[i]));
		if (candidate->mode == XFP_MODE_V2C && cols)
			short_of_memory |= !(measure->byte[i] = malloc(max * xfp_candidate_groups(candidate, cols)));
	}
	return short_of_memory ? xfp_no_memory(err) : XFP_OK;
}

void xfp_measure_free(struct xfp_measure *measure)
{
	for (uint32_t i = 0; i < measure->count; i++) {
		free(measure->row[i]);
		free(measure->codebook[i]);
		free(measure->byte[i]);
	}
	free(measure->row_byte);
	free(measure->cosine);
}

enum xfp_status xfp_measure_flush(struct xfp_measure *measure, struct xfp_artifact *artifact, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < measure->count; i++) {
		const struct xfp_row_error *row = measure->row[i];

		for (uint64_t r = 0; r < measure->held; r++) {
			measure->cosine[r] = row[r].cosine;
			measure->error[i] += row[r].error;
			measure->norm += i ? 0 : row[r].norm;
		}
		status = xfp_fit_write_rows(artifact, &measure->candidates[i], measure->done, measure->held,
					    measure->codebook[i], measure->cosine, err);
		if (!status && measure->byte[i])
			status = xfp_fit_write_codes(
				artifact, &measure->candidates[i], measure->cols, measure->done, measure->held,
				&(struct xfp_fit_codes){ measure->byte[i], measure->row_byte, NULL }, err);
	}
	measure->done += measure->held;
	measure->held = 0;
	return status;
}

/* Compute the median and 5th percentile of the cosines of all rows, with one block in memory at a time. */
static enum xfp_status summarize_cosines(struct xfp_artifact *artifact, uint64_t rows, struct xfp_candidate *candidate,
					 struct xfp_error *err)
{
	uint64_t block = rows < SUMMARY_BLOCK ? rows : SUMMARY_BLOCK;
	double *cosine = malloc((block + 1) * sizeof *cosine);
	enum xfp_status status = cosine ? XFP_OK : xfp_no_memory(err);
	struct xfp_summary summary;

	for (xfp_summary_begin(&summary, rows); !status && !xfp_summary_done(&summary); xfp_summary_narrow(&summary)) {
		for (uint64_t first = 0; !status && first < rows; first += block) {
			uint64_t count = rows - first < block ? rows - first : block;

			/* A single block is read once. */
			if (block < rows || !summary.known)
				status = xfp_fit_read_rows(artifact, candidate, first, count, NULL, cosine, err);
			if (!status)
				xfp_summary_add(&summary, cosine, count);
		}
		if (status)
			break;
	}
	candidate->cos_median = summary.median;
	candidate->cos_p5 = summary.p5;
	free(cosine);
	return status;
}

enum xfp_status xfp_measure_end(struct xfp_measure *measure, const struct xfp_outputs *outputs,
				const struct xfp_outliers *known, const char *outliers, struct xfp_artifact *artifact,
				struct xfp_error *err)
{
	struct xfp_fit table = {
		.matrices = known->matrices, .rows = known->rows, .cols = known->cols, .candidate_count = measure->count
	};
	uint64_t rows = table.matrices * table.rows;
	enum xfp_status status = measure->held ? xfp_measure_flush(measure, artifact, err) : XFP_OK;

	snprintf(table.outliers, sizeof table.outliers, "%s", outliers);
	if (outputs) {
		table.calibrated = true;
		table.unreached = outputs->unreached;
		xfp_outputs_end(outputs, table.outputs);
	}
	for (uint32_t i = 0; !status && i < measure->count; i++) {
		struct xfp_candidate *candidate = &table.candidates[i];

		*candidate = measure->candidates[i];
		candidate->bytes = xfp_candidate_bytes(candidate, known);
		if (candidate->mode != XFP_MODE_FP8) {
			candidate->sigma_milli = known->sigma_milli;
			candidate->outliers = known->first[table.matrices];
		}
		candidate->error = measure->norm > 0 ? measure->error[i] / measure->norm : 0;
		/* Near the maximum of f32 a rounded entry can decode to infinity: the candidate must never be
		 * chosen. */
		if (!(candidate->error <= DBL_MAX)) {
			candidate->cos_median = candidate->cos_p5 = -1;
			candidate->error = 1;
			continue;
		}
		status = summarize_cosines(artifact, rows, candidate, err);
	}
	return status ? status : xfp_fit_end(artifact, &table, err);
}

struct xfp_measure_unit xfp_measure_unit(bool fits, int exponent)
{
	float unit = xfp_exp2i(exponent);

	return fits && exponent > -100 && exponent < 100 ? (struct xfp_measure_unit){ unit, 1 / ((double)unit * unit) }
							 : (struct xfp_measure_unit){ 1, 0 };
}
