/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/feedback/outputs.h"

#include <float.h>
#include <stdlib.h>

#include "base/system/memory.h"
#include "kernels/feedback/feedback.h"

/* Sixteen rows of one thread: [cols][16] weights, [inputs][16] outputs. */
struct xfp_outputs_thread {
	float *source, *candidate;
	double *expected, *actual;
};

#define SUMS_BYTES (XFP_MAX_HELD_OUT * XFP_LANES * sizeof(double))

static size_t tile_bytes(uint64_t cols)
{
	return cols * XFP_LANES * sizeof(float);
}

uint64_t xfp_outputs_bytes(uint32_t candidates, uint32_t matrices, uint64_t rows, uint64_t cols, int threads)
{
	return xfp_feedback_panels_values(cols, XFP_MAX_HELD_OUT) * sizeof(double) +
	       (uint64_t)threads * 2 * (tile_bytes(cols) + SUMS_BYTES) +
	       candidates * rows * (sizeof(struct xfp_row_error) + matrices * sizeof(double));
}

enum xfp_status xfp_outputs_init(struct xfp_outputs *o, uint32_t candidates, uint32_t matrices, uint64_t rows,
				 uint64_t cols, int threads, struct xfp_error *err)
{
	bool good;

	*o = (struct xfp_outputs){ .count = candidates, .rows = rows, .cols = cols, .threads = threads };
	o->panels = xfp_aligned_new(xfp_feedback_panels_values(cols, XFP_MAX_HELD_OUT) * sizeof *o->panels);
	o->thread = calloc((size_t)threads, sizeof *o->thread);
	good = o->panels && o->thread;
	for (int t = 0; good && t < threads; t++) {
		struct xfp_outputs_thread *thread = &o->thread[t];

		thread->source = xfp_aligned_new(tile_bytes(cols));
		thread->candidate = xfp_aligned_new(tile_bytes(cols));
		thread->expected = xfp_aligned_new(SUMS_BYTES);
		thread->actual = xfp_aligned_new(SUMS_BYTES);
		good = thread->source && thread->candidate && thread->expected && thread->actual;
	}
	for (uint32_t i = 0; good && i < candidates; i++) {
		o->row[i] = calloc(rows, sizeof *o->row[i]);
		o->cosine[i] = malloc(matrices * rows * sizeof *o->cosine[i]);
		good = o->row[i] && o->cosine[i];
	}
	return good ? XFP_OK : xfp_no_memory(err);
}

void xfp_outputs_free(struct xfp_outputs *o)
{
	for (uint32_t i = 0; i < o->count; i++) {
		free(o->row[i]);
		free(o->cosine[i]);
	}
	for (int t = 0; o->thread && t < o->threads; t++) {
		free(o->thread[t].source);
		free(o->thread[t].candidate);
		free(o->thread[t].expected);
		free(o->thread[t].actual);
	}
	free(o->thread);
	free(o->panels);
	*o = (struct xfp_outputs){ 0 };
}

enum xfp_status xfp_outputs_matrix(struct xfp_outputs *o, const struct xfp_artifact *artifact,
				   const struct xfp_inputs *inputs, const struct xfp_input_rows *of,
				   struct xfp_error *err)
{
	struct xfp_input_rows rows = *of;
	uint64_t count = xfp_inputs_list(inputs, &rows, true, NULL), *row;
	enum xfp_status status;
	uint16_t *x;

	if (count < XFP_MIN_HELD_OUT) {
		rows.expert = XFP_NO_EXPERT;
		count = xfp_inputs_list(inputs, &rows, true, NULL);
	}
	o->inputs = count < XFP_MAX_HELD_OUT ? count : XFP_MAX_HELD_OUT;
	row = malloc((count + 1) * sizeof *row);
	x = malloc((o->inputs + 1) * o->cols * sizeof *x);
	if (row && x) {
		xfp_inputs_list(inputs, &rows, true, row);
		for (uint64_t i = 0; i < o->inputs; i++)
			row[i] = row[i * count / o->inputs];
		status = xfp_inputs_values(artifact, inputs, rows.input, row, o->inputs, x, err);
	} else {
		status = xfp_no_memory(err);
	}
	if (!status)
		xfp_feedback_panels_load(x, o->inputs, o->cols, o->panels);
	free(row);
	free(x);
	return status;
}

static void set(const struct xfp_outputs *o, float *tile, unsigned lane, const float *w)
{
	for (uint64_t c = 0; c < o->cols; c++)
		tile[c * XFP_LANES + lane] = w[c];
}

void xfp_outputs_set_source(struct xfp_outputs *o, int thread, unsigned lane, const float *w)
{
	set(o, o->thread[thread].source, lane, w);
}

void xfp_outputs_set_candidate(struct xfp_outputs *o, int thread, unsigned lane, const float *w)
{
	set(o, o->thread[thread].candidate, lane, w);
}

void xfp_outputs_source(struct xfp_outputs *o, int thread)
{
	xfp_feedback_outputs(o->panels, o->inputs, o->thread[thread].source, o->cols, o->thread[thread].expected);
}

void xfp_outputs_candidate(struct xfp_outputs *o, int thread, uint32_t candidate, uint64_t first, unsigned count,
			   double back)
{
	const struct xfp_outputs_thread *own = &o->thread[thread];

	xfp_feedback_outputs(o->panels, o->inputs, own->candidate, o->cols, own->actual);
	for (unsigned lane = 0; lane < count; lane++) {
		struct xfp_row_sums sums = { 0 };
		double norm = 0;

		for (size_t i = lane; i < o->inputs * XFP_LANES; i += XFP_LANES) {
			const double y = own->expected[i], z = own->actual[i];

			norm += y * y;
			sums.error += (y - z) * (y - z);
			sums.square += z * z;
		}
		sums.error *= back;
		sums.square *= back;
		o->row[candidate][first + lane] = xfp_row_result(norm * back, sums);
	}
}

void xfp_outputs_matrix_end(struct xfp_outputs *o)
{
	for (uint32_t i = 0; i < o->count; i++) {
		for (uint64_t r = 0; r < o->rows; r++) {
			const struct xfp_row_error *row = &o->row[i][r];

			o->cosine[i][o->done + r] = row->cosine;
			o->error[i] += row->error;
			o->norm += i ? 0 : row->norm;
		}
	}
	o->done += o->rows;
}

void xfp_outputs_end(const struct xfp_outputs *o, struct xfp_output_measure result[XFP_MAX_CANDIDATES])
{
	for (uint32_t i = 0; i < o->count; i++) {
		struct xfp_output_measure *out = &result[i];

		out->error = o->norm > 0 ? o->error[i] / o->norm : 0;
		xfp_cosine_summary(o->cosine[i], o->done, &out->median, &out->p5);
		/* Some row decodes to infinity. */
		if (!(out->error <= DBL_MAX))
			*out = (struct xfp_output_measure){ -1, -1, 1 };
	}
}
