/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear attention (gated delta rule). The recurrent state of a value head is a matrix S, [key_dim][value_dim]. Each
 * token decays it, moves its value for the token's key towards the token's value, and reads its value for the token's
 * query:
 *
 *     S = e^g S;  S = S + k (beta (v - S^T k))^T;  o = S^T q / sqrt(key_dim)
 *
 * All of this is in double, with sums over key_dim in order, and S is never rounded, so the number of tokens that are
 * computed at a time does not matter. A head of queries and keys serves several value heads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "runtime/team.h"

#define COLUMNS 32       /* channels of the convolution, or columns of S, that are computed together */
#define KEY_EPSILON 1e-6 /* of the norms of queries and keys, whatever the config's is */

/* Activations of all tokens. The channels of the convolution are queries, keys and values, in this order; outputs
 * replace the values. */
struct delta_task {
	const struct xfp_forward *forward;
	const struct xfp_delta *delta;
	const struct xfp_kv_cache_layer *cache; /* NULL: no cache */
	size_t channels, values;                /* values: of all value heads */
	float *mixed, *gates;                   /* [token][channels], [token][values] */
	float *beta, *decay;                    /* [token][value_heads] */
	float *kernels;                         /* [channels][kernel] */
	float *rates, *shifts, *norm;           /* A_log and dt_bias of each value head; [value_dim] */
};

/* ---- queries, keys and values ------------------------------------------------------------------- */

/* The input of the convolution from `channel` on, for element `number` of the kernel - 1 tokens before the segment
 * followed by its own tokens. NULL: zeros. */
static float *inputs_of(const struct delta_task *task, const struct xfp_segment *segment, size_t number, size_t channel)
{
	size_t before = task->delta->kernel - 1;

	if (number >= before)
		return task->mixed + (segment->first + number - before) * task->channels + channel;
	return task->cache ? task->cache->inputs + (segment->sequence * before + number) * task->channels + channel
			   : NULL;
}

/* Convolve some channels of a segment, from its last token to the first, since outputs replace inputs. The inputs that
 * the next tokens need are saved in the thread's memory first. */
static void convolve(void *context, unsigned thread, size_t item)
{
	const struct delta_task *task = context;
	size_t blocks = (task->channels + COLUMNS - 1) / COLUMNS, channel = item % blocks * COLUMNS;
	size_t count = task->channels - channel < COLUMNS ? task->channels - channel : COLUMNS;
	const struct xfp_segment *segment = &task->forward->segments[item / blocks];
	size_t size = task->delta->kernel, before = size - 1;
	float *saved = xfp_team_own(task->forward->team, thread);

	for (size_t i = 0; task->cache && i < before; i++)
		memcpy(saved + i * COLUMNS, inputs_of(task, segment, segment->count + i, channel),
		       count * sizeof *saved);
	for (size_t t = segment->count; t-- > 0;) {
		float *out = inputs_of(task, segment, t + before, channel);
		double sum[COLUMNS] = { 0 };

		for (size_t j = 0; j < size; j++) {
			const float *in = inputs_of(task, segment, t + j, channel);

			for (size_t c = 0; in && c < count; c++)
				sum[c] += (double)task->kernels[(channel + c) * size + j] * in[c];
		}
		for (size_t c = 0; c < count; c++)
			out[c] = (float)(sum[c] * xfp_sigmoid(sum[c]));
	}
	for (size_t i = 0; task->cache && i < before; i++)
		memcpy(inputs_of(task, segment, i, channel), saved + i * COLUMNS, count * sizeof *saved);
}

/* One token: normalize queries and keys to length 1, and compute beta and g from their projections. */
static void prepare(void *context, unsigned thread, size_t token)
{
	const struct delta_task *task = context;
	const struct xfp_delta *delta = task->delta;
	float *head = task->mixed + token * task->channels;
	float *beta = task->beta + token * delta->value_heads, *decay = task->decay + token * delta->value_heads;

	(void)thread;
	for (size_t h = 0; h < 2 * delta->key_heads; h++, head += delta->key_dim) {
		double sum = 0, scale;

		for (size_t i = 0; i < delta->key_dim; i++)
			sum += (double)head[i] * head[i];
		scale = 1 / sqrt(sum + KEY_EPSILON);
		for (size_t i = 0; i < delta->key_dim; i++)
			head[i] = (float)(head[i] * scale);
	}
	for (size_t h = 0; h < delta->value_heads; h++) {
		beta[h] = (float)xfp_sigmoid(beta[h]);
		decay[h] = (float)(-xfp_exp(task->rates[h]) * xfp_softplus((double)decay[h] + task->shifts[h]));
	}
}

/* ---- the delta rule --------------------------------------------------------------------------------- */

/* One token, for `count` columns of S, which are [key_dim][COLUMNS]. */
static void step(const struct xfp_delta *delta, double *s, size_t count, const float *query, const float *key,
		 double decay, double beta, float *value)
{
	double sum[COLUMNS] = { 0 }, scale = sqrt((double)delta->key_dim), *row = s;

	for (size_t i = 0; i < delta->key_dim; i++, row += COLUMNS) {
		for (size_t j = 0; j < COLUMNS; j++) {
			row[j] *= decay;
			sum[j] += row[j] * key[i];
		}
	}
	for (size_t j = 0; j < COLUMNS; j++)
		sum[j] = j < count ? (value[j] - sum[j]) * beta : 0;
	row = s;
	for (size_t i = 0; i < delta->key_dim; i++, row += COLUMNS) {
		for (size_t j = 0; j < COLUMNS; j++)
			row[j] += key[i] * sum[j];
	}
	memset(sum, 0, sizeof sum);
	row = s;
	for (size_t i = 0; i < delta->key_dim; i++, row += COLUMNS) {
		for (size_t j = 0; j < COLUMNS; j++)
			sum[j] += row[j] * query[i];
	}
	for (size_t j = 0; j < count; j++)
		value[j] = (float)(sum[j] / scale);
}

/* Some columns of a value head's state, for all tokens of a segment. The thread's memory holds these columns. */
static void update_state(void *context, unsigned thread, size_t item)
{
	const struct delta_task *task = context;
	const struct xfp_delta *delta = task->delta;
	size_t blocks = (delta->value_dim + COLUMNS - 1) / COLUMNS, first = item % blocks * COLUMNS;
	size_t count = delta->value_dim - first < COLUMNS ? delta->value_dim - first : COLUMNS;
	size_t head = item / blocks % delta->value_heads;
	size_t key_head = head / (delta->value_heads / delta->key_heads);
	const struct xfp_segment *segment = &task->forward->segments[item / blocks / delta->value_heads];
	double *s = xfp_team_own(task->forward->team, thread), *state = NULL;

	if (task->cache)
		state = task->cache->state + segment->sequence * task->cache->state_size +
			head * delta->key_dim * delta->value_dim + first;
	memset(s, 0, delta->key_dim * COLUMNS * sizeof *s);
	for (size_t i = 0; state && i < delta->key_dim; i++)
		memcpy(s + i * COLUMNS, state + i * delta->value_dim, count * sizeof *s);
	for (size_t t = segment->first; t < segment->first + segment->count; t++) {
		float *query = task->mixed + t * task->channels + key_head * delta->key_dim;
		float *key = query + delta->key_heads * delta->key_dim;
		float *value = task->mixed + t * task->channels + 2 * delta->key_heads * delta->key_dim +
			       head * delta->value_dim + first;

		step(delta, s, count, query, key, xfp_exp(task->decay[t * delta->value_heads + head]),
		     task->beta[t * delta->value_heads + head], value);
	}
	for (size_t i = 0; state && i < delta->key_dim; i++)
		memcpy(state + i * delta->value_dim, s + i * COLUMNS, count * sizeof *s);
}

/* One token: the gates become the output, normalized by head, times silu(gates). */
static void gate(void *context, unsigned thread, size_t token)
{
	const struct delta_task *task = context;
	size_t size = task->delta->value_dim;
	const float *read = task->mixed + (token + 1) * task->channels - task->values;
	float *z = task->gates + token * task->values;

	(void)thread;
	for (size_t h = 0; h < task->delta->value_heads; h++, read += size, z += size) {
		double sum = 0, scale;

		for (size_t i = 0; i < size; i++)
			sum += (double)read[i] * read[i];
		scale = 1 / sqrt(sum / (double)size + task->forward->description->epsilon);
		for (size_t i = 0; i < size; i++)
			z[i] = (float)(read[i] * scale * task->norm[i] * (z[i] * xfp_sigmoid(z[i])));
	}
}

static enum xfp_status run(struct delta_task *task, struct xfp_error *err)
{
	const struct xfp_forward *forward = task->forward;
	const struct xfp_delta *delta = task->delta;
	size_t columns = COLUMNS * sizeof(double);
	size_t own = columns * (delta->key_dim > delta->kernel ? delta->key_dim : delta->kernel);
	enum xfp_status status = xfp_team_enter(forward->team, 0, own, err);

	if (status)
		return status;
	xfp_team_run(forward->team, forward->segment_count * ((task->channels + COLUMNS - 1) / COLUMNS), convolve,
		     task);
	xfp_team_run(forward->team, forward->tokens, prepare, task);
	xfp_team_run(forward->team,
		     forward->segment_count * delta->value_heads * ((delta->value_dim + COLUMNS - 1) / COLUMNS),
		     update_state, task);
	xfp_team_run(forward->team, forward->tokens, gate, task);
	xfp_team_leave(forward->team);
	return XFP_OK;
}

/* ---- projections -------------------------------------------------------------------------------- */

static enum xfp_status project(const struct delta_task *task, uint32_t layer, const char *name, size_t rows,
			       const float *x, float *y, struct xfp_error *err)
{
	const struct xfp_forward *forward = task->forward;
	char tensor[XFP_TENSOR_NAME];
	struct xfp_linear_map map = {
		.input = XFP_INPUT_ATTENTION, .tensor = tensor, .rows = rows, .cols = forward->description->hidden
	};

	xfp_layer_tensor(tensor, forward->names, layer, name);
	return xfp_forward_map(forward, &map, x, forward->tokens, y, err);
}

/* Split a fused projection, which is grouped by key head: for each head, copy `size` of its `all` numbers, from number
 * `first` on, to `to`. Its vectors are `stride` apart. */
static void scatter(const struct delta_task *task, const float *from, size_t all, size_t first, size_t size, float *to,
		    size_t stride)
{
	for (size_t t = 0; t < task->forward->tokens; t++, to += stride) {
		for (size_t h = 0; h < task->delta->key_heads; h++, from += all)
			memcpy(to + h * size, from + first, size * sizeof *to);
	}
}

static enum xfp_status project_by_heads(const struct delta_task *task, uint32_t layer, const float *x,
					struct xfp_error *err)
{
	const struct xfp_delta *delta = task->delta;
	size_t keys = delta->key_dim, share = delta->value_heads / delta->key_heads, values = share * delta->value_dim;
	size_t all_keys = keys * delta->key_heads, all = 2 * keys + 2 * values;
	float *fused = xfp_floats(task->forward->tokens, all * delta->key_heads);
	enum xfp_status status = fused ? XFP_OK : xfp_no_memory(err);

	if (status ||
	    (status = project(task, layer, "linear_attn.in_proj_qkvz.weight", all * delta->key_heads, x, fused, err)))
		goto done;
	scatter(task, fused, all, 0, keys, task->mixed, task->channels);
	scatter(task, fused, all, keys, keys, task->mixed + all_keys, task->channels);
	scatter(task, fused, all, 2 * keys, values, task->mixed + 2 * all_keys, task->channels);
	scatter(task, fused, all, 2 * keys + values, values, task->gates, task->values);
	if ((status = project(task, layer, "linear_attn.in_proj_ba.weight", 2 * delta->value_heads, x, fused, err)))
		goto done;
	scatter(task, fused, 2 * share, 0, share, task->beta, delta->value_heads);
	scatter(task, fused, 2 * share, share, share, task->decay, delta->value_heads);
done:
	free(fused);
	return status;
}

static enum xfp_status project_all(const struct delta_task *task, uint32_t layer, const float *x, struct xfp_error *err)
{
	static const char *const names[] = { "linear_attn.in_proj_qkv.weight", "linear_attn.in_proj_z.weight",
					     "linear_attn.in_proj_b.weight", "linear_attn.in_proj_a.weight" };
	const struct xfp_forward *forward = task->forward;
	size_t heads = task->delta->value_heads, rows[] = { task->channels, task->values, heads, heads };
	float *const outputs[] = { task->mixed, task->gates, task->beta, task->decay };
	char tensors[4][XFP_TENSOR_NAME];
	struct xfp_linear_map maps[4];

	if (task->delta->by_heads)
		return project_by_heads(task, layer, x, err);
	for (size_t i = 0; i < 4; i++) {
		xfp_layer_tensor(tensors[i], forward->names, layer, names[i]);
		maps[i] = (struct xfp_linear_map){ .input = XFP_INPUT_ATTENTION,
						   .tensor = tensors[i],
						   .rows = rows[i],
						   .cols = forward->description->hidden };
	}
	return xfp_forward_maps(forward, maps, outputs, 4, x, forward->tokens, err);
}

/* ---- the layer ---------------------------------------------------------------------------------- */

static enum xfp_status small_tensors(const struct delta_task *task, uint32_t layer, struct xfp_error *err)
{
	const struct {
		const char *name;
		size_t rows, cols;
		float *into;
	} tensors[] = {
		{ "linear_attn.conv1d.weight", task->channels, task->delta->kernel, task->kernels },
		{ "linear_attn.A_log", 1, task->delta->value_heads, task->rates },
		{ "linear_attn.dt_bias", 1, task->delta->value_heads, task->shifts },
		{ "linear_attn.norm.weight", 1, task->delta->value_dim, task->norm },
	};
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < sizeof tensors / sizeof *tensors; i++) {
		struct xfp_view view = { .rows = tensors[i].rows, .cols = tensors[i].cols, .col_stride = 1 };
		struct xfp_weight_rows *rows;
		char tensor[XFP_TENSOR_NAME];

		view.row_stride = view.cols;
		xfp_layer_tensor(tensor, task->forward->names, layer, tensors[i].name);
		if (!(status = xfp_weight_rows_open(task->forward->weights, tensor, &view, &rows, err)))
			status = xfp_weight_rows_read(rows, 0, view.rows, tensors[i].into, err);
		xfp_weight_rows_close(rows);
	}
	return status;
}

enum xfp_status xfp_forward_delta(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				  struct xfp_error *err)
{
	const struct xfp_delta *delta = &forward->description->delta;
	struct delta_task task = { .forward = forward,
				   .delta = delta,
				   .cache = forward->cache ? &forward->cache->layer[layer] : NULL,
				   .channels = xfp_delta_channels(delta),
				   .values = delta->value_heads * delta->value_dim };
	size_t tokens = forward->tokens;
	char tensor[XFP_TENSOR_NAME];
	struct xfp_linear_map output = { .input = XFP_INPUT_ATTENTION_OUTPUT,
					 .tensor = tensor,
					 .rows = forward->description->hidden,
					 .cols = task.values };
	enum xfp_status status;

	task.mixed = xfp_floats(tokens, task.channels);
	task.gates = xfp_floats(tokens, task.values);
	task.beta = xfp_floats(tokens, delta->value_heads);
	task.decay = xfp_floats(tokens, delta->value_heads);
	task.kernels = xfp_floats(task.channels, delta->kernel);
	task.rates = xfp_floats(1, delta->value_heads);
	task.shifts = xfp_floats(1, delta->value_heads);
	task.norm = xfp_floats(1, delta->value_dim);
	if (!task.mixed || !task.gates || !task.beta || !task.decay || !task.kernels || !task.rates || !task.shifts ||
	    !task.norm)
		status = xfp_no_memory(err);
	else if (!(status = small_tensors(&task, layer, err)) && !(status = project_all(&task, layer, x, err)))
		status = run(&task, err);
	xfp_layer_tensor(tensor, forward->names, layer, "linear_attn.out_proj.weight");
	if (!status)
		status = xfp_forward_map(forward, &output, task.gates, tokens, y, err);
	free(task.mixed);
	free(task.gates);
	free(task.beta);
	free(task.decay);
	free(task.kernels);
	free(task.rates);
	free(task.shifts);
	free(task.norm);
	return status;
}
