/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lloyd_fit.c - xfp-lloyd-fit: codebooks and measurements of a unit's v2 candidates.
 *
 * input    the checkpoint's rows, the unit's outliers artifact
 * output   a fit artifact (schemas/fit.h) for the base set of k, or the extended one
 * key      key of the outliers; bits, start, rounds
 *
 * Every candidate is measured on the reconstruction as stored: fp16 entries, indices nearest to
 * them, fp16 residuals, balance and exponent undone in f32, exactly as the runtime decodes. No floor
 * plays a part, so that floors can change without a new fit.
 */
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "bytes.h"
#include "cosine.h"
#include "encode.h"
#include "fit.h"
#include "lloyd.h"
#include "marks.h"
#include "measure.h"
#include "number.h"
#include "optimal.h"
#include "rows.h"
#include "scale.h"
#include "threads.h"
#include "work.h"

/* What all rows of the unit share. */
struct fit {
	struct xfp_outliers known;
	struct xfp_artifact outliers;
	char outliers_key[33];
	struct xfp_measure measure;
	unsigned k[XFP_MAX_K + 1], count; /* of the candidates */
	bool optimal;
	int start;
	unsigned rounds;
	float *down;                  /* [padded cols] 2^(-d/4); zeros in the padding */
	struct xfp_measure_unit unit; /* of the matrix */
	struct xfp_scaling scaling;
	struct room *rooms; /* one a thread */
	int threads;
};

/* One thread's room for a row, all padded. */
struct room {
	struct xfp_lloyd_row *lloyd;
	struct xfp_optimal_room *optimal; /* where that is asked for */
	float *w, *x, *value;
	float *marked_w, *marked_x; /* of the outliers, in their order */
};

static void room_free(struct room *room)
{
	free(room->lloyd);
	free(room->optimal);
	free(room->w);
	free(room->x);
	free(room->value);
	free(room->marked_w);
	free(room->marked_x);
}

static bool room_init(struct room *room, uint64_t cols, bool optimal)
{
	if (optimal && !(room->optimal = malloc(sizeof *room->optimal)))
		return false;
	room->lloyd = aligned_alloc(64, xfp_align(sizeof *room->lloyd, 64));
	room->w = xfp_row_new(cols);
	room->x = xfp_row_new(cols);
	room->value = xfp_row_new(cols);
	room->marked_w = xfp_row_new(cols);
	room->marked_x = xfp_row_new(cols);
	if (!room->lloyd || !room->w || !room->x || !room->value || !room->marked_w || !room->marked_x)
		return false;
	xfp_lloyd_init(room->lloyd);
	return true;
}

/* A row as the fit sees it. */
struct row {
	const uint32_t *column; /* of its outliers */
	uint64_t outliers;
	double norm;
};

/* Outliers are zeros in w and x until they are measured by themselves. */
static void set_outliers_aside(const struct row *row, struct room *room)
{
	for (uint64_t i = 0; i < row->outliers; i++) {
		uint32_t c = row->column[i];

		room->marked_w[i] = room->w[c];
		room->marked_x[i] = room->x[c];
		room->w[c] = room->x[c] = 0;
	}
}

/* In units of 2^-s, where undoing the exponent rounds nothing. */
static struct xfp_row_error measure(const struct fit *fit, const struct row *row, struct room *room,
				    const struct xfp_quantizer *quantizer)
{
	struct xfp_row_sums sums = xfp_measure(quantizer, room->x, fit->down, room->w, fit->known.cols);
	float nothing = xfp_nearest(quantizer, 0);

	for (uint64_t i = 0; i < row->outliers; i++) {
		float x = room->marked_x[i], value = xfp_nearest(quantizer, x), d;
		float down = fit->down[row->column[i]], none = nothing * down;

		value = (value + xfp_half_to_float(xfp_residual(x, value))) * down;
		d = room->marked_w[i] - value;
		sums.error += (double)d * d - (double)none * none;
		sums.square += (double)value * value - (double)none * none;
	}
	/* What may be left of the zeros' share. */
	sums.error = sums.error < 0 ? 0 : sums.error * fit->unit.back;
	sums.square = sums.square < 0 ? 0 : sums.square * fit->unit.back;
	return xfp_row_result(row->norm, sums);
}

/* The same where it may round: of the weights as they are. */
static struct xfp_row_error measure_wide(const struct fit *fit, const struct row *row, struct room *room,
					 const struct xfp_quantizer *quantizer, int exponent)
{
	uint64_t cols = fit->known.cols;

	xfp_assign(quantizer, room->x, cols, room->value);
	for (uint64_t i = 0; i < row->outliers; i++) {
		float x = room->marked_x[i], value = xfp_nearest(quantizer, x);

		room->w[row->column[i]] = room->marked_w[i];
		room->value[row->column[i]] = value + xfp_half_to_float(xfp_residual(x, value));
	}
	xfp_unscale_row(room->value, fit->down, exponent, cols, room->value);
	return xfp_row_compare(room->w, room->value, cols);
}

/* Fit and measure every candidate of row r of a block. */
static void fit_row(const struct fit *fit, struct room *room, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, int exponent, uint64_t r)
{
	uint64_t cols = fit->known.cols, number = rows->first + r, at = fit->measure.held + r;
	struct row row = { .column = marks->column + marks->first[number],
			   .outliers = marks->first[number + 1] - marks->first[number] };
	struct xfp_row_start start = xfp_rows_scaled(rows, &fit->scaling, r, fit->unit.unit, room->w, room->x);
	uint16_t *codebook[XFP_MAX_K + 1];

	row.norm = start.norm;
	set_outliers_aside(&row, room);
	xfp_lloyd_load(room->lloyd, room->x, row.outliers ? xfp_encoder()->largest(room->x, cols) : start.largest,
		       row.outliers, cols);
	for (unsigned i = 0; i < fit->count; i++)
		codebook[i] = fit->measure.codebook[i] + (at << fit->k[i]);
	if (fit->optimal)
		xfp_optimal_fit(room->lloyd, fit->k, fit->count, room->optimal, codebook);
	else
		xfp_lloyd_fit(room->lloyd, fit->k, fit->count, fit->start, fit->rounds, codebook);
	for (unsigned i = 0; i < fit->count; i++) {
		struct xfp_quantizer quantizer;

		xfp_quantizer_init(&quantizer, fit->k[i], codebook[i]);
		fit->measure.row[i][at] = fit->unit.back > 0 ? measure(fit, &row, room, &quantizer)
							     : measure_wide(fit, &row, room, &quantizer, exponent);
	}
}

/* All rows of a block, in parallel; rows do not see each other. */
static void fit_block(struct fit *fit, const struct xfp_rows *rows, const struct xfp_marks *marks, int exponent)
{
#pragma omp parallel for schedule(dynamic, 4)
	for (uint64_t r = 0; r < rows->count; r++)
		fit_row(fit, &fit->rooms[xfp_thread()], rows, marks, exponent, r);
}

static enum xfp_status fit_matrix(struct xfp_job *job, struct fit *fit, uint32_t m, struct xfp_artifact *artifact,
				  struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_marks_load(&fit->outliers, &fit->known, m, &marks, err);
	int exponent = fit->known.exponent[m];

	xfp_scaling_set(&fit->scaling, fit->known.balance, exponent);
	fit->unit = xfp_measure_unit(fit->scaling.fits, exponent);
	if (!status)
		status = xfp_rows_open(&source, &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		fit_block(fit, &rows, &marks, exponent);
		fit->measure.held += rows.count;
		if (fit->measure.held >= XFP_MEASURE_HELD)
			status = xfp_measure_flush(&fit->measure, artifact, err);
	}
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	return status;
}

static enum xfp_status fit_init(struct fit *fit, struct xfp_error *err)
{
	uint64_t cols = fit->known.cols;
	bool short_of_memory;

	fit->threads = xfp_threads();
	fit->rooms = calloc((size_t)fit->threads, sizeof *fit->rooms);
	fit->down = xfp_row_new(cols);
	short_of_memory = !fit->rooms || !fit->down;
	for (int i = 0; !short_of_memory && i < fit->threads; i++)
		short_of_memory = !room_init(&fit->rooms[i], cols, fit->optimal);
	if (short_of_memory)
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
	for (int i = 0; fit->rooms && i < fit->threads; i++)
		room_free(&fit->rooms[i]);
	free(fit->rooms);
	free(fit->down);
	xfp_measure_free(&fit->measure);
}

static enum xfp_status produce(struct xfp_job *job, struct fit *fit, uint32_t bits, const struct xfp_key *key,
			       struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status;

	/* A unit with weights that are no numbers has no candidates. */
	bits = fit->known.sigma[0] < 0 ? 0 : bits;
	for (unsigned k = XFP_MIN_K; k <= XFP_MAX_K; k++)
		if (bits >> k & 1) {
			fit->measure.candidates[fit->count] = (struct xfp_candidate){ .mode = XFP_MODE_V2, .k = k };
			fit->k[fit->count++] = k;
		}
	fit->optimal = job->parameters.fit == XFP_FIT_OPTIMAL;
	fit->start = (int)job->parameters.start;
	fit->rounds = job->parameters.lloyd_iterations;
	fit->measure.count = fit->count;
	status = fit_init(fit, err);
	if (!status)
		status = xfp_measure_begin(&fit->measure, xfp_rows_block(&source) + XFP_MEASURE_HELD, err);
	if (!status)
		status = xfp_job_create(job, key, &pending, &artifact, err);
	if (!status)
		status = xfp_fit_begin(&artifact, job->unit->experts * job->unit->rows, fit->measure.candidates,
				       fit->count, err);
	for (uint32_t m = 0; !status && fit->count && m < job->unit->experts; m++)
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
	enum xfp_stamp stamp = job->extended ? XFP_STAMP_MORE : XFP_STAMP_FIT;
	uint32_t bits = job->extended ? xfp_parameters_extended_bits(&job->parameters)
				      : xfp_parameters_base_bits(&job->parameters);
	struct xfp_key key = { 0 };
	struct fit fit = { 0 };
	enum xfp_status status;

	status = xfp_job_open(job, XFP_STAMP_OUTLIERS, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, &fit.outliers,
			      fit.outliers_key, err);
	if (!status)
		status = xfp_key_fit(fit.outliers_key, &job->parameters, bits, &key, err);
	if (!status && !xfp_job_hit(job, stamp, key.hex, XFP_FIT_KIND, XFP_FIT_VERSION)) {
		status = xfp_outliers_read(&fit.outliers, &fit.known, err);
		if (!status)
			status = produce(job, &fit, bits, &key, err);
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
		.program = "xfp-lloyd-fit",
		.name = "lloyd-fit",
		.summary = "Fits a codebook a row for every candidate k and measures what would be stored.",
		.takes_extended = true,
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
