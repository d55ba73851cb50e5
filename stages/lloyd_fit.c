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
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "bundle_layout.h"
#include "bytes.h"
#include "cosine.h"
#include "fit.h"
#include "lloyd.h"
#include "marks.h"
#include "number.h"
#include "rows.h"
#include "scale.h"
#include "threads.h"
#include "work.h"

#define MOST 8              /* candidates of an artifact */
#define SUMMARY_BLOCK 65536 /* cosines in memory at once */
#define HELD 1024           /* rows whose results are worth a write */

/* What all rows of the unit share. */
struct fit {
	struct xfp_outliers known;
	struct xfp_artifact outliers;
	char outliers_key[33];
	unsigned k[MOST], count; /* of the candidates */
	int start;
	unsigned rounds;
	float *down; /* [padded cols] 2^(-d/4), NULL without balance */
	struct xfp_scaling scaling;
	struct room *rooms; /* one a thread */
	int threads;
	double error[MOST], norm; /* sums over the unit */
	/* Results by candidate, of the last `held` rows: HDF5 is called for many at a time. */
	uint64_t held, done; /* done: rows of the unit that are written */
	uint16_t *codebook[MOST];
	double *cosine[MOST];
	struct xfp_row_error *row[MOST];
};

/* One thread's room for a row, all padded. */
struct room {
	struct xfp_lloyd_row *lloyd;
	float *w, *x, *value, *marked; /* marked: weights of the outliers, in their order */
};

static void room_free(struct room *room)
{
	free(room->lloyd);
	free(room->w);
	free(room->x);
	free(room->value);
	free(room->marked);
}

static bool room_init(struct room *room, uint64_t cols)
{
	room->lloyd = aligned_alloc(64, xfp_align(sizeof *room->lloyd, 64));
	room->w = xfp_row_new(cols);
	room->x = xfp_row_new(cols);
	room->value = xfp_row_new(cols);
	room->marked = xfp_row_new(cols);
	if (!room->lloyd || !room->w || !room->x || !room->value || !room->marked)
		return false;
	xfp_lloyd_init(room->lloyd);
	return true;
}

static struct xfp_row_error measure_row(const struct fit *fit, struct room *room, double norm, int exponent)
{
	uint64_t cols = fit->known.cols;

	if (exponent > -100 && exponent < 100)
		return xfp_row_compare_scaled(room->w, norm, room->value, fit->down, exponent, cols);
	xfp_unscale_row(room->value, fit->down, exponent, cols, room->value);
	return xfp_row_compare(room->w, room->value, cols);
}

/* Fit and measure every candidate of row r of a block. */
static void fit_row(const struct fit *fit, struct room *room, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, int exponent, uint64_t r)
{
	uint64_t cols = fit->known.cols, row = rows->first + r, base = row * cols, at = fit->held + r;
	uint64_t count = marks->first[row + 1] - marks->first[row];
	const uint64_t *position = marks->position + marks->first[row];
	uint16_t *codebook[MOST];
	double norm;

	xfp_rows_load(rows, r, room->w);
	xfp_scaling_row(&fit->scaling, room->w, room->x);
	norm = xfp_row_norm(room->w, cols);
	for (uint64_t i = 0; i < count; i++) {
		room->marked[i] = room->x[position[i] - base];
		room->x[position[i] - base] = 0;
	}
	xfp_lloyd_load(room->lloyd, room->x, count, cols);
	for (uint64_t i = 0; i < count; i++)
		room->x[position[i] - base] = room->marked[i];
	for (unsigned i = 0; i < fit->count; i++)
		codebook[i] = fit->codebook[i] + (at << fit->k[i]);
	xfp_lloyd_fit(room->lloyd, fit->k, fit->count, fit->start, fit->rounds, codebook);
	for (unsigned i = 0; i < fit->count; i++) {
		struct xfp_quantizer quantizer;

		xfp_quantizer_init(&quantizer, fit->k[i], codebook[i]);
		xfp_assign(&quantizer, room->x, cols, room->value);
		for (uint64_t j = 0; j < count; j++) {
			float *value = &room->value[position[j] - base];

			*value += xfp_half_to_float(xfp_residual(room->marked[j], *value));
		}
		fit->row[i][at] = measure_row(fit, room, norm, exponent);
		fit->cosine[i][at] = fit->row[i][at].cosine;
	}
}

/* All rows of a block, in parallel; rows do not see each other. */
static void fit_block(struct fit *fit, const struct xfp_rows *rows, const struct xfp_marks *marks, int exponent)
{
#pragma omp parallel for schedule(dynamic, 4)
	for (uint64_t r = 0; r < rows->count; r++)
		fit_row(fit, &fit->rooms[xfp_thread()], rows, marks, exponent, r);
}

/* Write the results that are held. */
static enum xfp_status flush(struct fit *fit, struct xfp_artifact *artifact, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (unsigned i = 0; !status && i < fit->count; i++)
		status = xfp_fit_write_rows(artifact, fit->k[i], fit->done, fit->held, fit->codebook[i], fit->cosine[i],
					    err);
	for (uint64_t r = 0; !status && r < fit->held; r++) {
		fit->norm += fit->row[0][r].norm;
		for (unsigned i = 0; i < fit->count; i++)
			fit->error[i] += fit->row[i][r].error;
	}
	fit->done += fit->held;
	fit->held = 0;
	return status;
}

static enum xfp_status fit_matrix(struct xfp_job *job, struct fit *fit, uint32_t m, struct xfp_artifact *artifact,
				  struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_marks_load(&fit->outliers, &fit->known, m, &marks, err);

	xfp_scaling_set(&fit->scaling, fit->known.balance, fit->known.exponent[m]);
	if (!status)
		status = xfp_rows_open(&source, &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		fit_block(fit, &rows, &marks, fit->known.exponent[m]);
		fit->held += rows.count;
		if (fit->held >= HELD)
			status = flush(fit, artifact, err);
	}
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	return status;
}

/* Everything stored for the unit with this k. */
static uint64_t stored_bytes(const struct fit *fit, unsigned k)
{
	const struct xfp_outliers *known = &fit->known;
	uint64_t rows = known->matrices * known->rows;
	uint64_t bytes = rows * xfp_v2_row_bytes(known->cols, k) + (rows << k) * sizeof(uint16_t) +
			 (fit->down ? known->cols : 0);

	for (uint32_t m = 0; m < known->matrices; m++)
		bytes += xfp_outlier_bytes(known->rows, known->cols, known->first[m + 1] - known->first[m]);
	return bytes;
}

/* Median and 5th percentile of the cosines of all rows, a block of them in memory at a time. */
static enum xfp_status summarize_cosines(struct xfp_artifact *artifact, uint64_t rows, struct xfp_candidate *candidate,
					 struct xfp_error *err)
{
	uint64_t block = rows < SUMMARY_BLOCK ? rows : SUMMARY_BLOCK;
	double *cosine = malloc((block + 1) * sizeof *cosine);
	enum xfp_status status = cosine ? XFP_OK : xfp_fail(err, XFP_FAILED, "out of memory");
	struct xfp_summary summary;

	for (xfp_summary_begin(&summary, rows); !status && !xfp_summary_done(&summary); xfp_summary_narrow(&summary)) {
		for (uint64_t first = 0; !status && first < rows; first += block) {
			uint64_t count = rows - first < block ? rows - first : block;

			/* One that fits is read once. */
			if (block < rows || !summary.known)
				status = xfp_fit_read_rows(artifact, candidate->k, first, count, NULL, cosine, err);
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

/* The table of candidates, from what was measured row by row. */
static enum xfp_status summarize(const struct fit *fit, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_fit table = { .matrices = fit->known.matrices,
				 .rows = fit->known.rows,
				 .cols = fit->known.cols,
				 .candidate_count = fit->count };
	uint64_t rows = table.matrices * table.rows;
	enum xfp_status status = XFP_OK;

	strcpy(table.outliers, fit->outliers_key);
	for (unsigned i = 0; !status && i < fit->count; i++) {
		struct xfp_candidate *candidate = &table.candidates[i];

		candidate->mode = XFP_MODE_V2;
		candidate->k = fit->k[i];
		candidate->sigma_milli = fit->known.sigma_milli;
		candidate->bytes = stored_bytes(fit, fit->k[i]);
		candidate->outliers = fit->known.first[table.matrices];
		candidate->error = fit->norm > 0 ? fit->error[i] / fit->norm : 0;
		/* Near the end of f32 a rounded entry can decode to infinity: never to be chosen. */
		if (!(candidate->error <= DBL_MAX)) {
			candidate->cos_median = candidate->cos_p5 = -1;
			candidate->error = 1;
			continue;
		}
		status = summarize_cosines(artifact, rows, candidate, err);
	}
	return status ? status : xfp_fit_end(artifact, &table, err);
}

/* `most`: rows whose results are held at once. */
static enum xfp_status fit_init(struct fit *fit, uint64_t most, struct xfp_error *err)
{
	uint64_t cols = fit->known.cols;
	bool balanced = false, short_of_memory;

	fit->threads = xfp_threads();
	fit->rooms = calloc((size_t)fit->threads, sizeof *fit->rooms);
	fit->down = xfp_row_new(cols);
	short_of_memory = !fit->rooms || !fit->down;
	for (int i = 0; !short_of_memory && i < fit->threads; i++)
		short_of_memory = !room_init(&fit->rooms[i], cols);
	for (unsigned i = 0; i < fit->count; i++) {
		fit->codebook[i] = malloc((most << fit->k[i]) * sizeof *fit->codebook[i]);
		fit->cosine[i] = malloc(most * sizeof *fit->cosine[i]);
		fit->row[i] = malloc(most * sizeof *fit->row[i]);
		short_of_memory = short_of_memory || !fit->codebook[i] || !fit->cosine[i] || !fit->row[i];
	}
	if (short_of_memory)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint64_t c = 0; c < cols; c++) {
		fit->down[c] = xfp_balance_down(fit->known.balance[c]);
		balanced = balanced || fit->known.balance[c];
	}
	if (!balanced) {
		free(fit->down);
		fit->down = NULL;
	}
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
	for (unsigned i = 0; i < fit->count; i++) {
		free(fit->codebook[i]);
		free(fit->cosine[i]);
		free(fit->row[i]);
	}
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
		if (bits >> k & 1)
			fit->k[fit->count++] = k;
	fit->start = (int)job->parameters.start;
	fit->rounds = job->parameters.lloyd_iterations;
	status = fit_init(fit, xfp_rows_block(&source) + HELD, err);
	if (!status)
		status = xfp_job_create(job, key, &pending, &artifact, err);
	if (!status)
		status = xfp_fit_begin(&artifact, job->unit->experts * job->unit->rows, bits, err);
	for (uint32_t m = 0; !status && fit->count && m < job->unit->experts; m++)
		status = fit_matrix(job, fit, m, &artifact, err);
	if (!status && fit->held)
		status = flush(fit, &artifact, err);
	if (!status)
		status = summarize(fit, &artifact, err);
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
