/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_fp8.c - measure rows stored as 8-bit floats with one scale each; nothing is fitted.
 *
 * fp8 is the last candidate of a fit, and uses the original weights: not balanced, outliers included.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/encode/cosine.h"
#include "kernels/encode/encode.h"
#include "stages/quantize/fit_rows.h"

#define LARGEST 448.0f          /* the largest number of e4m3 */
#define MIN_NORMAL 0x1p-6f      /* below it numbers are spaced equally by 2^-9, */
#define TO_2_9 (1.5f * 0x1p14f) /* to which f32 rounds when this is added and subtracted */
#define DROPPED 20              /* mantissa bits of f32 that e4m3 lacks */

struct fp8_fit {
	struct fp8_buffers *buffers; /* one per thread */
	int threads;
};

/* One thread's buffers for a row. */
struct fp8_buffers {
	float *w, *decoded;
};

/* The nearest e4m3 number, ties to even: equal to xfp_encode_fp8 followed by xfp_decode_fp8, but without branches, so
 * that compilers can vectorize it. */
static inline float nearest(float v)
{
	uint32_t bits, rounded;
	float normal, small, magnitude;

	v = v > LARGEST ? LARGEST : v;
	v = v < -LARGEST ? -LARGEST : v;
	memcpy(&bits, &v, sizeof bits);
	rounded = (bits + (1u << (DROPPED - 1)) - 1 + (bits >> DROPPED & 1)) & ~((1u << DROPPED) - 1);
	memcpy(&normal, &rounded, sizeof normal);
	small = (v + TO_2_9) - TO_2_9;
	magnitude = v < 0 ? -v : v;
	return magnitude < MIN_NORMAL ? small : normal;
}

float xfp_fp8_row(const float *w, size_t cols, float *decoded)
{
	float scale = xfp_encoder()->rows->largest(w, cols) / LARGEST;

	if (scale == 0) {
		memset(decoded, 0, cols * sizeof *decoded);
		return scale;
	}
#pragma omp simd
	for (size_t c = 0; c < cols; c++)
		decoded[c] = nearest(w[c] / scale) * scale;
	return scale;
}

static void fit_row(const struct xfp_fitting *fitting, void *own, int thread, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, uint64_t r)
{
	const struct fp8_buffers *buffers = &((const struct fp8_fit *)own)->buffers[thread];
	const struct xfp_measure *measure = &fitting->measure;
	struct xfp_row_error *result = &measure->row[measure->fitted][measure->held + r];
	float scale;

	(void)marks;
	xfp_rows_load(rows, r, buffers->w);
	scale = xfp_fp8_row(buffers->w, rows->cols, buffers->decoded);
	*result = xfp_row_compare(buffers->w, buffers->decoded, rows->cols);
	/* The weights are so small that their scale would be zero: the unit must not be stored as fp8. */
	if (scale == 0 && result->error > 0)
		result->error = INFINITY;
}

static enum xfp_status begin(struct xfp_fitting *fitting, struct xfp_artifact *artifact, void **own,
			     struct xfp_error *err)
{
	struct fp8_fit *fit = *own = calloc(1, sizeof *fit);
	uint64_t cols = fitting->known.cols;
	bool good;

	(void)artifact;
	if (!fit)
		return xfp_no_memory(err);
	fit->threads = fitting->threads;
	good = (fit->buffers = calloc((size_t)fit->threads, sizeof *fit->buffers)) != NULL;
	for (int i = 0; good && i < fit->threads; i++) {
		struct fp8_buffers *buffers = &fit->buffers[i];

		buffers->w = xfp_row_new(cols);
		buffers->decoded = xfp_row_new(cols);
		good = buffers->w && buffers->decoded;
	}
	return good ? XFP_OK : xfp_no_memory(err);
}

static void end(void *own)
{
	struct fp8_fit *fit = own;

	if (!fit)
		return;
	for (int i = 0; fit->buffers && i < fit->threads; i++) {
		free(fit->buffers[i].w);
		free(fit->buffers[i].decoded);
	}
	free(fit->buffers);
	free(fit);
}

const struct xfp_fit_methods xfp_fit_fp8 = { begin, fit_row, NULL, end };
