/* SPDX-License-Identifier: Apache-2.0 */
/*
 * down(silu(gate(x)) up(x)), or GELU instead, of a layer or of each expert that a router chooses.
 */
#include <stdlib.h>
#include <string.h>

#include "model/forward/lane_set.h"
#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "runtime/team.h"

struct glu_tensors {
	char gate[XFP_TENSOR_NAME], up[XFP_TENSOR_NAME], down[XFP_TENSOR_NAME];
	char gate_bias[XFP_TENSOR_NAME], up_bias[XFP_TENSOR_NAME], down_bias[XFP_TENSOR_NAME];
	bool biases, fused; /* fused: the tensor of `gate` has the rows of both, */
	bool stacked;       /* and that of `down` those of others, too; */
	uint64_t number;    /* of the expert that is meant */
	size_t width;
};

struct activation_task {
	enum xfp_activation activation;
	float *gate; /* which becomes activation(gate) up */
	const float *up;
	size_t width;
	size_t count; /* of the fast form: of all tokens */
};

#define ACTIVATED 1024 /* numbers that a thread takes at a time */

static double activate(enum xfp_activation activation, double x)
{
	switch (activation) {
	case XFP_GELU:
		return x * 0.5 * (1 + xfp_erf(x * 0.70710678118654752440));
	case XFP_GELU_TANH:
		return x * 0.5 * (1 + xfp_tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
	default:
		return x / (1 + xfp_exp(-x));
	}
}

static void activate_token(void *context, unsigned thread, size_t token)
{
	const struct activation_task *task = context;
	float *gate = task->gate + token * task->width;
	const float *up = task->up + token * task->width;

	(void)thread;
	for (size_t i = 0; i < task->width; i++)
		gate[i] = (float)(activate(task->activation, gate[i]) * up[i]);
}

/* Some numbers, whichever tokens they belong to. */
static void activate_fast(void *context, unsigned thread, size_t i)
{
	const struct activation_task *task = context;
	size_t first = i * ACTIVATED, count = task->count - first < ACTIVATED ? task->count - first : ACTIVATED;
	float *gate = task->gate + first;
	const float *up = task->up + first;

	(void)thread;
	if (task->activation == XFP_SILU) {
		xfp_lane_set()->silu(gate, up, count);
		return;
	}
	for (size_t j = 0; j < count; j++)
		gate[j] = (float)(activate(task->activation, gate[j]) * up[j]);
}

static enum xfp_status glu(const struct xfp_forward *forward, const struct glu_tensors *g, const float *x, size_t count,
			   float *y, struct xfp_error *err)
{
	size_t hidden = forward->description->hidden;
	struct xfp_linear_map gate = {
		.tensor = g->gate, .bias = g->biases ? g->gate_bias : NULL, .rows = g->width, .cols = hidden
	};
	struct xfp_linear_map up = {
		.tensor = g->up, .bias = g->biases ? g->up_bias : NULL, .rows = g->width, .cols = hidden
	};
	struct xfp_linear_map down = {
		.tensor = g->down, .bias = g->biases ? g->down_bias : NULL, .rows = hidden, .cols = g->width
	};
	struct xfp_view gate_part = { .rows = g->width, .cols = hidden, .row_stride = hidden, .col_stride = 1 };
	struct xfp_view up_part = gate_part;
	struct xfp_view down_part = { .rows = hidden, .cols = g->width, .row_stride = g->width, .col_stride = 1 };
	float *a = xfp_floats(count, g->width), *b = xfp_floats(count, g->width);
	struct activation_task task = { forward->description->activation, a, b, g->width, count * g->width };
	enum xfp_status status = a && b ? XFP_OK : xfp_no_memory(err);

	down_part.base = g->number * g->width * hidden;
	gate_part.base = 2 * down_part.base;
	up_part.base = gate_part.base + g->width * hidden;
	if (g->stacked)
		down.part = &down_part;
	if (g->fused) {
		gate.part = &gate_part;
		up.part = &up_part;
	}
	if (status || (status = xfp_forward_map(forward, &gate, x, count, a, err)) ||
	    (status = xfp_forward_map(forward, &up, x, count, b, err)) ||
	    (status = xfp_team_enter(forward->team, 0, 1, err)))
		goto done;
	if (forward->form == XFP_FAST)
		xfp_team_run(forward->team, (task.count + ACTIVATED - 1) / ACTIVATED, activate_fast, &task);
	else
		xfp_team_run(forward->team, count, activate_token, &task);
	xfp_team_leave(forward->team);
	status = xfp_forward_map(forward, &down, a, count, y, err);
done:
	free(a);
	free(b);
	return status;
}

static enum xfp_status dense(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
			     struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct glu_tensors g = { .biases = d->mlp_bias, .fused = d->fused, .width = d->intermediate };

	xfp_layer_tensor(g.gate, forward->names, layer, d->fused ? "mlp.gate_up_proj.weight" : "mlp.gate_proj.weight");
	xfp_layer_tensor(g.up, forward->names, layer, d->fused ? "mlp.gate_up_proj.weight" : "mlp.up_proj.weight");
	xfp_layer_tensor(g.down, forward->names, layer, "mlp.down_proj.weight");
	xfp_layer_tensor(g.gate_bias, forward->names, layer, "mlp.gate_proj.bias");
	xfp_layer_tensor(g.up_bias, forward->names, layer, "mlp.up_proj.bias");
	xfp_layer_tensor(g.down_bias, forward->names, layer, "mlp.down_proj.bias");
	return glu(forward, &g, x, forward->tokens, y, err);
}

/* ---- experts ------------------------------------------------------------------------------------ */

/* Of one token: `weight` becomes 0 for the experts that are not chosen. The largest probabilities are chosen, among
 * equals the lower number. */
static void choose(const struct xfp_description *d, float *weight, double *probability)
{
	double most = weight[0], sum = 0, chosen = 0;

	for (uint32_t e = 0; e < d->experts; e++)
		most = weight[e] > most ? weight[e] : most;
	for (uint32_t e = 0; e < d->experts; e++)
		sum += probability[e] = xfp_exp(weight[e] - most);
	for (uint32_t e = 0; e < d->experts; e++) {
		probability[e] = (float)(probability[e] / sum);
		weight[e] = 0;
	}
	for (uint32_t i = 0; i < d->chosen; i++) {
		uint32_t best = 0;

		while (probability[best] == -1)
			best++;
		for (uint32_t e = best + 1; e < d->experts; e++) {
			if (probability[e] > probability[best])
				best = e;
		}
		weight[best] = (float)probability[best];
		chosen += probability[best];
		probability[best] = -1;
	}
	for (uint32_t e = 0; d->renormalise && e < d->experts; e++)
		weight[e] = (float)(weight[e] / chosen);
}

static enum xfp_status route(const struct xfp_forward *forward, uint32_t layer, const float *x, float *weights,
			     struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	double *probability = malloc(d->experts * sizeof *probability);
	char tensor[XFP_TENSOR_NAME];
	struct xfp_linear_map router = { .tensor = tensor, .rows = d->experts, .cols = d->hidden };
	enum xfp_status status;

	xfp_layer_tensor(tensor, forward->names, layer, d->expert_names->router);
	status = probability ? xfp_forward_map(forward, &router, x, forward->tokens, weights, err) : xfp_no_memory(err);
	for (size_t t = 0; !status && t < forward->tokens; t++)
		choose(d, weights + t * d->experts, probability);
	free(probability);
	return status;
}

static enum xfp_status expert(const struct xfp_forward *forward, uint32_t layer, uint32_t number, const float *x,
			      size_t count, float *y, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	const struct xfp_expert_names *names = d->expert_names;
	bool stacked = forward->names->stacked;
	struct glu_tensors g = { .width = d->expert_intermediate, .fused = stacked, .stacked = stacked };

	if (stacked) {
		g.number = number;
		xfp_layer_tensor(g.gate, forward->names, layer, names->gate_up_stack);
		xfp_layer_tensor(g.up, forward->names, layer, names->gate_up_stack);
		xfp_layer_tensor(g.down, forward->names, layer, names->down_stack);
	} else {
		xfp_expert_tensor(g.gate, forward->names, layer, names->gate, number);
		xfp_expert_tensor(g.up, forward->names, layer, names->up, number);
		xfp_expert_tensor(g.down, forward->names, layer, names->down, number);
	}
	return glu(forward, &g, x, count, y, err);
}

/* One expert, for the tokens that chose it: gathered, computed, and added with their weights. */
static enum xfp_status add_expert(const struct xfp_forward *forward, uint32_t layer, uint32_t number,
				  const float *weights, const float *x, float *gathered, float *made, float *y,
				  struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	enum xfp_status status;
	size_t count = 0;

	for (size_t t = 0; t < forward->tokens; t++) {
		if (weights[t * d->experts + number] != 0)
			memcpy(gathered + count++ * d->hidden, x + t * d->hidden, d->hidden * sizeof *x);
	}
	if (!count)
		return XFP_OK;
	if ((status = expert(forward, layer, number, gathered, count, made, err)))
		return status;
	for (size_t t = 0; t < forward->tokens; t++) {
		float weight = weights[t * d->experts + number];

		if (weight == 0)
			continue;
		for (size_t i = 0; i < d->hidden; i++)
			y[t * d->hidden + i] += weight * made[i];
		made += d->hidden;
	}
	return XFP_OK;
}

/* The expert that all tokens go through, weighted by a sigmoid. */
static enum xfp_status add_shared(const struct xfp_forward *forward, uint32_t layer, float *weights, const float *x,
				  float *made, float *y, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct glu_tensors g = { .width = d->shared_intermediate };
	char tensor[XFP_TENSOR_NAME];
	struct xfp_linear_map router = { .tensor = tensor, .rows = 1, .cols = d->hidden };
	enum xfp_status status;

	xfp_layer_tensor(tensor, forward->names, layer, d->expert_names->shared_router);
	xfp_layer_tensor(g.gate, forward->names, layer, d->expert_names->shared_gate);
	xfp_layer_tensor(g.up, forward->names, layer, d->expert_names->shared_up);
	xfp_layer_tensor(g.down, forward->names, layer, d->expert_names->shared_down);
	if ((status = xfp_forward_map(forward, &router, x, forward->tokens, weights, err)) ||
	    (status = glu(forward, &g, x, forward->tokens, made, err)))
		return status;
	for (size_t t = 0; t < forward->tokens; t++, y += d->hidden, made += d->hidden) {
		float weight = (float)xfp_sigmoid(weights[t]);

		for (size_t i = 0; i < d->hidden; i++)
			y[i] += weight * made[i];
	}
	return XFP_OK;
}

static enum xfp_status experts(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
			       struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	float *weights = xfp_floats(forward->tokens, d->experts), *gathered = xfp_floats(forward->tokens, d->hidden);
	float *made = xfp_floats(forward->tokens, d->hidden);
	enum xfp_status status =
		weights && gathered && made ? route(forward, layer, x, weights, err) : xfp_no_memory(err);

	memset(y, 0, forward->tokens * d->hidden * sizeof *y);
	for (uint32_t e = 0; !status && e < d->experts; e++)
		status = add_expert(forward, layer, e, weights, x, gathered, made, y, err);
	if (!status && d->expert_names->shared_router)
		status = add_shared(forward, layer, weights, x, made, y, err);
	free(weights);
	free(gathered);
	free(made);
	return status;
}

enum xfp_status xfp_forward_mlp(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				struct xfp_error *err)
{
	return (forward->description->layer[layer].experts ? experts : dense)(forward, layer, x, y, err);
}
