/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/embeddings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/system/file.h"
#include "base/text/size.h"
#include "model/batching.h"
#include "model/evaluate/layers.h"
#include "model/forward/memory.h"
#include "model/npy.h"
#include "runtime/team.h"

#define MAX_TOKENS 32768             /* of a batch: more are hardly faster */
#define RESERVE ((uint64_t)16 << 20) /* pages of libraries and of a bundle, and short-lived allocations */

/* Texts that pass through the models together: activations of the model, outputs of the model's layer for the source's
 * activations, and activations of the source. The first two are adjacent, so that the model's weights are read once for
 * both. */
struct text_batch {
	size_t first, texts;
	size_t token, tokens;
	float *evaluated, *alone, *source;
	struct xfp_segment *segments; /* of two copies */
};

static size_t copies_of(const struct xfp_evaluation *e)
{
	return xfp_evaluation_has_source(e) ? 2 : 1;
}

static size_t hidden_of(const struct xfp_evaluation *e)
{
	return e->evaluated.model.description->hidden;
}

/* ---- memory ------------------------------------------------------------------------------------- */

/* Memory of a batch of that many tokens. */
static uint64_t needed(void *context, uint64_t tokens)
{
	const struct xfp_evaluation *e = context;
	uint64_t copies = copies_of(e), vectors = copies == 2 ? 3 : 1;
	const struct xfp_forward_batch batch = { .arithmetic = e->request.fast ? XFP_FAST : XFP_REPRODUCIBLE,
						 .positions = e->tokens.length,
						 .tokens = copies * tokens,
						 .threads = xfp_team_threads(e->team) };

	return xfp_add_sat(xfp_mul_sat(vectors * hidden_of(e) * sizeof(float), tokens),
			   xfp_forward_bytes(e->evaluated.model.description, &batch));
}

/* The largest number of tokens of a batch. */
static enum xfp_status find_tokens(struct xfp_evaluation *e, size_t *tokens, struct xfp_error *err)
{
	uint64_t each = hidden_of(e) * sizeof(float) + sizeof(double) + 2 * sizeof(struct xfp_segment);
	uint64_t always = xfp_add_sat(xfp_resident_bytes() + RESERVE, xfp_mul_sat(copies_of(e) * each, e->texts.count));
	uint64_t memory = e->request.memory ? e->request.memory : xfp_default_memory();
	uint64_t least = xfp_add_sat(always, needed(e, e->tokens.length)), all = e->texts.first[e->texts.count];
	char given[32], wanted[32];

	if (e->request.memory && least > memory)
		return xfp_fail(
			err, XFP_FAILED,
			"--memory %s: a text of %zu tokens, some rows of each matrix and all embeddings need %s; "
			"allow that much, or use fewer or shorter texts",
			xfp_size_text(memory, e->request.memory_binary, given), e->tokens.length,
			xfp_size_text_rounded_up(least, e->request.memory_binary, wanted));
	all = all < MAX_TOKENS ? all : MAX_TOKENS;
	*tokens = xfp_largest_batch(all, memory > always ? memory - always : 0, needed, e);
	*tokens = *tokens > e->tokens.length ? *tokens : e->tokens.length;
	return XFP_OK;
}

/* ---- a batch ------------------------------------------------------------------------------------ */

/* Begin with the texts of the batch, once or twice. */
static enum xfp_status begin(const struct xfp_evaluation *e, struct xfp_evaluated *model,
			     const struct text_batch *batch, size_t copies, struct xfp_error *err)
{
	for (size_t i = 0; i < copies * batch->texts; i++) {
		size_t text = batch->first + i % batch->texts;

		batch->segments[i] =
			(struct xfp_segment){ .sequence = i, .count = e->texts.first[text + 1] - e->texts.first[text] };
	}
	return xfp_forward_begin(model->forward, batch->segments, copies * batch->texts, err);
}

static enum xfp_status embed(const struct xfp_evaluation *e, struct xfp_evaluated *model,
			     const struct text_batch *batch, float *x, struct xfp_error *err)
{
	enum xfp_status status = begin(e, model, batch, 1, err);

	if (!status)
		status = xfp_forward_embed(model->forward, e->tokens.ids + batch->token, x, err);
	return status ? status : xfp_check_finite(model, x, batch->tokens * hidden_of(e), -1, err);
}

static enum xfp_status layer_of(const struct xfp_evaluation *e, const struct xfp_evaluated *model, uint32_t layer,
				float *x, struct xfp_error *err)
{
	enum xfp_status status = xfp_forward_layer(model->forward, layer, x, err);

	return status ? status : xfp_check_finite(model, x, model->forward->tokens * hidden_of(e), layer, err);
}

/* One layer of both models, and its errors. */
static enum xfp_status compare_layer(struct xfp_evaluation *e, uint32_t layer, const struct text_batch *batch,
				     struct xfp_error *err)
{
	size_t width = hidden_of(e);
	enum xfp_status status;

	memcpy(batch->alone, batch->source, batch->tokens * width * sizeof *batch->alone);
	if ((status = layer_of(e, &e->source, layer, batch->source, err)) ||
	    (status = layer_of(e, &e->evaluated, layer, batch->evaluated, err)))
		return status;
	xfp_add_errors(batch->evaluated, batch->source, batch->tokens, width, &e->layers[layer].stream);
	xfp_add_errors(batch->alone, batch->source, batch->tokens, width, &e->layers[layer].alone);
	return XFP_OK;
}

static void pool(const struct xfp_evaluation *e, const struct text_batch *batch, const float *x, float *embeddings)
{
	size_t width = hidden_of(e);

	for (size_t text = batch->first; text < batch->first + batch->texts; text++) {
		size_t tokens = e->texts.first[text + 1] - e->texts.first[text];

		xfp_pool(&e->embeddings.pooling, x, tokens, width, embeddings + text * width);
		x += tokens * width;
	}
}

static enum xfp_status run_batch(struct xfp_evaluation *e, const struct text_batch *batch, struct xfp_error *err)
{
	bool compared = xfp_evaluation_has_source(e);
	enum xfp_status status = embed(e, &e->evaluated, batch, batch->evaluated, err);

	if (!status && compared && !(status = embed(e, &e->source, batch, batch->source, err))) {
		xfp_add_errors(batch->evaluated, batch->source, batch->tokens, hidden_of(e), &e->embedding_error);
		status = begin(e, &e->evaluated, batch, 2, err);
	}
	for (uint32_t layer = 0; !status && layer < e->evaluated.model.description->layers; layer++)
		status = compared ? compare_layer(e, layer, batch, err)
				  : layer_of(e, &e->evaluated, layer, batch->evaluated, err);
	if (status)
		return status;
	pool(e, batch, batch->evaluated, e->embeddings.evaluated);
	if (compared)
		pool(e, batch, batch->source, e->embeddings.source);
	return XFP_OK;
}

/* As many texts as fit, at least one. */
static void next_batch(const struct xfp_evaluation *e, size_t tokens, struct text_batch *batch)
{
	const size_t *first = e->texts.first;

	batch->first += batch->texts;
	batch->texts = 1;
	while (batch->first + batch->texts < e->texts.count &&
	       first[batch->first + batch->texts + 1] - first[batch->first] <= tokens)
		batch->texts++;
	batch->token = first[batch->first];
	batch->tokens = first[batch->first + batch->texts] - batch->token;
	batch->alone = batch->evaluated + batch->tokens * hidden_of(e);
	batch->source = batch->alone + batch->tokens * hidden_of(e);
}

static enum xfp_status run_batches(struct xfp_evaluation *e, struct xfp_error *err)
{
	struct text_batch batch = { .texts = 0 };
	size_t tokens = 0, vectors = copies_of(e) == 2 ? 3 : 1;
	enum xfp_status status = find_tokens(e, &tokens, err);

	if (status)
		return status;
	batch.evaluated = malloc(vectors * tokens * hidden_of(e) * sizeof *batch.evaluated);
	batch.segments = malloc(2 * e->texts.count * sizeof *batch.segments);
	if (!batch.evaluated || !batch.segments)
		status = xfp_no_memory(err);
	while (!status && batch.first + batch.texts < e->texts.count) {
		next_batch(e, tokens, &batch);
		status = run_batch(e, &batch, err);
		e->progress.done = (uint32_t)(batch.first + batch.texts);
	}
	free(batch.evaluated);
	free(batch.segments);
	return status;
}

/* ---- distances ---------------------------------------------------------------------------------- */

/* 1 - cosine, as half the squared distance of the directions, which does not cancel. An embedding of zeros is as far
 * from any other as a perpendicular one. */
static double distance(const float *a, const float *b, size_t width)
{
	double a_squares = 0, b_squares = 0, sum = 0;

	for (size_t i = 0; i < width; i++) {
		a_squares += (double)a[i] * a[i];
		b_squares += (double)b[i] * b[i];
	}
	if (!(a_squares > 0) || !(b_squares > 0))
		return a_squares > 0 || b_squares > 0;
	for (size_t i = 0; i < width; i++) {
		double difference = a[i] / sqrt(a_squares) - b[i] / sqrt(b_squares);

		sum += difference * difference;
	}
	return sum / 2;
}

static enum xfp_status compare_embeddings(struct xfp_evaluation *e, struct xfp_error *err)
{
	struct xfp_embeddings *embeddings = &e->embeddings;
	size_t count = e->texts.count, width = hidden_of(e);
	double *distances = malloc(count * sizeof *distances), sum = 0;

	if (!distances)
		return xfp_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		distances[i] = distance(embeddings->evaluated + i * width, embeddings->source + i * width, width);
		sum += distances[i];
		if (distances[i] > distances[embeddings->worst_text])
			embeddings->worst_text = i;
	}
	embeddings->mean = sum / (double)count;
	qsort(distances, count, sizeof *distances, xfp_compare_doubles);
	embeddings->distance_95 = distances[(count * 95 + 99) / 100 - 1];
	embeddings->worst = distances[count - 1];
	free(distances);
	return XFP_OK;
}

/* Sums become means over tokens. */
static void average_errors(struct xfp_evaluation *e)
{
	double tokens = (double)e->texts.first[e->texts.count];

	e->embedding_error /= tokens;
	for (uint32_t layer = 0; layer < e->evaluated.model.description->layers; layer++) {
		e->layers[layer].stream /= tokens;
		e->layers[layer].alone /= tokens;
	}
}

enum xfp_status xfp_embed_texts(struct xfp_evaluation *e, struct xfp_error *err)
{
	size_t bytes = hidden_of(e) * sizeof(float);
	struct xfp_pending output = { .fd = -1 };
	enum xfp_status status = XFP_OK;

	e->embeddings.evaluated = calloc(e->texts.count, bytes);
	e->embeddings.source = xfp_evaluation_has_source(e) ? calloc(e->texts.count, bytes) : NULL;
	e->layers = calloc(e->evaluated.model.description->layers, sizeof *e->layers);
	if (!e->embeddings.evaluated || (xfp_evaluation_has_source(e) && !e->embeddings.source) || !e->layers)
		return xfp_no_memory(err);
	if (e->request.embeddings_path && (status = xfp_pending_open(e->request.embeddings_path, &output, err)))
		return status;
	if (!(status = run_batches(e, err)) && xfp_evaluation_has_source(e)) {
		average_errors(e);
		status = compare_embeddings(e, err);
	}
	if (!status && e->request.embeddings_path &&
	    !(status = xfp_npy_write(&output, e->embeddings.evaluated, e->texts.count, hidden_of(e), err)))
		status = xfp_pending_publish(&output, false, err);
	xfp_pending_discard(&output);
	return status;
}
