/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfit.c - xfp-libfit: libraries and measurements of a unit's v2a and v2c candidates.
 *
 * input    the checkpoint's rows, the unit's outliers artifact
 * output   a fit artifact (schemas/fit.h) for the base set of k, or the extended one
 * key      key of the outliers; modes, bits, group and library sizes, libfit
 *
 * A library is trained on a sample of the unit's groups and measured on all of them, on the reconstruction as it is
 * stored: fp16 library, scales, midpoints and ratios, fp16 residuals, balance and exponent undone in f32. What is
 * stored of a group is not kept: xfp-pack finds the same again.
 */
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "candidates.h"
#include "cosine.h"
#include "encode.h"
#include "group_row.h"
#include "library_train.h"
#include "marks.h"
#include "measure.h"
#include "number.h"
#include "rows.h"
#include "scale.h"
#include "threads.h"

#define MOST_GROUPINGS 6

/* What all rows of the unit share. */
struct fit {
	struct xfp_outliers known;
	struct xfp_artifact outliers;
	char outliers_key[33];
	struct xfp_measure measure;
	struct xfp_grouping groupings[MOST_GROUPINGS];
	uint32_t grouping_count;
	uint32_t grouping_of[XFP_MOST_CANDIDATES];
	struct xfp_library_code code[XFP_MOST_CANDIDATES];
	struct xfp_group_library libraries[XFP_MOST_CANDIDATES];
	float *down;                  /* [padded cols] 2^(-d/4); zeros in the padding */
	struct xfp_measure_unit unit; /* of the matrix */
	struct xfp_scaling scaling;
	struct room *rooms; /* one a thread */
	int threads;
};

/* One thread's room for a row, all padded. */
struct room {
	float *w, *x, *value;
	float *marked; /* x of the outliers, in their order */
	struct xfp_group_row rows[MOST_GROUPINGS];
	struct xfp_group_codes codes[MOST_GROUPINGS];
};

/* Candidates of the same groups see the same rows. */
static void list_groupings(struct fit *fit)
{
	for (uint32_t i = 0; i < fit->measure.count; i++) {
		struct xfp_grouping grouping = xfp_grouping_of(&fit->measure.candidates[i], fit->known.cols);
		uint32_t g = 0;

		while (g < fit->grouping_count && !xfp_grouping_same(&fit->groupings[g], &grouping))
			g++;
		fit->grouping_of[i] = g;
		fit->groupings[g] = grouping;
		fit->grouping_count += g == fit->grouping_count;
	}
}

/* ---- libraries --------------------------------------------------------------------------------- */

static enum xfp_status train(struct xfp_job *job, struct fit *fit, uint32_t g, struct xfp_error *err)
{
	const struct xfp_candidate *candidates[XFP_MOST_CANDIDATES];
	struct xfp_library_code *code[XFP_MOST_CANDIDATES];
	uint32_t count = 0;

	for (uint32_t i = 0; i < fit->measure.count; i++) {
		if (fit->grouping_of[i] != g)
			continue;
		if (!xfp_library_code_init(&fit->code[i], &fit->measure.candidates[i]))
			return xfp_fail(err, XFP_FAILED, "out of memory");
		candidates[count] = &fit->measure.candidates[i];
		code[count++] = &fit->code[i];
	}
	return xfp_library_train(job, &fit->known, &fit->outliers, &fit->groupings[g], candidates, count, code, err);
}

static enum xfp_status make_libraries(struct xfp_job *job, struct fit *fit, struct xfp_artifact *artifact,
				      struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t g = 0; !status && g < fit->grouping_count; g++)
		status = train(job, fit, g, err);
	for (uint32_t i = 0; !status && i < fit->measure.count; i++) {
		if (!xfp_library_init(&fit->libraries[i], &fit->measure.candidates[i],
				      xfp_library_published(&job->parameters)))
			return xfp_fail(err, XFP_FAILED, "out of memory");
		xfp_library_open(&fit->libraries[i], &fit->code[i]);
		status = xfp_fit_write_library(artifact, &fit->measure.candidates[i], fit->code[i].code,
					       fit->code[i].hints, err);
	}
	return status;
}

/* ---- rows -------------------------------------------------------------------------------------- */

/* The reconstruction, residuals added, against the source. */
static struct xfp_row_error measure(const struct fit *fit, struct room *room, double norm, int exponent)
{
	const struct xfp_encoder *encoder = xfp_encoder();
	uint64_t cols = fit->known.cols;
	struct xfp_row_sums sums;

	if (!(fit->unit.back > 0)) {
		xfp_unscale_row(room->value, fit->down, exponent, cols, room->value);
		return xfp_row_compare(room->w, room->value, cols);
	}
	encoder->scale(room->value, fit->down, cols, room->value);
	sums = encoder->compare(room->w, room->value, 1, cols);
	sums.error *= fit->unit.back;
	sums.square *= fit->unit.back;
	return xfp_row_result(norm, sums);
}

static void fit_row(const struct fit *fit, struct room *room, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, int exponent, uint64_t r)
{
	uint64_t number = rows->first + r, at = fit->measure.held + r;
	const uint32_t *column = marks->column + marks->first[number];
	uint64_t count = marks->first[number + 1] - marks->first[number];
	struct xfp_row_start start = xfp_rows_scaled(rows, &fit->scaling, r, fit->unit.unit, room->w, room->x);

	for (uint64_t i = 0; i < count; i++) {
		room->marked[i] = room->x[column[i]];
		room->x[column[i]] = 0;
	}
	for (uint32_t g = 0; g < fit->grouping_count; g++)
		xfp_group_row_load(&room->rows[g], room->x, column, count);
	for (uint32_t i = 0; i < fit->measure.count; i++) {
		uint32_t g = fit->grouping_of[i];

		xfp_group_encode(&fit->libraries[i], &room->rows[g], &room->codes[g], room->value);
		for (uint64_t j = 0; j < count; j++) {
			float *value = &room->value[column[j]];

			*value += xfp_half_to_float(xfp_residual(room->marked[j], *value));
		}
		fit->measure.row[i][at] = measure(fit, room, start.norm, exponent);
	}
}

static enum xfp_status fit_matrix(struct xfp_job *job, struct fit *fit, uint32_t m, struct xfp_artifact *artifact,
				  struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	int exponent = fit->known.exponent[m];
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_marks_load(&fit->outliers, &fit->known, m, &marks, err);

	xfp_scaling_set(&fit->scaling, fit->known.balance, exponent);
	fit->unit = xfp_measure_unit(fit->scaling.fits, exponent);
	if (!status)
		status = xfp_rows_open(&source, &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
#pragma omp parallel for schedule(dynamic, 4)
		for (uint64_t r = 0; r < rows.count; r++)
			fit_row(fit, &fit->rooms[xfp_thread()], &rows, &marks, exponent, r);
		fit->measure.held += rows.count;
		if (fit->measure.held >= XFP_MEASURE_HELD)
			status = xfp_measure_flush(&fit->measure, artifact, err);
	}
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	return status;
}

/* ---- the stage --------------------------------------------------------------------------------- */

static bool room_init(struct room *room, const struct fit *fit)
{
	uint64_t cols = fit->known.cols;
	bool good = true;

	room->w = xfp_row_new(cols);
	room->x = xfp_row_new(cols);
	room->value = xfp_row_new(cols);
	room->marked = xfp_row_new(cols);
	for (uint32_t g = 0; g < fit->grouping_count; g++)
		good = xfp_group_row_init(&room->rows[g], &fit->groupings[g]) &&
		       xfp_group_codes_init(&room->codes[g], &fit->groupings[g]) && good;
	return good && room->w && room->x && room->value && room->marked;
}

static enum xfp_status fit_init(struct fit *fit, struct xfp_error *err)
{
	uint64_t cols = fit->known.cols;
	bool good;

	fit->threads = xfp_threads();
	fit->rooms = calloc((size_t)fit->threads, sizeof *fit->rooms);
	fit->down = xfp_row_new(cols);
	good = fit->rooms && fit->down;
	for (int i = 0; good && i < fit->threads; i++)
		good = room_init(&fit->rooms[i], fit);
	if (!good)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint64_t c = 0; c < cols; c++)
		fit->down[c] = xfp_balance_down(fit->known.balance[c]);
	return xfp_scaling_init(&fit->scaling, cols, err);
}

static void fit_free(struct fit *fit)
{
	xfp_artifact_close(&fit->outliers);
	xfp_outliers_free(&fit->known);
	xfp_scaling_free(&fit->scaling);
	for (int i = 0; fit->rooms && i < fit->threads; i++) {
		struct room *room = &fit->rooms[i];

		free(room->w);
		free(room->x);
		free(room->value);
		free(room->marked);
		for (uint32_t g = 0; g < fit->grouping_count; g++) {
			xfp_group_row_free(&room->rows[g]);
			xfp_group_codes_free(&room->codes[g]);
		}
	}
	free(fit->rooms);
	free(fit->down);
	for (uint32_t i = 0; i < fit->measure.count; i++) {
		xfp_library_code_free(&fit->code[i]);
		xfp_library_free(&fit->libraries[i]);
	}
	xfp_measure_free(&fit->measure);
}

static enum xfp_status produce(struct xfp_job *job, struct fit *fit, enum xfp_fit_kind kind, const struct xfp_key *key,
			       struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status;

	/* A unit with weights that are no numbers has no candidates. */
	if (!(fit->known.sigma[0] < 0))
		fit->measure.count = xfp_candidates_of(kind, &job->parameters, fit->measure.candidates);
	list_groupings(fit);
	status = fit_init(fit, err);
	if (!status)
		status = xfp_measure_begin(&fit->measure, xfp_rows_block(&source) + XFP_MEASURE_HELD, err);
	if (!status)
		status = xfp_job_create(job, key, &pending, &artifact, err);
	if (!status)
		status = xfp_fit_begin(&artifact, job->unit->experts * job->unit->rows, fit->measure.candidates,
				       fit->measure.count, err);
	if (!status)
		status = make_libraries(job, fit, &artifact, err);
	for (uint32_t m = 0; !status && fit->measure.count && m < job->unit->experts; m++)
		status = fit_matrix(job, fit, m, &artifact, err);
	if (!status)
		status = xfp_measure_end(&fit->measure, &fit->known, fit->outliers_key, &artifact, err);
	if (!status)
		status = xfp_job_publish(job, key, XFP_FIT_KIND, XFP_FIT_VERSION, &pending, &artifact, err);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	enum xfp_fit_kind kind = job->extended ? XFP_FIT_MORE_LIBRARY : XFP_FIT_LIBRARY;
	enum xfp_stamp stamp = xfp_fit_stamp(kind);
	struct xfp_key key = { 0 };
	struct fit fit = { 0 };
	enum xfp_status status;

	if (!xfp_fit_wanted(&job->parameters, kind))
		return xfp_fail(err, XFP_USAGE, "--mode %s has no library", xfp_modes_name(job->parameters.modes));
	status = xfp_job_open(job, XFP_STAMP_OUTLIERS, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, &fit.outliers,
			      fit.outliers_key, err);
	if (!status)
		status = xfp_key_fit_kind(kind, fit.outliers_key, &job->parameters, &key, err);
	if (!status && !xfp_job_hit(job, stamp, key.hex, XFP_FIT_KIND, XFP_FIT_VERSION)) {
		status = xfp_outliers_read(&fit.outliers, &fit.known, err);
		if (!status)
			status = produce(job, &fit, kind, &key, err);
	}
	if (!status)
		status = xfp_stamp_write(job->work, job->number, stamp, key.hex, err);
	xfp_key_free(&key);
	fit_free(&fit);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.program = "xfp-libfit",
		.name = "libfit",
		.summary = "Fits a unit's libraries for every candidate k and measures what would be stored.",
		.takes_extended = true,
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
