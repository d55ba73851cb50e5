/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/calibrate/pace.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "model/forward/numbers.h"
#include "model/forward/product.h"
#include "model/forward/tensors.h"
#include "stages/calibrate/capture.h"
#include "stages/calibrate/layer.h"

#define ROWS XFP_PRODUCT_ROWS
#define VECTORS XFP_PRODUCT_VECTORS
#define MAX_COLS 4096u
#define MIN_SECONDS .02

#define HEAD 128
#define SEEN 256

#define SECONDS_PER_VALUE 6e-9  /* to prepare an element of a vector for a product */
#define ACTIVATION 3            /* the time of an activation, in elements prepared */
#define SECONDS_PER_WEIGHT 4e-9 /* to read it as f32, which one thread does */
#define SECONDS_PER_BYTE 2e-9   /* to write inputs */
#define DIGESTS 2               /* of weights, at two bytes each */
#define SECONDS_PER_DIGEST 1e-9

/* Measure a product of a row's element and a vector's. */
static enum xfp_status measure_product(size_t cols, double *seconds, struct xfp_error *err)
{
	float *w = calloc(ROWS * cols, sizeof *w), *panels = calloc(xfp_panels_size(VECTORS, cols), sizeof *panels);
	float *y = calloc(ROWS * VECTORS, sizeof *y);
	double *scratch = calloc(XFP_PRODUCT_SCRATCH, sizeof *scratch), began = xfp_thread_seconds(), products = 0;
	bool good = w && panels && y && scratch;

	while (good && (*seconds = xfp_thread_seconds() - began) < MIN_SECONDS) {
		xfp_product_rows(w, ROWS, cols, panels, VECTORS, scratch, y, ROWS);
		products += (double)ROWS * VECTORS * (double)cols;
	}
	*seconds /= products;
	free(w);
	free(panels);
	free(y);
	free(scratch);
	return good ? XFP_OK : xfp_no_memory(err);
}

/* Measure a product of attention, as attention.c computes it: half are of scores, half of values. */
static double measure_mixing(void)
{
	static float keys[HEAD][SEEN], values[SEEN][HEAD];
	double score[SEEN], sum[HEAD] = { 0 }, began = xfp_thread_seconds(), products = 0, seconds;
	volatile double result = 0; /* keeps the compiler from leaving it all out */

	while ((seconds = xfp_thread_seconds() - began) < MIN_SECONDS) {
		memset(score, 0, sizeof score);
		for (size_t i = 0; i < HEAD; i++)
			for (size_t j = 0; j < SEEN; j++)
				score[j] += (double)values[1][i] * keys[i][j];
		for (size_t j = 0; j < SEEN; j++)
			score[j] = xfp_exp(score[j]);
		for (size_t j = 0; j < SEEN; j++)
			for (size_t i = 0; i < HEAD; i++)
				sum[i] += score[j] * values[j][i];
		result = sum[0];
		products += 2.0 * HEAD * SEEN;
	}
	(void)result;
	return seconds / products;
}

/* The work of a token in a layer, and the layer's weights. */
struct work {
	double products, weights;
	double values; /* elements of vectors that are multiplied */
	double mixing; /* products of attention scores and values, or with the state of linear attention */
};

struct pace {
	double product, mixing; /* seconds of one */
};

/* Products of attention scores and values, or with the state of linear attention. */
static double mixing_work(const struct xfp_description *d, const struct xfp_layer *layer, uint64_t length)
{
	/* The positions that a token sees, on average. */
	const double all = (double)length / (d->encoder ? 1 : 2),
		     seen = layer->window && layer->window < all ? layer->window : all;

	if (layer->delta)
		return 3.0 * (double)d->delta.value_heads * (double)d->delta.value_dim * (double)d->delta.key_dim;
	return (double)d->heads * (d->head_dim + (double)d->value_dim) * seen;
}

static struct work layer_work(const struct xfp_description *d, uint32_t number, uint64_t length)
{
	const struct xfp_layer *layer = &d->layer[number];
	const struct xfp_layer_shape shape = xfp_layer_shape(d, number);
	const double experts = layer->experts ? d->experts_per_token : 0;
	struct work work = { .products = (double)xfp_layer_products(d, &shape),
			     .weights = (double)xfp_layer_reads(d, &shape, UINT64_MAX),
			     .mixing = mixing_work(d, layer, length) };

	for (unsigned i = 0; i < XFP_PARTS; i++)
		work.values += (i == XFP_PART_EXPERT ? experts : 1) * (double)shape.part[i].inputs;
	work.values += ACTIVATION *
		       (layer->experts ? experts * d->expert_intermediate + d->shared_intermediate : d->intermediate);
	return work;
}

/* Seconds of a token in a layer, besides reading weights. */
static double token_seconds(const struct work *work, const struct pace *pace)
{
	return work->products * pace->product + work->mixing * pace->mixing + work->values * SECONDS_PER_VALUE;
}

/* Each step reads all weights that one of the windows needs. */
static double generating_seconds(const struct xfp_description *d, uint64_t windows, uint64_t length,
				 const struct pace *pace)
{
	const double head = (double)d->vocabulary * d->hidden;
	double token = head * pace->product, weights = head;

	for (uint32_t i = 0; i < d->layers; i++) {
		struct work work = layer_work(d, i, length);

		token += token_seconds(&work, pace);
		weights += work.weights;
	}
	return (double)windows * (double)length * token + (double)length * weights * SECONDS_PER_WEIGHT;
}

enum xfp_status xfp_calibrate_seconds(const struct xfp_model *model, uint64_t windows, uint64_t length, double *seconds,
				      double *generating, struct xfp_error *err)
{
	const struct xfp_description *d = model->description;
	const double tokens = (double)windows * (double)length;
	struct pace pace = { .mixing = measure_mixing() };
	enum xfp_status status = measure_product(d->hidden < MAX_COLS ? d->hidden : MAX_COLS, &pace.product, err);

	for (uint32_t i = 0; i < d->layers; i++) {
		const struct work work = layer_work(d, i, length);
		const double bytes = (double)xfp_capture_bytes(d, i) + (4 + sizeof(float)) * (double)d->hidden;
		const double portions = (double)xfp_calibrate_portions(d, i, windows, length);

		seconds[i] = tokens * (token_seconds(&work, &pace) + bytes * SECONDS_PER_BYTE) +
			     work.weights * (portions * SECONDS_PER_WEIGHT + 2 * DIGESTS * SECONDS_PER_DIGEST);
	}
	seconds[d->layers] = tokens * (double)d->hidden * 2 * SECONDS_PER_BYTE;
	*generating = generating_seconds(d, windows, length, &pace);
	return status;
}
