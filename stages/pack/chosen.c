/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/pack/chosen.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "schemas/fit.h"
#include "stages/quantize/candidates.h"

static enum xfp_status open_fit(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *fit,
				struct xfp_fit *table, struct xfp_error *err)
{
	enum xfp_stamp stamp = xfp_fit_stamp(choice->candidate.group ? XFP_FIT_LIBRARY : XFP_FIT_BASE);
	enum xfp_status status;
	char key[33];

	/* Find the step whose stamp must be removed if the fit is damaged. */
	for (int i = 0; i < XFP_FIT_KINDS; i++)
		if (xfp_stamp_read(job->work, job->number, xfp_fit_stamp((enum xfp_fit_kind)i), key) &&
		    !strcmp(key, choice->fit))
			stamp = xfp_fit_stamp((enum xfp_fit_kind)i);
	status = xfp_job_open_key(job, stamp, choice->fit, fit, err);
	return status ? status : xfp_fit_read(fit, table, err);
}

enum xfp_status xfp_chosen_outliers(struct xfp_job *job, const struct xfp_choice *choice, char key[33],
				    struct xfp_error *err)
{
	struct xfp_artifact fit = { 0 };
	struct xfp_fit table;
	enum xfp_status status = open_fit(job, choice, &fit, &table, err);

	if (!status)
		memcpy(key, table.outliers, sizeof table.outliers);
	xfp_artifact_close(&fit);
	return status;
}

enum xfp_status xfp_chosen_open(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_chosen *chosen,
				struct xfp_error *err)
{
	struct xfp_fit table;
	enum xfp_status status = open_fit(job, choice, &chosen->fit, &table, err);

	chosen->coded = !status && table.calibrated;
	chosen->bytes = !status && table.bytes;
	if (!status)
		status = xfp_job_open_key(job, XFP_STAMP_OUTLIERS, table.outliers, &chosen->outliers, err);
	return status ? status : xfp_outliers_read(&chosen->outliers, &chosen->known, err);
}

void xfp_chosen_close(struct xfp_chosen *chosen)
{
	xfp_artifact_close(&chosen->fit);
	xfp_artifact_close(&chosen->outliers);
	xfp_outliers_free(&chosen->known);
}

void xfp_chosen_describe(const struct xfp_chosen *chosen, const struct xfp_choice *choice, struct xfp_packed *packed)
{
	const struct xfp_candidate *candidate = &choice->candidate;
	const struct xfp_outliers *known = &chosen->known;

	xfp_candidate_parts(candidate, known, packed->bytes);
	packed->group = xfp_candidate_log2(candidate->group);
	packed->library = xfp_candidate_log2(candidate->library);
	packed->outliers = known->first[packed->matrices];
	packed->cos_median = candidate->cos_median;
	packed->cos_p5 = candidate->cos_p5;
	packed->error = candidate->error;
	for (uint32_t m = 0; m < packed->matrices; m++) {
		struct xfp_packed_matrix *matrix = &packed->matrix[m];

		matrix->exponent = known->exponent[m];
		matrix->outliers = known->first[m + 1] - known->first[m];
		memcpy(matrix->source, known->source[m], sizeof matrix->source);
	}
}

enum xfp_status xfp_chosen_marks(struct xfp_chosen *chosen, uint32_t m, struct xfp_marks *marks, struct xfp_error *err)
{
	uint64_t count = chosen->known.first[m + 1] - chosen->known.first[m];

	if (count > UINT32_MAX || (count && chosen->known.rows > UINT32_MAX))
		return xfp_fail(err, XFP_BAD_INPUT,
				"more outliers or rows than 32 bits can count; use --outlier-sigma none");
	return xfp_marks_load(&chosen->outliers, &chosen->known, m, marks, err);
}

enum xfp_status xfp_chosen_write_outliers(const struct xfp_chosen *chosen, const struct xfp_marks *marks,
					  const uint16_t *residual, struct xfp_part_writer *part, struct xfp_error *err)
{
	uint64_t rows = chosen->known.rows, cols = chosen->known.cols,
		 bytes = xfp_outlier_bytes(rows, cols, marks->count);
	size_t wide = cols > 65536 ? 4 : 2;
	uint8_t *data = calloc(bytes, 1), *row = data, *column, *value;
	bool listed = xfp_outliers_listed(rows, marks->count);
	enum xfp_status status;

	if (!data)
		return xfp_no_memory(err);
	column = data + xfp_outlier_row_bytes(rows, marks->count);
	value = column + (marks->count * wide + 3) / 4 * 4;
	for (uint64_t r = 0; !listed && r <= rows; r++)
		xfp_store32(data + r * 4, (uint32_t)marks->first[r]);
	for (uint64_t r = 0; listed && r < rows; r++)
		for (uint64_t i = marks->first[r]; i < marks->first[r + 1]; i++, row += 4)
			xfp_store32(row, (uint32_t)r);
	for (uint64_t i = 0; i < marks->count; i++) {
		uint32_t c = marks->column[i];

		memcpy(column + i * wide, &c, wide);
		xfp_store16(value + i * 2, residual[i]);
	}
	status = xfp_part_append(part, data, bytes, err);
	free(data);
	return status;
}
