/* SPDX-License-Identifier: Apache-2.0 */
/* A codebook for each row: v2, see lloyd_fit.c. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "kernels/encode/assign.h"
#include "kernels/encode/cosine.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/lloyd.h"
#include "kernels/encode/optimal.h"
#include "stages/quantize/fit_rows.h"

struct codebook_fit {
	unsigned k[XFP_MAX_K + 1]; /* k of each candidate */
	bool optimal;
	int start;
	unsigned rounds;
	struct codebook_buffers *buffers; /* one per thread */
	int threads;
};

/* One thread's buffers for a row, all padded. */
struct codebook_buffers {
	struct xfp_lloyd_row *lloyd;
	struct xfp_optimal_buffers *optimal; /* used for --fit optimal */
	float *w, *x, *value;
	float *marked_w, *marked_x; /* the outliers' values, in their order */
};

static void buffers_free(struct codebook_buffers *buffers)
{
	free(buffers->lloyd);
	free(buffers->optimal);
	free(buffers->w);
	free(buffers->x);
	free(buffers->value);
	free(buffers->marked_w);
	free(buffers->marked_x);
}

static bool buffers_init(struct codebook_buffers *buffers, uint64_t cols, bool optimal)
{
	if (optimal && !(buffers->optimal = malloc(sizeof *buffers->optimal)))
		return false;
	buffers->lloyd = aligned_alloc(64, xfp_align(sizeof *buffers->lloyd, 64));
	buffers->w = xfp_row_new(cols);
	buffers->x = xfp_row_new(cols);
	buffers->value = xfp_row_new(cols);
	buffers->marked_w = xfp_row_new(cols);
	buffers->marked_x = xfp_row_new(cols);
	if (!buffers->lloyd || !buffers->w || !buffers->x || !buffers->value || !buffers->marked_w ||
	    !buffers->marked_x)
		return false;
	xfp_lloyd_init(buffers->lloyd);
	return true;
}

/* The input of the fit for one row. */
struct codebook_row {
	const uint32_t *column; /* columns of its outliers */
	uint64_t outliers;
	double norm;
};

/* Outliers are zeros in w and x until they are measured separately. */
static void set_outliers_aside(const struct codebook_row *row, struct codebook_buffers *buffers)
{
	for (uint64_t i = 0; i < row->outliers; i++) {
		uint32_t c = row->column[i];

		buffers->marked_w[i] = buffers->w[c];
		buffers->marked_x[i] = buffers->x[c];
		buffers->w[c] = buffers->x[c] = 0;
	}
}

/* Measure in units of 2^-s, so that undoing the exponent does not round. */
static struct xfp_row_error measure(const struct xfp_fitting *fitting, const struct codebook_row *row,
				    struct codebook_buffers *buffers, const struct xfp_quantizer *quantizer)
{
	struct xfp_row_sums sums =
		xfp_quantized_sums(quantizer, buffers->x, fitting->down, buffers->w, fitting->known.cols);
	float nothing = xfp_nearest(quantizer, 0);

	for (uint64_t i = 0; i < row->outliers; i++) {
		float x = buffers->marked_x[i], value = xfp_nearest(quantizer, x), d;
		float down = fitting->down[row->column[i]], none = nothing * down;

		value = (value + xfp_half_to_float(xfp_residual(x, value))) * down;
		d = buffers->marked_w[i] - value;
		sums.error += (double)d * d - (double)none * none;
		sums.square += (double)value * value - (double)none * none;
	}
	/* Clamp the rounding error of subtracting the zeros' share. */
	sums.error = sums.error < 0 ? 0 : sums.error * fitting->unit.back;
	sums.square = sums.square < 0 ? 0 : sums.square * fitting->unit.back;
	return xfp_row_result(row->norm, sums);
}

/* measure() if undoing the exponent may round: compare the original weights. */
static struct xfp_row_error measure_wide(const struct xfp_fitting *fitting, const struct codebook_row *row,
					 struct codebook_buffers *buffers, const struct xfp_quantizer *quantizer)
{
	uint64_t cols = fitting->known.cols;

	xfp_assign(quantizer, buffers->x, cols, buffers->value);
	for (uint64_t i = 0; i < row->outliers; i++) {
		float x = buffers->marked_x[i], value = xfp_nearest(quantizer, x);

		buffers->w[row->column[i]] = buffers->marked_w[i];
		buffers->value[row->column[i]] = value + xfp_half_to_float(xfp_residual(x, value));
	}
	xfp_unscale_row(buffers->value, fitting->down, fitting->exponent, cols, buffers->value);
	return xfp_row_compare(buffers->w, buffers->value, cols);
}

/* Fit and measure every candidate of row r of a block. */
static void fit_row(const struct xfp_fitting *fitting, void *own, int thread, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, uint64_t r)
{
	const struct codebook_fit *fit = own;
	struct codebook_buffers *buffers = &fit->buffers[thread];
	const struct xfp_measure *results = &fitting->measure;
	uint64_t cols = fitting->known.cols, number = rows->first + r, at = results->held + r;
	struct codebook_row row = { .column = marks->column + marks->first[number],
				    .outliers = marks->first[number + 1] - marks->first[number] };
	struct xfp_row_start start =
		xfp_rows_scaled(rows, &fitting->scaling, r, fitting->unit.unit, buffers->w, buffers->x);
	uint16_t *codebook[XFP_MAX_K + 1];

	row.norm = start.norm;
	set_outliers_aside(&row, buffers);
	xfp_lloyd_load(buffers->lloyd, buffers->x,
		       row.outliers ? xfp_encoder()->rows->largest(buffers->x, cols) : start.largest, row.outliers,
		       cols);
	for (uint32_t i = 0; i < results->fitted; i++)
		codebook[i] = results->codebook[i] + (at << fit->k[i]);
	if (fit->optimal)
		xfp_optimal_fit(buffers->lloyd, fit->k, results->fitted, buffers->optimal, codebook);
	else
		xfp_lloyd_fit(buffers->lloyd, fit->k, results->fitted, fit->start, fit->rounds, codebook);
	for (uint32_t i = 0; i < results->fitted; i++) {
		struct xfp_quantizer quantizer;

		xfp_quantizer_init(&quantizer, fit->k[i], codebook[i]);
		results->row[i][at] = fitting->unit.back > 0 ? measure(fitting, &row, buffers, &quantizer)
							     : measure_wide(fitting, &row, buffers, &quantizer);
	}
}

static enum xfp_status begin(struct xfp_fitting *fitting, struct xfp_artifact *artifact, void **own,
			     struct xfp_error *err)
{
	struct codebook_fit *fit = *own = calloc(1, sizeof *fit);
	bool good;

	(void)artifact;
	if (!fit)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < fitting->measure.fitted; i++)
		fit->k[i] = fitting->measure.candidates[i].k;
	fit->optimal = fitting->parameters->fit == XFP_FIT_OPTIMAL;
	fit->start = (int)fitting->parameters->start;
	fit->rounds = fitting->parameters->lloyd_iterations;
	fit->threads = fitting->threads;
	good = (fit->buffers = calloc((size_t)fit->threads, sizeof *fit->buffers)) != NULL;
	for (int i = 0; good && i < fit->threads; i++)
		good = buffers_init(&fit->buffers[i], fitting->known.cols, fit->optimal);
	return good ? XFP_OK : xfp_no_memory(err);
}

static void end(void *own)
{
	struct codebook_fit *fit = own;

	for (int i = 0; fit && fit->buffers && i < fit->threads; i++)
		buffers_free(&fit->buffers[i]);
	if (fit)
		free(fit->buffers);
	free(fit);
}

const struct xfp_fit_methods xfp_fit_codebooks = { begin, fit_row, NULL, end };
