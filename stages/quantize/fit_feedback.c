/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_feedback.c - encode and measure all rows of a matrix with error feedback, and store their codes.
 *
 * Rows are read once for each block of columns and each size of groups, which H and R depend on. Blocks after the first
 * complete the codes that are stored already. Measures and outputs follow the last block. fp8 has no codes: if it is
 * the only candidate, rows are read once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/system/memory.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/lloyd.h" /* XFP_MAX_K */
#include "schemas/layout/bundle_layout.h"
#include "stages/quantize/feedback_rows.h"
#include "stages/quantize/library_fit.h"
#include "stages/quantize/library_train.h"
#include "stages/quantize/threads.h"

#define WEIGHT_WORK 4 /* see fit_rows.c */

struct feedback_fit {
	struct xfp_fitting *fitting;
	struct xfp_library_fit *fit;
	const struct xfp_marks *marks;
	struct xfp_artifact *artifact;
	uint64_t rows_before, marks_before; /* in earlier matrices of the unit */

	/* The size of groups and the block of columns that rows are encoded for. */
	uint32_t grouping;
	bool complete, last; /* the last block of columns; and the last time that rows are read */
	struct xfp_feedback feedback;

	/* The rows in memory: rows [first, first + count) of the matrix. */
	uint64_t first, count;
	struct xfp_feedback_rows rows;
	float *w; /* [max][rows.stride] */
	double *norm;

	/* Their codes for a candidate. */
	uint32_t candidate;
	size_t groups, stride, packed_bytes; /* of a row; stride: of its indices */
	uint8_t *byte, *index, *packed;
	uint16_t *residual;
	uint16_t **own_residual; /* [threads] of a row, by column */
};

/* ---- codes ------------------------------------------------------------------------------------- */

static uint64_t first_mark(const struct feedback_fit *fb, uint64_t row)
{
	return fb->marks->first[row] - fb->marks->first[fb->first];
}

static void store_row(void *own, const struct xfp_feedback_batch *batch, size_t at, uint64_t r)
{
	struct feedback_fit *fb = own;
	const struct xfp_feedback *f = batch->feedback;
	const uint64_t row = fb->first + r, end = fb->marks->first[row + 1];
	uint16_t *residual = fb->own_residual[xfp_thread()], *to = fb->residual + first_mark(fb, row);

	xfp_feedback_store(batch, at, fb->fit->libraries[fb->candidate].compact,
			   fb->byte + r * fb->groups + f->first / f->group, fb->index + r * fb->stride + f->first,
			   residual);
	for (uint64_t i = fb->marks->first[row]; i < end; i++, to++)
		if (fb->marks->column[i] >= f->first && fb->marks->column[i] - f->first < f->cols)
			*to = residual[fb->marks->column[i] - f->first];
}

/* Read what earlier blocks have stored. */
static enum xfp_status read_codes(struct feedback_fit *fb, const struct xfp_candidate *candidate, struct xfp_error *err)
{
	const struct xfp_fit_codes codes = { fb->byte, fb->rows.byte, fb->packed };
	const uint64_t cols = fb->fitting->known.cols;
	enum xfp_status status =
		xfp_fit_read_codes(fb->artifact, candidate, cols, fb->rows_before + fb->first, fb->count, &codes, err);

	for (uint64_t r = 0; !status && r < fb->count; r++)
		xfp_lane_index_unpack(candidate->k, fb->packed + r * fb->packed_bytes, cols,
				      fb->index + r * fb->stride);
	return status ? status
		      : xfp_fit_read_residuals(fb->artifact, candidate, fb->marks_before + fb->marks->first[fb->first],
					       first_mark(fb, fb->first + fb->count), fb->residual, err);
}

static enum xfp_status write_codes(struct feedback_fit *fb, const struct xfp_candidate *candidate,
				   struct xfp_error *err)
{
	const struct xfp_fit_codes codes = { fb->byte, fb->rows.byte, fb->packed };
	const uint64_t cols = fb->fitting->known.cols;
	enum xfp_status status;

#pragma omp parallel for
	for (uint64_t r = 0; r < fb->count; r++)
		xfp_lane_index_pack(candidate->k, fb->index + r * fb->stride, cols, fb->packed + r * fb->packed_bytes);
	status =
		xfp_fit_write_codes(fb->artifact, candidate, cols, fb->rows_before + fb->first, fb->count, &codes, err);
	return status ? status
		      : xfp_fit_write_residuals(fb->artifact, candidate, fb->marks_before + fb->marks->first[fb->first],
						first_mark(fb, fb->first + fb->count), fb->residual, err);
}

/* ---- measuring --------------------------------------------------------------------------------- */

/* Decode row r, and measure its weights. Returns the row in the unit of w. */
static const float *measure_row(struct feedback_fit *fb, int thread, uint64_t r)
{
	const struct xfp_compact_library *library = &fb->fit->libraries[fb->candidate].compact->library;
	const uint64_t cols = fb->fitting->known.cols, row = fb->first + r;
	const uint64_t first = fb->marks->first[row], marks = fb->marks->first[row + 1] - first;
	const uint16_t *residual = fb->residual + first_mark(fb, row);
	float *value = fb->fit->buffers[thread].value;

	xfp_encoder()->compact->decode(library, fb->byte + r * fb->groups, fb->index + r * fb->stride,
				       xfp_compact_row(fb->rows.byte[r]), cols, value);
	memset(value + cols, 0, (xfp_padded(cols) - cols) * sizeof *value);
	for (uint64_t i = 0; i < marks; i++)
		value[fb->marks->column[first + i]] += xfp_half_to_float(residual[i]);
	fb->fitting->measure.row[fb->candidate][row] =
		xfp_library_measure(fb->fitting, fb->w + r * fb->rows.stride, fb->norm[r], value);
	return value;
}

static const float *decode_fp8(struct feedback_fit *fb, int thread, uint64_t r)
{
	float *value = fb->fit->buffers[thread].value;

	xfp_fp8_row(fb->w + r * fb->rows.stride, fb->fitting->known.cols, value);
	return value;
}

/* Measure all rows in memory for a candidate, sixteen at a time. */
static void measure(struct feedback_fit *fb, uint32_t candidate,
		    const float *(*decode)(struct feedback_fit *fb, int thread, uint64_t r))
{
	const double back = fb->fitting->unit.back > 0 ? fb->fitting->unit.back : 1;
	struct xfp_outputs *outputs = fb->fitting->outputs;

#pragma omp parallel for schedule(dynamic, 1)
	for (uint64_t first = 0; first < fb->count; first += XFP_LANES) {
		const unsigned count = fb->count - first < XFP_LANES ? (unsigned)(fb->count - first) : XFP_LANES;
		const int thread = xfp_thread();

		for (unsigned lane = 0; lane < count; lane++) {
			xfp_outputs_set_source(outputs, thread, lane, fb->w + (first + lane) * fb->rows.stride);
			xfp_outputs_set_candidate(outputs, thread, lane, decode(fb, thread, first + lane));
		}
		xfp_outputs_source(outputs, thread);
		xfp_outputs_candidate(outputs, thread, candidate, fb->first + first, count, back);
	}
}

/* ---- rows in memory ---------------------------------------------------------------------------- */

static enum xfp_status encode_rows(struct feedback_fit *fb, uint32_t i, struct xfp_error *err)
{
	const struct xfp_candidate *candidate = &fb->fitting->measure.candidates[i];
	const struct xfp_feedback_coder coder = { .feedback = &fb->feedback,
						  .book = fb->fit->libraries[i].compact,
						  .tried = XFP_COMPACT_TRIED,
						  .passes = XFP_FEEDBACK_PASSES,
						  .visit = store_row,
						  .own = fb };
	enum xfp_status status = XFP_OK;

	fb->candidate = i;
	fb->packed_bytes = xfp_index_row_bytes(fb->fitting->known.cols, candidate->k);
	if (fb->feedback.first)
		status = read_codes(fb, candidate, err);
	if (!status)
		status = xfp_feedback_rows_encode(&fb->rows, 0, fb->count, &coder, err);
	if (!status)
		status = write_codes(fb, candidate, err);
	if (!status && fb->complete)
		measure(fb, i, measure_row);
	xfp_watch_done(fb->fitting->training.watcher, fb->count * fb->feedback.cols * WEIGHT_WORK);
	return status;
}

/* Encode the rows in memory for all candidates with this grouping, and forget them. */
static enum xfp_status process(struct feedback_fit *fb, struct xfp_error *err)
{
	const struct xfp_measure *m = &fb->fitting->measure;
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && fb->count && i < fb->fit->count; i++)
		if (fb->fit->grouping_of[i] == fb->grouping)
			status = encode_rows(fb, i, err);
	if (!status && fb->last && m->count > m->fitted) {
		measure(fb, m->fitted, decode_fp8);
		xfp_watch_done(fb->fitting->training.watcher, fb->count * fb->fitting->known.cols * WEIGHT_WORK);
	}
	fb->first += fb->count;
	fb->count = 0;
	return status;
}

static void load_row(struct feedback_fit *fb, int thread, const struct xfp_rows *rows, uint64_t r)
{
	const struct xfp_fitting *fitting = fb->fitting;
	const uint64_t to = fb->count + r, row = rows->first + r, first = fb->marks->first[row];
	float *x = fb->fit->buffers[thread].x;
	struct xfp_row_start start =
		xfp_rows_scaled(rows, &fitting->scaling, r, fitting->unit.unit, fb->w + to * fb->rows.stride, x);

	fb->norm[to] = start.norm;
	xfp_feedback_rows_set(&fb->rows, to, x, fb->marks->column + first, fb->marks->first[row + 1] - first);
	if (fb->last && fitting->measure.count > fitting->measure.fitted)
		xfp_fit_fp8.row(fitting, fitting->own_fp8, thread, rows, fb->marks, r);
}

/* ---- blocks of columns ------------------------------------------------------------------------- */

static enum xfp_status walk(struct feedback_fit *fb, const struct xfp_matrix_source *source, const uint8_t digest[16],
			    struct xfp_error *err)
{
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open_again(source, digest, &rows, err);

	fb->first = fb->count = 0;
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		fb->fitting->measure.held = rows.first; /* where fp8 is measured */
#pragma omp parallel for schedule(dynamic, 4)
		for (uint64_t r = 0; r < rows.count; r++)
			load_row(fb, xfp_thread(), &rows, r);
		fb->count += rows.count;
		if (fb->count + rows.block > fb->rows.max)
			status = process(fb, err);
	}
	if (!status)
		status = process(fb, err);
	fb->fitting->measure.held = fb->first;
	xfp_rows_close(&rows);
	return status;
}

static enum xfp_status encode_block(struct feedback_fit *fb, uint32_t m, size_t block,
				    const struct xfp_matrix_source *source, struct xfp_error *err)
{
	const struct xfp_grouping *grouping = &fb->fit->groupings[fb->grouping];
	struct xfp_second_moments *moments = fb->fitting->training.moments;
	enum xfp_status status = xfp_second_moments_block(moments, grouping->group, block, &fb->feedback, err);

	fb->groups = grouping->groups;
	fb->stride = fb->groups * grouping->group;
	if (!status)
		status = xfp_second_moments_compute(moments, m, &fb->feedback, err);
	if (!status)
		status = walk(fb, source, fb->fitting->known.source[m], err);
	xfp_second_moments_release(&fb->feedback);
	return status;
}

/* As many rows as keep all threads busy, and a block more. */
static uint64_t most_rows(uint64_t rows, uint64_t cols, uint64_t block, int threads)
{
	const uint64_t wanted = xfp_feedback_rows_wanted(cols, threads);

	return (wanted < rows ? wanted : rows) + block;
}

/* Libraries are trained before rows are encoded. */
uint64_t xfp_fitting_feedback_bytes(const struct xfp_ledger_unit *unit, uint32_t candidates, uint64_t block,
				    uint64_t tokens, int threads)
{
	const uint64_t cols = unit->cols, rows = most_rows(unit->rows, cols, block, threads),
		       row = cols * sizeof(float);
	const uint64_t codes = cols + cols / 16 + xfp_index_row_bytes(cols, XFP_MAX_K);
	const uint64_t sample = XFP_SAMPLE_ROWS * xfp_feedback_rows_bytes(cols);
	uint64_t training, encoding = rows * (xfp_feedback_rows_bytes(cols) + row + codes);
	uint64_t bytes = xfp_second_moments_bytes(unit->experts, cols, tokens, threads, &training);

	training += sample;
	return bytes + (training > encoding ? training : encoding) + xfp_feedback_batches_bytes(cols, threads) +
	       xfp_outputs_bytes(candidates, unit->experts, unit->rows, cols, threads);
}

static enum xfp_status init(struct feedback_fit *fb, uint64_t block, struct xfp_error *err)
{
	const uint64_t cols = fb->fitting->known.cols, all = fb->fitting->known.rows;
	const int threads = fb->fitting->threads;
	const uint64_t max = most_rows(all, cols, block, threads);
	enum xfp_status status = xfp_feedback_rows_init(&fb->rows, max, cols, threads, err);
	uint64_t stride = fb->rows.stride, marks = 0;
	bool good;

	for (uint64_t r = 0; r < all; r++) {
		const uint64_t own = fb->marks->first[r + max < all ? r + max : all] - fb->marks->first[r];

		marks = own > marks ? own : marks;
	}
	fb->w = xfp_aligned_new(max * stride * sizeof *fb->w);
	fb->norm = malloc(max * sizeof *fb->norm);
	fb->byte = calloc(max, stride / 16);
	fb->index = xfp_aligned_new(max * stride + XFP_COMPACT_GROUP);
	fb->packed = malloc(max * xfp_index_row_bytes(cols, XFP_MAX_K));
	fb->residual = calloc(marks + 1, sizeof *fb->residual);
	fb->own_residual = calloc((size_t)threads, sizeof *fb->own_residual);
	good = fb->w && fb->norm && fb->byte && fb->index && fb->packed && fb->residual && fb->own_residual;
	for (int t = 0; good && t < threads; t++)
		good = (fb->own_residual[t] = malloc(stride * sizeof **fb->own_residual));
	return status ? status : good ? XFP_OK : xfp_no_memory(err);
}

static void destroy(struct feedback_fit *fb)
{
	for (int t = 0; fb->own_residual && t < fb->fitting->threads; t++)
		free(fb->own_residual[t]);
	free(fb->own_residual);
	xfp_feedback_rows_free(&fb->rows);
	free(fb->w);
	free(fb->norm);
	free(fb->byte);
	free(fb->index);
	free(fb->packed);
	free(fb->residual);
}

enum xfp_status xfp_fit_with_feedback(struct xfp_fitting *fitting, void *own, uint32_t m,
				      const struct xfp_matrix_source *source, const struct xfp_marks *marks,
				      struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct feedback_fit fb = { .fitting = fitting, .fit = own, .marks = marks, .artifact = artifact };
	struct xfp_second_moments *moments = fitting->training.moments;
	const struct xfp_outliers *known = &fitting->known;
	const size_t blocks = xfp_feedback_blocks(known->cols), reads = blocks * fb.fit->grouping_count;
	const uint64_t weights = known->rows * known->cols;
	enum xfp_status status = init(&fb, xfp_rows_block(source), err);

	if (!m && reads)
		xfp_watch_more(fitting->training.watcher, (reads - 1) * known->matrices * weights);
	fb.rows_before = m * known->rows;
	fb.marks_before = known->first[m];
	if (!status)
		status = xfp_outputs_matrix(fitting->outputs, moments->artifact, moments->inputs, &moments->of[m], err);
	if (!status && !reads) {
		fb.last = true;
		status = walk(&fb, source, known->source[m], err);
	}
	for (size_t block = 0; !status && block < blocks; block++) {
		for (fb.grouping = 0; !status && fb.grouping < fb.fit->grouping_count; fb.grouping++) {
			fb.complete = block + 1 == blocks;
			fb.last = fb.complete && fb.grouping + 1 == fb.fit->grouping_count;
			status = encode_block(&fb, m, block, source, err);
		}
	}
	if (!status)
		xfp_outputs_matrix_end(fitting->outputs);
	destroy(&fb);
	return status;
}
