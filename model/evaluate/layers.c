/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All sequences pass through a layer of the model, and of its source, before they pass through the next.
 */
#include "model/evaluate/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "model/evaluate/single.h"
#include "model/evaluate/state.h"

/* A batch of sequences: activations of the model, outputs of the model's layer for the source's activations, and
 * activations of the source. The first two are adjacent, so that the model's weights are read once for both. */
struct sequence_batch {
	size_t first; /* index of the first token */
	size_t sequences, tokens;
	size_t size; /* numbers in each of the three */
	float *evaluated, *alone, *source;
};

enum xfp_status xfp_check_finite(const struct xfp_evaluated *model, const float *x, size_t count, int64_t layer,
				 struct xfp_error *err)
{
	const char *path = xfp_weights_path(model->model.weights);

	while (count && isfinite(*x))
		count--, x++;
	if (!count)
		return XFP_OK;
	if (layer < 0)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: the word embedding is not finite; verify the weights", path);
	return xfp_fail(err, XFP_BAD_INPUT, "%s: activations after layer %u are not finite; verify the weights", path,
			(unsigned)layer);
}

void xfp_add_errors(const float *x, const float *source, size_t tokens, size_t width, double *sum)
{
	for (; tokens; tokens--, x += width, source += width) {
		double error = 0, norm = 0;

		for (size_t i = 0; i < width; i++) {
			double difference = (double)x[i] - source[i];

			error += difference * difference;
			norm += (double)source[i] * source[i];
		}
		*sum += norm > 0 ? error / norm : 0;
	}
}

static enum xfp_status embed(const struct xfp_evaluation *e, const struct xfp_evaluated *model,
			     const struct sequence_batch *batch, float *x, struct xfp_error *err)
{
	struct xfp_forward forward = xfp_forward_view(model->forward, batch->sequences);
	enum xfp_status status = xfp_forward_embed(&forward, e->tokens.ids + batch->first, x, err);

	return status ? status : xfp_check_finite(model, x, batch->size, -1, err);
}

static enum xfp_status layer_of_source(const struct xfp_evaluation *e, uint32_t layer,
				       const struct sequence_batch *batch, struct xfp_error *err)
{
	struct xfp_forward forward = xfp_forward_view(e->source.forward, batch->sequences);
	enum xfp_status status = xfp_stream_read(e->source.stream, batch->first, batch->tokens, batch->source, err);

	if (status)
		return status;
	memcpy(batch->alone, batch->source, batch->size * sizeof *batch->alone);
	if ((status = xfp_forward_layer(&forward, layer, batch->source, err)))
		return status;
	return xfp_check_finite(&e->source, batch->source, batch->size, layer, err);
}

static enum xfp_status layer_of_model(const struct xfp_evaluation *e, uint32_t layer,
				      const struct sequence_batch *batch, struct xfp_error *err)
{
	size_t copies = xfp_evaluation_has_source(e) ? 2 : 1;
	struct xfp_forward forward = xfp_forward_view(e->evaluated.forward, copies * batch->sequences);
	enum xfp_status status =
		xfp_stream_read(e->evaluated.stream, batch->first, batch->tokens, batch->evaluated, err);

	if (!status)
		status = e->request.single
				 ? xfp_single_layer(e, layer, copies * batch->sequences, batch->evaluated, err)
				 : xfp_forward_layer(&forward, layer, batch->evaluated, err);
	if (!status)
		status = xfp_check_finite(&e->evaluated, batch->evaluated, copies * batch->size, layer, err);
	return status;
}

/* Nothing is written before both are computed, so that all activations of a batch are after the layer, or all before
 * it. */
static enum xfp_status write_batch(struct xfp_evaluation *e, const struct sequence_batch *batch, struct xfp_error *err)
{
	enum xfp_status status;

	e->partly_written = true;
	status = xfp_stream_write(e->evaluated.stream, batch->first, batch->tokens, batch->evaluated, err);
	if (!status && xfp_evaluation_has_source(e))
		status = xfp_stream_write(e->source.stream, batch->first, batch->tokens, batch->source, err);
	return status;
}

/* Layer -1 is the word embedding. */
static enum xfp_status layer_of_batch(struct xfp_evaluation *e, int64_t layer, const struct sequence_batch *batch,
				      struct xfp_error *err)
{
	size_t width = e->evaluated.model.description->hidden;
	enum xfp_status status = XFP_OK;

	if (xfp_evaluation_has_source(e))
		status = layer < 0 ? embed(e, &e->source, batch, batch->source, err)
				   : layer_of_source(e, (uint32_t)layer, batch, err);
	if (!status)
		status = layer < 0 ? embed(e, &e->evaluated, batch, batch->evaluated, err)
				   : layer_of_model(e, (uint32_t)layer, batch, err);
	if (status)
		return status;
	if (xfp_evaluation_has_source(e))
		xfp_add_errors(batch->evaluated, batch->source, batch->tokens, width,
			       layer < 0 ? &e->embedding_error : &e->layers[layer].stream);
	if (xfp_evaluation_has_source(e) && layer >= 0)
		xfp_add_errors(batch->alone, batch->source, batch->tokens, width, &e->layers[layer].alone);
	return write_batch(e, batch, err);
}

static enum xfp_status losses_of_batch(struct xfp_evaluation *e, const struct sequence_batch *batch,
				       struct xfp_token_loss *losses, struct xfp_error *err)
{
	struct xfp_forward forward = xfp_forward_view(e->evaluated.forward, batch->sequences), of_source;
	struct xfp_last_activations evaluated = { &forward, batch->evaluated, e->request.single },
				    source = { &of_source, batch->source, false };
	enum xfp_status status =
		xfp_stream_read(e->evaluated.stream, batch->first, batch->tokens, batch->evaluated, err);

	if (!status && xfp_evaluation_has_source(e)) {
		of_source = xfp_forward_view(e->source.forward, batch->sequences);
		status = xfp_stream_read(e->source.stream, batch->first, batch->tokens, batch->source, err);
	}
	if (!status)
		status = xfp_token_losses(&evaluated, xfp_evaluation_has_source(e) ? &source : NULL,
					  e->tokens.ids + batch->first, e->batching.logits_bytes, losses + batch->first,
					  err);
	return status;
}

/* One layer, or after the last one the output head, for all sequences, batch by batch. */
static enum xfp_status all_batches(struct xfp_evaluation *e, int64_t layer, float *x, struct xfp_token_loss *losses,
				   struct xfp_error *err)
{
	const struct xfp_description *d = e->evaluated.model.description;
	enum xfp_status status = XFP_OK;

	for (size_t first = 0; !status && first < e->tokens.sequences; first += e->batching.sequences) {
		struct sequence_batch batch = { .first = first * e->tokens.length, .evaluated = x };

		batch.sequences = e->tokens.sequences - first;
		if (batch.sequences > e->batching.sequences)
			batch.sequences = e->batching.sequences;
		batch.tokens = batch.sequences * e->tokens.length;
		batch.size = batch.tokens * d->hidden;
		batch.alone = batch.evaluated + batch.size;
		batch.source = batch.alone + batch.size;
		status = layer < d->layers ? layer_of_batch(e, layer, &batch, err)
					   : losses_of_batch(e, &batch, losses, err);
	}
	return status;
}

static void begin_layer(struct xfp_evaluation *e, uint32_t layer)
{
	struct xfp_evaluation_progress *p = &e->progress;
	double now = xfp_now();

	if (layer > p->resumed)
		p->layer_read = p->read;
	p->layer_seconds = now - p->layer_started;
	p->layer_started = now;
	p->done = layer;
	p->read = 0;
	e->callbacks.progress(e->callbacks.context, e);
}

enum xfp_status xfp_evaluate_layers(struct xfp_evaluation *e, struct xfp_token_loss *losses, struct xfp_error *err)
{
	const struct xfp_description *d = e->evaluated.model.description;
	size_t copies = xfp_evaluation_has_source(e) ? 3 : 1;
	float *x = malloc(copies * e->batching.sequences * e->tokens.length * d->hidden * sizeof *x);
	enum xfp_status status = x ? XFP_OK : xfp_no_memory(err);

	if (!status && !e->state.layers)
		status = all_batches(e, -1, x, losses, err);
	for (uint32_t layer = e->state.layers; !status && layer < d->layers; layer++) {
		begin_layer(e, layer);
		e->partly_written = false;
		status = all_batches(e, layer, x, losses, err);
		if (!status) {
			e->partly_written = false;
			xfp_evaluation_state_save(e, layer + 1, false);
		} else if (e->stopped && !e->partly_written) {
			xfp_evaluation_state_save(e, layer, true);
		}
	}
	begin_layer(e, d->layers);
	if (!status) {
		status = all_batches(e, d->layers, x, losses, err);
		if (e->stopped)
			xfp_evaluation_state_save(e, d->layers, true);
	}
	free(x);
	return status;
}
