/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/forward.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "model/forward/rope.h"
#include "model/forward/tensors.h"
#include "runtime/team.h"

enum xfp_status xfp_forward_check(const struct xfp_description *description, const struct xfp_weights *weights,
				  struct xfp_error *err)
{
	return xfp_check_tensors(description, weights, xfp_find_names(description, weights), err);
}

/* Compute cosines and sines of `positions`. Without a cache, all sequences have that length. */
static enum xfp_status make_tables(struct xfp_forward *forward, size_t positions, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;

	for (uint32_t i = 0; i < d->ropes; i++) {
		const struct xfp_rope *rope = &d->rope[i];
		bool longest = xfp_rope_is_long(rope, positions);
		size_t max = longest ? (size_t)rope->original_context : positions;

		for (int is_long = forward->cache ? 0 : longest; is_long <= longest; is_long++) {
			size_t count = is_long ? positions : max;

			if (!(forward->rope[i][is_long] = xfp_floats(count, rope->dim)))
				return xfp_no_memory(err);
			xfp_rope_table(rope, count, is_long, forward->rope[i][is_long]);
		}
	}
	return XFP_OK;
}

static enum xfp_status open_forward(struct xfp_forward start, size_t positions, struct xfp_forward **out,
				    struct xfp_error *err)
{
	const struct xfp_description *d = start.description;
	struct xfp_forward *forward;
	enum xfp_status status;

	*out = NULL;
	start.names = xfp_find_names(d, start.weights);
	if ((status = xfp_check_tensors(d, start.weights, start.names, err)))
		return status;
	if (!(forward = malloc(sizeof *forward)))
		return xfp_no_memory(err);
	*forward = start;
	if (!(forward->segments = calloc(start.sequences ? start.sequences : 1, sizeof *forward->segments))) {
		status = xfp_no_memory(err);
		goto done;
	}
	status = make_tables(forward, positions, err);
	*out = forward;
done:
	if (status) {
		xfp_forward_close(forward);
		*out = NULL;
	}
	return status;
}

enum xfp_status xfp_forward_open(const struct xfp_description *description, const struct xfp_weights *weights,
				 struct xfp_team *team, size_t sequences, size_t length, struct xfp_forward **out,
				 struct xfp_error *err)
{
	struct xfp_forward start = {
		.description = description, .weights = weights, .team = team, .sequences = sequences, .length = length
	};
	enum xfp_status status;
	uint64_t tokens;

	*out = NULL;
	if (length > description->context)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: sequences of %zu tokens are longer than the model's context of %u",
				xfp_weights_path(weights), length, (unsigned)description->context);
	if (!xfp_mul(sequences, length, &tokens))
		return xfp_no_memory(err);
	start.tokens = tokens;
	if ((status = open_forward(start, length, out, err)))
		return status;
	(*out)->segment_count = sequences;
	for (size_t s = 0; s < sequences; s++)
		(*out)->segments[s] =
			(struct xfp_segment){ .sequence = s, .count = length, .length = length, .first = s * length };
	return XFP_OK;
}

enum xfp_status xfp_forward_open_cached(const struct xfp_description *description, const struct xfp_weights *weights,
					struct xfp_team *team, struct xfp_kv_cache *cache, struct xfp_forward **out,
					struct xfp_error *err)
{
	struct xfp_forward start = { .description = description,
				     .weights = weights,
				     .team = team,
				     .sequences = cache->sequences,
				     .cache = cache };

	return open_forward(start, cache->context, out, err);
}

struct xfp_forward xfp_forward_view(const struct xfp_forward *forward, size_t sequences)
{
	struct xfp_forward some = *forward;

	some.sequences = some.segment_count = sequences;
	some.tokens = sequences * forward->length;
	return some;
}

void xfp_forward_close(struct xfp_forward *forward)
{
	if (!forward)
		return;
	for (size_t i = 0; i < XFP_ROPES; i++) {
		free(forward->rope[i][0]);
		free(forward->rope[i][1]);
	}
	free(forward->segments);
	free(forward);
}

enum xfp_status xfp_forward_begin(struct xfp_forward *forward, const struct xfp_segment *segments, size_t count,
				  struct xfp_error *err)
{
	const struct xfp_kv_cache *cache = forward->cache;
	size_t context = cache ? cache->context : forward->description->context;

	forward->tokens = 0;
	forward->segment_count = count;
	for (size_t i = 0; i < count; i++) {
		struct xfp_segment segment = segments[i];

		segment.position = cache ? cache->count[segment.sequence] : 0;
		segment.first = forward->tokens;
		if (segment.length < segment.position + segment.count)
			segment.length = segment.position + segment.count;
		forward->segments[i] = segment;
		forward->tokens += segment.count;
		if (segment.count > context - segment.position)
			return xfp_fail(err, XFP_BAD_INPUT,
					"sequence %zu has %zu tokens, and %zu more exceed the context of %zu",
					segment.sequence, segment.position, segment.count, context);
		if (cache && xfp_kv_cache_is_stale(cache, segment.sequence, segment.length))
			return xfp_fail(
				err, XFP_BAD_INPUT,
				"sequence %zu exceeds the original context; reset it, and begin with all its tokens",
				segment.sequence);
	}
	return XFP_OK;
}

void xfp_forward_commit(struct xfp_forward *forward)
{
	for (size_t i = 0; i < forward->segment_count; i++) {
		const struct xfp_segment *segment = &forward->segments[i];

		forward->cache->count[segment->sequence] += segment->count;
		forward->cache->length[segment->sequence] = segment->length;
	}
}

enum xfp_status xfp_forward_embed(const struct xfp_forward *forward, const uint32_t *ids, float *x,
				  struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct xfp_view view = { .rows = d->vocabulary, .cols = d->hidden, .row_stride = d->hidden, .col_stride = 1 };
	struct xfp_weight_rows *rows;
	char tensor[XFP_TENSOR_NAME];
	enum xfp_status status;

	xfp_embedding_tensor(tensor, forward->names);
	status = xfp_weight_rows_open(forward->weights, tensor, &view, &rows, err);
	for (size_t s = 0; !status && s < forward->segment_count; s++) {
		const struct xfp_segment *segment = &forward->segments[s];

		for (size_t t = segment->first; !status && t < segment->first + segment->count; t++) {
			if (ids[t] >= d->vocabulary)
				status = xfp_fail(err, XFP_BAD_INPUT,
						  "token %zu of sequence %zu is %u, and the model's vocabulary has %u",
						  segment->position + t - segment->first, segment->sequence,
						  (unsigned)ids[t], (unsigned)d->vocabulary);
			else
				status = xfp_weight_rows_read(rows, ids[t], 1, x + t * d->hidden, err);
		}
	}
	for (size_t i = 0; !status && d->word_scale != 1 && i < forward->tokens * d->hidden; i++)
		x[i] *= (float)d->word_scale;
	xfp_weight_rows_close(rows);
	return status || !d->encoder ? status : xfp_encoder_embed(forward, x, err);
}

/* y = x, normalized with a tensor's weights. */
static enum xfp_status norm(const struct xfp_forward *forward, const char *tensor, const float *x, float *y,
			    struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	float *weight = xfp_floats(1, d->hidden);
	enum xfp_status status =
		weight ? xfp_forward_norm_weights(forward, tensor, d->hidden, weight, err) : xfp_no_memory(err);

	if (!status)
		xfp_rms_norm(x, forward->tokens, d->hidden, weight, d->epsilon, y);
	free(weight);
	return status;
}

/* x += scale norm(half(norm(x))); a norm that is NULL is left out. */
static enum xfp_status
add_half(const struct xfp_forward *forward, uint32_t layer, const char *input_norm, const char *output_norm,
	 enum xfp_status (*half)(const struct xfp_forward *, uint32_t, const float *, float *, struct xfp_error *),
	 float *x, struct xfp_error *err)
{
	size_t size = forward->tokens * forward->description->hidden;
	float scale = (float)forward->description->residual_scale;
	float *normed = xfp_floats(forward->tokens, forward->description->hidden);
	float *y = xfp_floats(forward->tokens, forward->description->hidden);
	char name[XFP_TENSOR_NAME];
	enum xfp_status status;

	status = normed && y ? XFP_OK : xfp_no_memory(err);
	if (!status && input_norm) {
		xfp_layer_tensor(name, forward->names, layer, input_norm);
		status = norm(forward, name, x, normed, err);
	}
	if (!status)
		status = half(forward, layer, input_norm ? normed : x, y, err);
	if (!status && output_norm) {
		xfp_layer_tensor(name, forward->names, layer, output_norm);
		status = norm(forward, name, y, y, err);
	}
	for (size_t i = 0; !status && i < size; i++)
		x[i] += scale * y[i];
	free(normed);
	free(y);
	return status;
}

enum xfp_status xfp_forward_layer(const struct xfp_forward *forward, uint32_t layer, float *x, struct xfp_error *err)
{
	const struct xfp_layer_norms *norms = forward->description->norms;
	bool delta = forward->description->layer[layer].delta;
	enum xfp_status status;

	if (forward->description->encoder)
		return xfp_encoder_layer(forward, layer, x, err);
	status = add_half(forward, layer, norms->attention, norms->attention_output,
			  delta ? xfp_forward_delta : xfp_forward_attention, x, err);
	if (!status)
		status = add_half(forward, layer, norms->mlp, norms->mlp_output, xfp_forward_mlp, x, err);
	return status;
}

enum xfp_status xfp_forward_norm(const struct xfp_forward *forward, float *x, struct xfp_error *err)
{
	char tensor[XFP_TENSOR_NAME];

	if (forward->description->encoder)
		return XFP_OK;
	xfp_body_tensor(tensor, forward->names, "norm.weight");
	return norm(forward, tensor, x, x, err);
}

struct cap_task {
	float *logits;
	size_t count;
	double cap;
};

static void cap_token(void *context, unsigned thread, size_t token)
{
	const struct cap_task *task = context;
	float *logits = task->logits + token * task->count;

	(void)thread;
	for (size_t i = 0; i < task->count; i++)
		logits[i] = (float)(task->cap * xfp_tanh(logits[i] / task->cap));
}

enum xfp_status xfp_forward_logits(const struct xfp_forward *forward, const float *x, uint32_t first, uint32_t count,
				   float *logits, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct cap_task task = { logits, count, d->logit_cap };
	char embedding[XFP_TENSOR_NAME];
	enum xfp_status status;
	struct xfp_linear_map head = { .input = XFP_INPUT_HEAD,
				       .tensor = d->tied ? embedding : forward->names->head,
				       .first = first,
				       .rows = count,
				       .cols = d->hidden };

	xfp_embedding_tensor(embedding, forward->names);
	status = xfp_forward_map(forward, &head, x, forward->tokens, logits, err);
	for (size_t i = 0; !status && d->logit_divisor != 1 && i < forward->tokens * count; i++)
		logits[i] = (float)(logits[i] / d->logit_divisor);
	if (status || !d->logit_cap || (status = xfp_team_enter(forward->team, 0, 1, err)))
		return status;
	xfp_team_run(forward->team, forward->tokens, cap_token, &task);
	xfp_team_leave(forward->team);
	return XFP_OK;
}
