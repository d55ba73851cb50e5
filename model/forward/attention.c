/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grouped-query attention: several query heads share a head of keys and values. A position sees itself and those before
 * it, or the last of them within a sliding window; in encoders it sees all positions.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "model/forward/lane_set.h"
#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "model/forward/rope.h"
#include "runtime/team.h"

/* Activations of all tokens: queries, [token][heads][head_dim], and weighted sums of values, with value_dim; keys and
 * values, with kv_heads. */
struct attention_task {
	const struct xfp_forward *forward;
	float *queries, *keys, *values, *mixed;
	const float *query_norm, *key_norm; /* NULL: none */
	const float *sinks;                 /* a score of each query head; NULL: none */
	uint32_t window, rope;
	const struct xfp_kv_cache_layer *cache; /* NULL: no cache */
};

/* A projection by q_proj, k_proj or v_proj; in encoders by query, key or value. */
struct projection {
	char tensor[XFP_TENSOR_NAME], bias[XFP_TENSOR_NAME];
	struct xfp_view part;
};

/* In a fused tensor, the projection starts at row `before`. */
static struct xfp_linear_map describe(const struct xfp_forward *forward, uint32_t layer, const char *which,
				      size_t before, size_t rows, struct projection *p)
{
	const struct xfp_description *d = forward->description;
	const char *format = d->encoder ? "attention.self.%s.%s" : "self_attn.%.1s_proj.%s";
	char name[40];

	p->part = (struct xfp_view){
		.base = before * d->hidden, .rows = rows, .cols = d->hidden, .row_stride = d->hidden, .col_stride = 1
	};
	snprintf(name, sizeof name, format, which, "bias");
	xfp_layer_tensor(p->bias, forward->names, layer, name);
	snprintf(name, sizeof name, format, which, "weight");
	xfp_layer_tensor(p->tensor, forward->names, layer, d->fused ? "self_attn.qkv_proj.weight" : name);
	return (struct xfp_linear_map){ .input = XFP_INPUT_ATTENTION,
					.tensor = p->tensor,
					.bias = d->qkv_bias ? p->bias : NULL,
					.part = d->fused ? &p->part : NULL,
					.rows = rows,
					.cols = d->hidden };
}

/* Queries, keys and values. */
static enum xfp_status project(const struct attention_task *task, uint32_t layer, const float *x, struct xfp_error *err)
{
	const struct xfp_forward *forward = task->forward;
	const struct xfp_description *d = forward->description;
	size_t rows = (size_t)d->heads * d->head_dim, kv_rows = (size_t)d->kv_heads * d->head_dim;
	float *const outputs[] = { task->queries, task->keys, task->values };
	struct projection p[3];
	struct xfp_linear_map maps[3];

	if (d->latent.kv_rank)
		return xfp_forward_latent(forward, layer, x, task->queries, task->keys, task->values, err);
	maps[0] = describe(forward, layer, "query", 0, d->output_gate ? 2 * rows : rows, &p[0]);
	maps[1] = describe(forward, layer, "key", rows, kv_rows, &p[1]);
	maps[2] = describe(forward, layer, "value", rows + kv_rows, kv_rows, &p[2]);
	return xfp_forward_maps(forward, maps, outputs, 3, x, forward->tokens, err);
}

/* Normalize and rotate the heads of one token. */
static void rotate_heads(const struct attention_task *task, const float *norm, const float *position, size_t heads,
			 float *head)
{
	const struct xfp_description *d = task->forward->description;

	if (norm && d->joint_norm)
		xfp_rms_norm(head, 1, heads * d->head_dim, norm, d->epsilon, head);
	else if (norm)
		xfp_rms_norm(head, heads, d->head_dim, norm, d->epsilon, head);
	for (size_t h = 0; h < heads; h++)
		xfp_rope_rotate(&d->rope[task->rope], position, head + h * d->head_dim);
	if (d->rotated_norm && d->rope[task->rope].dim)
		xfp_rms_norm(head, heads, d->head_dim, NULL, d->epsilon, head);
}

static void scale_query(const struct attention_task *task, size_t position, float *query)
{
	const struct xfp_description *d = task->forward->description;
	double steps = floor((double)(position + 1) / d->temperature_floor);
	float scale = (float)(1 + d->temperature * xfp_log(1 + steps));

	for (size_t i = 0; i < (size_t)d->heads * d->head_dim; i++)
		query[i] *= scale;
}

/* All tokens of a segment. */
static void rotate_segment(void *context, unsigned thread, size_t i)
{
	const struct attention_task *task = context;
	const struct xfp_description *d = task->forward->description;
	const struct xfp_segment *segment = &task->forward->segments[i];
	const struct xfp_rope *rope = &d->rope[task->rope];
	const float *position = task->forward->rope[task->rope][xfp_rope_is_long(rope, segment->length)] +
				segment->position * rope->dim;
	size_t end = segment->first + segment->count, row = (size_t)d->heads * d->head_dim;
	size_t kv_row = (size_t)d->kv_heads * d->head_dim;

	(void)thread;
	for (size_t t = segment->first; t < end; t++, position += rope->dim) {
		rotate_heads(task, task->query_norm, position, d->heads, task->queries + t * row);
		rotate_heads(task, task->key_norm, position, d->kv_heads, task->keys + t * kv_row);
		if (d->temperature > 0 && !rope->dim)
			scale_query(task, segment->position + t - segment->first, task->queries + t * row);
	}
}

/* Turn the scores of a query into probabilities, in place; positions [first, last]. The sink takes its share. */
static void softmax(double *score, size_t first, size_t last, double sink)
{
	double max = sink > score[first] ? sink : score[first], sum = 0;

	for (size_t j = first; j <= last; j++)
		max = score[j] > max || score[j] != score[j] ? score[j] : max;
	for (size_t j = first; j <= last; j++) {
		score[j] = xfp_exp(score[j] - max);
		sum += score[j];
	}
	sum += xfp_exp(sink - max);
	for (size_t j = first; j <= last; j++)
		score[j] /= sum;
}

/* ---- the positions that a segment sees ------------------------------------------------------------ */

/* The first position that this one attends to. */
static size_t first_seen(const struct attention_task *task, size_t position)
{
	if (!task->window || position < task->window)
		return 0;
	return task->forward->description->chunked ? position - position % task->window : position - task->window + 1;
}

/* The last position that token `t` of a segment attends to. */
static size_t last_seen(const struct attention_task *task, const struct xfp_segment *segment, size_t t)
{
	return segment->position + (task->forward->description->encoder ? segment->count - 1 : t);
}

static size_t positions_seen(const struct attention_task *task, const struct xfp_segment *segment)
{
	return segment->position + segment->count - first_seen(task, segment->position);
}

static size_t size_of(const struct attention_task *task, bool value)
{
	const struct xfp_description *d = task->forward->description;

	return value ? d->value_dim : d->head_dim;
}

/* The cached key, or value, of a position. */
static float *cached(const struct attention_task *task, bool value, const struct xfp_segment *segment, size_t kv_head,
		     size_t position)
{
	size_t capacity = task->cache->capacity, heads = task->forward->description->kv_heads;

	return (value ? task->cache->values : task->cache->keys) +
	       ((segment->sequence * heads + kv_head) * capacity + position % capacity) * size_of(task, value);
}

/* The key, or value, of a cached position or of one in the segment. */
static const float *key_or_value(const struct attention_task *task, bool value, const struct xfp_segment *segment,
				 size_t kv_head, size_t position)
{
	const struct xfp_description *d = task->forward->description;
	const float *current = value ? task->values : task->keys;

	if (position < segment->position)
		return cached(task, value, segment, kv_head, position);
	return current +
	       ((segment->first + position - segment->position) * d->kv_heads + kv_head) * size_of(task, value);
}

/* Store one head of a segment's keys and values in the cache; if they exceed the window, only the last ones. */
static void store(void *context, unsigned thread, size_t item)
{
	const struct attention_task *task = context;
	const struct xfp_description *d = task->forward->description;
	const struct xfp_segment *segment = &task->forward->segments[item / d->kv_heads];
	size_t kv_head = item % d->kv_heads, end = segment->position + segment->count;
	size_t position = segment->count > task->cache->capacity ? end - task->cache->capacity : segment->position;

	(void)thread;
	for (; position < end; position++) {
		for (int value = 0; value < 2; value++)
			memcpy(cached(task, value, segment, kv_head, position),
			       key_or_value(task, value, segment, kv_head, position),
			       size_of(task, value) * sizeof(float));
	}
}

/* One query head of one segment. The thread's memory holds, for `seen` positions, the scores of a query, a sum, and the
 * transposed keys, [head_dim][seen]. */
static void attend(void *context, unsigned thread, size_t item)
{
	const struct attention_task *task = context;
	const struct xfp_description *d = task->forward->description;
	const struct xfp_segment *segment = &task->forward->segments[item / d->heads];
	size_t size = d->head_dim, row = d->heads * size, head = item % d->heads,
	       kv_head = head / (d->heads / d->kv_heads);
	size_t value_size = d->value_dim, value_row = d->heads * value_size;
	size_t seen = positions_seen(task, segment), start = first_seen(task, segment->position);
	const float *query = task->queries + segment->first * row + head * size;
	float *mixed = task->mixed + segment->first * value_row + head * value_size;
	double *score = xfp_team_own(task->forward->team, thread), *sum = score + seen;
	void *after = sum + value_size;
	float *transposed = after;

	for (size_t j = 0; j < seen; j++) {
		const float *key = key_or_value(task, false, segment, kv_head, start + j);

		for (size_t i = 0; i < size; i++)
			transposed[i * seen + j] = key[i];
	}
	for (size_t t = 0; t < segment->count; t++, query += row, mixed += value_row) {
		size_t last = last_seen(task, segment, t) - start,
		       first = first_seen(task, segment->position + t) - start;

		memset(score, 0, (last + 1) * sizeof *score);
		for (size_t i = 0; i < size; i++) {
			for (size_t j = first; j <= last; j++)
				score[j] += (double)query[i] * transposed[i * seen + j];
		}
		for (size_t j = first; j <= last; j++) {
			score[j] *= d->score_scale;
			if (d->score_cap > 0)
				score[j] = d->score_cap * xfp_tanh(score[j] / d->score_cap);
		}
		softmax(score, first, last, task->sinks ? task->sinks[head] : -(double)INFINITY);
		memset(sum, 0, value_size * sizeof *sum);
		for (size_t j = first; j <= last; j++) {
			const float *value = key_or_value(task, true, segment, kv_head, start + j);

			for (size_t i = 0; i < value_size; i++)
				sum[i] += score[j] * value[i];
		}
		for (size_t i = 0; i < value_size; i++)
			mixed[i] = (float)sum[i];
	}
}

/* ---- XFP_FAST --------------------------------------------------------------------------------------- */

/* Count the keys, or values, from `position` up to `last` that are at equal distances in memory. */
static size_t find_run(const struct attention_task *task, bool value, const struct xfp_segment *segment, size_t kv_head,
		       size_t position, size_t last, const float **from, size_t *stride)
{
	const struct xfp_description *d = task->forward->description;
	size_t count = last + 1 - position, capacity;

	*from = key_or_value(task, value, segment, kv_head, position);
	if (position >= segment->position) {
		*stride = d->kv_heads * size_of(task, value);
		return count;
	}
	*stride = size_of(task, value);
	if (count > segment->position - position)
		count = segment->position - position;
	capacity = task->cache->capacity - position % task->cache->capacity;
	return count < capacity ? count : capacity;
}

/* Query heads that share a head of keys and values are multiplied together, some at a time. */
static size_t query_groups(const struct xfp_description *d)
{
	return (d->heads / d->kv_heads + XFP_QUERIES - 1) / XFP_QUERIES;
}

/* The scores of a query, and the sink, are padded for softmax. */
static size_t score_stride(size_t seen)
{
	return seen / XFP_LANES * XFP_LANES + XFP_LANES;
}

static float scaled_softmax(const struct attention_task *task, size_t head, float *score, size_t count)
{
	const struct xfp_description *d = task->forward->description;

	for (size_t j = 0; j < count; j++) {
		score[j] *= (float)d->score_scale;
		if (d->score_cap > 0)
			score[j] = (float)(d->score_cap * xfp_tanh(score[j] / d->score_cap));
	}
	if (task->sinks)
		score[count++] = task->sinks[head];
	return xfp_lane_set()->softmax(score, count);
}

/* The same as attend, for some query heads; the thread's memory holds the scores of one query of each. */
static void attend_fast(void *context, unsigned thread, size_t item)
{
	const struct attention_task *task = context;
	const struct xfp_description *d = task->forward->description;
	const struct xfp_lane_set *set = xfp_lane_set();
	size_t groups = query_groups(d), shared = d->heads / d->kv_heads, kv_head = item / groups % d->kv_heads;
	const struct xfp_segment *segment = &task->forward->segments[item / groups / d->kv_heads];
	size_t begin = item % groups * XFP_QUERIES, head = kv_head * shared + begin, stride;
	size_t queries = shared - begin < XFP_QUERIES ? shared - begin : XFP_QUERIES;
	size_t size = d->head_dim, row = d->heads * size, value_size = d->value_dim, value_row = d->heads * value_size;
	size_t padded = score_stride(positions_seen(task, segment));
	const float *query = task->queries + segment->first * row + head * size, *from;
	float *mixed = task->mixed + segment->first * value_row + head * value_size;
	float *score = xfp_team_own(task->forward->team, thread), sum[XFP_QUERIES];

	for (size_t t = 0; t < segment->count; t++, query += row, mixed += value_row) {
		size_t last = last_seen(task, segment, t), first = first_seen(task, segment->position + t);
		size_t count = last + 1 - first;

		for (size_t j = first, some; j <= last; j += some) {
			some = find_run(task, false, segment, kv_head, j, last, &from, &stride);
			set->scores(query, queries, from, stride, some, size, score + j - first, padded);
		}
		for (size_t q = 0; q < queries; q++)
			sum[q] = scaled_softmax(task, head + q, score + q * padded, count);
		memset(mixed, 0, queries * value_size * sizeof *mixed);
		for (size_t j = first, some; j <= last; j += some) {
			some = find_run(task, true, segment, kv_head, j, last, &from, &stride);
			set->mix(score + j - first, padded, queries, from, stride, some, value_size, mixed);
		}
		for (size_t i = 0; i < queries * value_size; i++)
			mixed[i] /= sum[i / value_size];
	}
}

static enum xfp_status run(const struct attention_task *task, struct xfp_error *err)
{
	const struct xfp_forward *forward = task->forward;
	const struct xfp_description *d = forward->description;
	size_t kv_items = forward->segment_count * d->kv_heads, own = 0;
	bool fast = forward->arithmetic == XFP_FAST;
	void *context = (void *)(uintptr_t)task;
	enum xfp_status status;

	for (size_t s = 0; s < forward->segment_count; s++) {
		size_t seen = positions_seen(task, &forward->segments[s]);
		size_t bytes = fast ? XFP_QUERIES * score_stride(seen) * sizeof(float)
				    : (seen + d->value_dim) * sizeof(double) + seen * d->head_dim * sizeof(float);

		own = bytes > own ? bytes : own;
	}
	if ((status = xfp_team_enter(forward->team, 0, own, err)))
		return status;
	xfp_team_run(forward->team, forward->segment_count, rotate_segment, context);
	if (fast)
		xfp_team_run(forward->team, kv_items * query_groups(d), attend_fast, context);
	else
		xfp_team_run(forward->team, forward->segment_count * d->heads, attend, context);
	if (task->cache)
		xfp_team_run(forward->team, kv_items, store, context);
	xfp_team_leave(forward->team);
	return XFP_OK;
}

/* Move the gates, which the projection leaves after each query head, to `gates`, and close the gaps. */
static void split_gates(const struct attention_task *task, float *gates)
{
	size_t size = task->forward->description->head_dim;

	for (size_t i = 0; i < task->forward->tokens * task->forward->description->heads; i++) {
		memcpy(gates + i * size, task->queries + (2 * i + 1) * size, size * sizeof *gates);
		memmove(task->queries + i * size, task->queries + 2 * i * size, size * sizeof *gates);
	}
}

/* Read the norms of queries and of keys. */
static enum xfp_status head_norms(const struct xfp_forward *forward, uint32_t layer, float *query, size_t query_size,
				  float *key, size_t key_size, struct xfp_error *err)
{
	char tensor[XFP_TENSOR_NAME];
	enum xfp_status status;

	xfp_layer_tensor(tensor, forward->names, layer, "self_attn.q_norm.weight");
	if ((status = xfp_forward_norm_weights(forward, tensor, query_size, query, err)))
		return status;
	xfp_layer_tensor(tensor, forward->names, layer, "self_attn.k_norm.weight");
	return xfp_forward_norm_weights(forward, tensor, key_size, key, err);
}

enum xfp_status xfp_forward_attention(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				      struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t rows = (size_t)d->heads * d->head_dim, kv_rows = (size_t)d->kv_heads * d->head_dim;
	size_t query_rows = d->output_gate ? 2 * rows : rows, mixed = (size_t)d->heads * d->value_dim;
	size_t norm = d->joint_norm ? rows : d->head_dim, kv_norm = d->joint_norm ? kv_rows : d->head_dim;
	float *norms = xfp_floats(1, norm + kv_norm + d->heads),
	      *gates = xfp_floats(forward->tokens, d->output_gate ? rows : 0);
	struct attention_task task = { .forward = forward,
				       .window = d->layer[layer].window,
				       .rope = d->layer[layer].rope,
				       .cache = forward->cache ? &forward->cache->layer[layer] : NULL };
	char tensor[XFP_TENSOR_NAME], bias[XFP_TENSOR_NAME];
	struct xfp_linear_map output = { .input = XFP_INPUT_ATTENTION_OUTPUT,
					 .tensor = tensor,
					 .bias = d->output_bias ? bias : NULL,
					 .rows = d->hidden,
					 .cols = mixed };
	enum xfp_status status = XFP_OK;

	task.queries = xfp_floats(forward->tokens, query_rows);
	task.keys = xfp_floats(forward->tokens, kv_rows);
	task.values = xfp_floats(forward->tokens, (size_t)d->kv_heads * d->value_dim);
	task.mixed = xfp_floats(forward->tokens, mixed);
	if (!norms || !gates || !task.queries || !task.keys || !task.values || !task.mixed)
		status = xfp_no_memory(err);
	if (!status && d->query_key_norm) {
		task.query_norm = norms;
		task.key_norm = norms + norm;
		status = head_norms(forward, layer, norms, norm, norms + norm, kv_norm, err);
	}
	if (!status && d->sinks) {
		xfp_layer_tensor(tensor, forward->names, layer, "self_attn.sinks");
		status = xfp_forward_vector(forward, tensor, d->heads, norms + norm + kv_norm, err);
		task.sinks = norms + norm + kv_norm;
	}
	if (status || (status = project(&task, layer, x, err)))
		goto done;
	if (d->output_gate)
		split_gates(&task, gates);
	if ((status = run(&task, err)))
		goto done;
	for (size_t i = 0; d->output_gate && i < forward->tokens * rows; i++)
		task.mixed[i] = (float)(task.mixed[i] * xfp_sigmoid(gates[i]));
	xfp_layer_tensor(tensor, forward->names, layer,
			 d->encoder ? "attention.output.dense.weight" : "self_attn.o_proj.weight");
	xfp_layer_tensor(bias, forward->names, layer,
			 d->encoder ? "attention.output.dense.bias" : "self_attn.o_proj.bias");
	status = xfp_forward_map(forward, &output, task.mixed, forward->tokens, y, err);
done:
	free(norms);
	free(gates);
	free(task.queries);
	free(task.keys);
	free(task.values);
	free(task.mixed);
	return status;
}
