/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MLP, down(silu(gate(x)) up(x)) or the same with GELU: one per layer, or experts that a router selects.
 */
#include <stdlib.h>
#include <string.h>

#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "model/forward/router.h"

struct glu_tensors {
	char gate[XFP_TENSOR_NAME], up[XFP_TENSOR_NAME], down[XFP_TENSOR_NAME];
	char gate_bias[XFP_TENSOR_NAME], up_bias[XFP_TENSOR_NAME], down_bias[XFP_TENSOR_NAME];
	bool biases, fused;           /* fused: the tensor of `gate` contains the rows of up */
	bool stacked;                 /* stacked: the tensors, and those of biases, contain all experts */
	bool transposed, interleaved; /* how stacks contain them */
	uint64_t number;              /* index of this expert */
	size_t width;
	const float *factors;                    /* of gate and up, by vector; NULL: 1 */
	const char *down_input;                  /* names the input of down */
	const struct xfp_expert_vectors *expert; /* NULL: not one of the routed experts */
};

/* Views of the three matrices in their tensors. */
enum { GATE, UP, DOWN, MATRICES };

static void glu_views(const struct glu_tensors *g, size_t hidden, struct xfp_view views[MATRICES])
{
	size_t step = g->interleaved ? 2 : 1, rows = g->fused ? 2 * g->width : g->width;
	struct xfp_view wide = { .rows = g->width, .cols = hidden, .row_stride = step * hidden, .col_stride = 1 };
	struct xfp_view down = { .rows = hidden, .cols = g->width, .row_stride = g->width, .col_stride = 1 };

	if (g->transposed) {
		wide.row_stride = step;
		wide.col_stride = rows;
		down.row_stride = 1;
		down.col_stride = hidden;
	}
	views[GATE] = views[UP] = wide;
	views[DOWN] = down;
	views[DOWN].base = g->number * g->width * hidden;
	views[GATE].base = g->fused ? 2 * views[DOWN].base : 0;
	views[UP].base = g->fused ? views[GATE].base + (g->interleaved ? 1 : g->width) * wide.row_stride / step : 0;
}

/* Views of the expert's biases in their stacks. */
static void bias_views(const struct glu_tensors *g, size_t hidden, struct xfp_view views[MATRICES])
{
	size_t step = g->interleaved ? 2 : 1;
	struct xfp_view wide = { .rows = 1, .cols = g->width, .row_stride = 2 * g->width, .col_stride = step };

	wide.base = 2 * g->number * g->width;
	views[GATE] = views[UP] = wide;
	views[UP].base += g->interleaved ? 1 : g->width;
	views[DOWN] = (struct xfp_view){ .rows = 1, .cols = hidden, .row_stride = hidden, .col_stride = 1 };
	views[DOWN].base = g->number * hidden;
}

static void scale_vectors(const float *factors, float *a, size_t width, size_t count)
{
	for (size_t i = 0; factors && i < count * width; i++)
		a[i] *= factors[i / width];
}

static enum xfp_status glu(const struct xfp_forward *forward, const struct glu_tensors *g, const float *x, size_t count,
			   float *y, struct xfp_error *err)
{
	size_t hidden = forward->description->hidden;
	struct xfp_view views[MATRICES], biases[MATRICES];
	struct xfp_linear_map wide = { .input = XFP_INPUT_MLP, .expert = g->expert, .rows = g->width, .cols = hidden };
	struct xfp_linear_map maps[MATRICES] = { wide, wide, wide };
	float *outputs[] = { xfp_floats(count, g->width), xfp_floats(count, g->width) };
	enum xfp_status status = outputs[GATE] && outputs[UP] ? XFP_OK : xfp_no_memory(err);

	glu_views(g, hidden, views);
	bias_views(g, hidden, biases);
	maps[GATE].tensor = g->gate;
	maps[GATE].bias = g->biases ? g->gate_bias : NULL;
	maps[GATE].part = g->fused ? &views[GATE] : NULL;
	maps[UP].tensor = g->up;
	maps[UP].bias = g->biases ? g->up_bias : NULL;
	maps[UP].part = g->fused ? &views[UP] : NULL;
	maps[DOWN].input = g->down_input;
	maps[DOWN].tensor = g->down;
	maps[DOWN].bias = g->biases ? g->down_bias : NULL;
	maps[DOWN].part = g->stacked ? &views[DOWN] : NULL;
	maps[DOWN].rows = hidden;
	maps[DOWN].cols = g->width;
	for (unsigned i = 0; g->stacked && i < MATRICES; i++)
		maps[i].bias_part = &biases[i];
	if (!status && !(status = xfp_forward_maps(forward, maps, outputs, DOWN, x, count, err))) {
		scale_vectors(g->factors, outputs[GATE], g->width, count);
		scale_vectors(g->factors, outputs[UP], g->width, count);
		if (!(status = xfp_forward_activate(forward, outputs[GATE], outputs[UP], g->width, count, err)))
			status = xfp_forward_map(forward, &maps[DOWN], outputs[GATE], count, y, err);
	}
	free(outputs[GATE]);
	free(outputs[UP]);
	return status;
}

static enum xfp_status dense(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
			     struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct glu_tensors g = {
		.biases = d->mlp_bias, .fused = d->fused, .width = d->intermediate, .down_input = XFP_INPUT_DOWN
	};

	xfp_mlp_tensor(g.gate, d, forward->names, layer, d->fused ? "gate_up_proj.weight" : "gate_proj.weight");
	xfp_mlp_tensor(g.up, d, forward->names, layer, d->fused ? "gate_up_proj.weight" : "up_proj.weight");
	xfp_mlp_tensor(g.down, d, forward->names, layer, "down_proj.weight");
	xfp_mlp_tensor(g.gate_bias, d, forward->names, layer, "gate_proj.bias");
	xfp_mlp_tensor(g.up_bias, d, forward->names, layer, "up_proj.bias");
	xfp_mlp_tensor(g.down_bias, d, forward->names, layer, "down_proj.bias");
	return glu(forward, &g, x, forward->tokens, y, err);
}

/* ---- experts ------------------------------------------------------------------------------------ */

static void expert_tensors(const struct xfp_forward *forward, uint32_t layer, uint32_t number, struct glu_tensors *g)
{
	const struct xfp_description *d = forward->description;
	const struct xfp_expert_names *names = d->expert_names;
	bool stacked = forward->names->stacked;

	*g = (struct glu_tensors){ .width = d->expert_intermediate,
				   .biases = names->gate_up_bias,
				   .fused = stacked,
				   .stacked = stacked,
				   .transposed = stacked && names->transposed,
				   .interleaved = stacked && names->interleaved,
				   .down_input = XFP_INPUT_EXPERT_DOWN };
	if (stacked) {
		g->number = number;
		xfp_layer_tensor(g->gate, forward->names, layer, names->gate_up_stack);
		xfp_layer_tensor(g->up, forward->names, layer, names->gate_up_stack);
		xfp_layer_tensor(g->down, forward->names, layer, names->down_stack);
		if (g->biases) {
			xfp_layer_tensor(g->gate_bias, forward->names, layer, names->gate_up_bias);
			xfp_layer_tensor(g->up_bias, forward->names, layer, names->gate_up_bias);
			xfp_layer_tensor(g->down_bias, forward->names, layer, names->down_bias);
		}
	} else {
		xfp_expert_tensor(g->gate, forward->names, layer, names->gate, number);
		xfp_expert_tensor(g->up, forward->names, layer, names->up, number);
		xfp_expert_tensor(g->down, forward->names, layer, names->down, number);
	}
}

/* One expert: gather the tokens that selected it, compute, and add the outputs with their weights. `factors` is memory
 * for the weights, if they scale inputs, and `tokens` for the numbers of the tokens; NULL: not needed. */
static enum xfp_status add_expert(const struct xfp_forward *forward, uint32_t layer, uint32_t number,
				  const float *weights, const float *x, float *gathered, float *factors,
				  uint32_t *tokens, float *output, float *y, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct xfp_expert_vectors vectors = { number, forward->names->stacked, tokens };
	struct glu_tensors g;
	enum xfp_status status;
	size_t count = 0;

	for (size_t t = 0; t < forward->tokens; t++) {
		if (weights[t * d->experts + number] == 0)
			continue;
		if (tokens)
			tokens[count] = (uint32_t)t;
		if (factors)
			factors[count] = weights[t * d->experts + number];
		memcpy(gathered + count++ * d->hidden, x + t * d->hidden, d->hidden * sizeof *x);
	}
	if (!count && !forward->observer)
		return XFP_OK;
	expert_tensors(forward, layer, number, &g);
	g.expert = &vectors;
	g.factors = factors;
	if ((status = glu(forward, &g, gathered, count, output, err)))
		return status;
	for (size_t t = 0; t < forward->tokens; t++) {
		float weight = weights[t * d->experts + number];

		if (weight == 0)
			continue;
		for (size_t i = 0; i < d->hidden; i++)
			y[t * d->hidden + i] += (factors ? 1 : weight) * output[i];
		output += d->hidden;
	}
	return XFP_OK;
}

static enum xfp_status one_by_one(const struct xfp_forward *forward, uint32_t layer, const float *weights,
				  const float *x, float *output, float *y, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	float *gathered = xfp_floats(forward->tokens, d->hidden);
	float *factors = d->router.input ? xfp_floats(forward->tokens, 1) : NULL;
	uint32_t *tokens = forward->observer ? malloc(forward->tokens * sizeof *tokens) : NULL;
	enum xfp_status status = gathered && (factors || !d->router.input) && (tokens || !forward->observer)
					 ? XFP_OK
					 : xfp_no_memory(err);

	memset(y, 0, forward->tokens * d->hidden * sizeof *y);
	for (uint32_t e = 0; !status && e < d->experts; e++)
		status = add_expert(forward, layer, e, weights, x, gathered, factors, tokens, output, y, err);
	free(gathered);
	free(factors);
	free(tokens);
	return status;
}

/* ---- stacked experts, for a few tokens ------------------------------------------------------------- */

/* For a few tokens, the work of each expert is so little that threads would mostly wait: one call multiplies by all
 * selected experts of a stack in a bundle. */
struct stacks {
	uint32_t stack[MATRICES];
	uint32_t *numbers; /* [expert]: index among the selected ones */
	uint32_t *place;   /* [MATRICES][experts]: their places in the stacks, */
	size_t experts;    /* count of the selected ones */
	struct xfp_product *products;
	size_t count;
};

static bool is_selected(const struct xfp_forward *forward, const float *weights, uint32_t expert)
{
	for (size_t t = 0; t < forward->tokens; t++) {
		if (weights[t * forward->description->experts + expert] != 0)
			return true;
	}
	return false;
}

/* Whether all selected experts are in the same three stacks. */
static bool find_stacks(const struct xfp_forward *forward, uint32_t layer, const float *weights, struct stacks *s)
{
	const struct xfp_description *d = forward->description;
	struct xfp_view views[MATRICES];
	struct glu_tensors g;

	for (uint32_t e = 0; e < d->experts; e++) {
		if (!is_selected(forward, weights, e))
			continue;
		expert_tensors(forward, layer, e, &g);
		glu_views(&g, d->hidden, views);
		for (unsigned m = 0; m < MATRICES; m++) {
			const char *tensor = m == GATE ? g.gate : m == UP ? g.up : g.down;
			uint32_t stack;

			if (!xfp_weights_stacked(forward->weights, tensor, &views[m], &stack,
						 &s->place[m * d->experts + s->experts]) ||
			    (s->experts && stack != s->stack[m]))
				return false;
			s->stack[m] = stack;
		}
		s->numbers[e] = (uint32_t)s->experts++;
	}
	return true;
}

/* List the products of one of the matrices, by token and then by expert. Gate and up give a vector for each; down adds
 * up the vectors of a token. */
static void list_products(const struct xfp_forward *forward, const float *weights, unsigned matrix, struct stacks *s)
{
	const struct xfp_description *d = forward->description;
	const uint32_t *place = s->place + matrix * d->experts;

	s->count = 0;
	for (size_t t = 0; t < forward->tokens; t++) {
		for (uint32_t e = 0; e < d->experts; e++) {
			float weight = weights[t * d->experts + e];
			uint32_t output = (uint32_t)s->count, token = (uint32_t)t;

			if (weight == 0)
				continue;
			s->products[s->count++] =
				(struct xfp_product){ place[s->numbers[e]], matrix == DOWN ? output : token,
						      matrix == DOWN ? token : output,
						      (matrix == DOWN) != d->router.input ? weight : 1 };
		}
	}
}

static enum xfp_status multiply_stack(const struct xfp_forward *forward, const float *weights, unsigned matrix,
				      struct stacks *s, const float *x, float *y, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct xfp_stack_products p = {
		.stack = s->stack[matrix],
		.experts = s->place + matrix * d->experts,
		.expert_count = s->experts,
		.products = s->products,
	};

	list_products(forward, weights, matrix, s);
	p.count = s->count;
	p.x = (struct xfp_input){ x, XFP_FLOAT32, forward->tokens, d->hidden };
	p.y = (struct xfp_output){ y, XFP_FLOAT32, s->count, d->expert_intermediate };
	if (matrix == DOWN) {
		p.x = (struct xfp_input){ x, XFP_FLOAT32, s->count, d->expert_intermediate };
		p.y = (struct xfp_output){ y, XFP_FLOAT32, forward->tokens, d->hidden };
	}
	return xfp_weights_multiply_experts(forward->weights, forward->team, &p, err);
}

/* Add the biases of one of the matrices to the outputs of list_products. */
static enum xfp_status add_stack_biases(const struct xfp_forward *forward, uint32_t layer, const float *weights,
					unsigned matrix, float *y, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t width = matrix == DOWN ? d->hidden : d->expert_intermediate;
	float *bias = xfp_floats(1, width);
	enum xfp_status status = bias ? XFP_OK : xfp_no_memory(err);
	struct xfp_view views[MATRICES];
	struct glu_tensors g;

	for (size_t i = 0; !status && d->expert_names->gate_up_bias && i < forward->tokens * d->experts; i++) {
		float *to = matrix == DOWN ? y + i / d->experts * width : y;

		if (weights[i] == 0)
			continue;
		expert_tensors(forward, layer, (uint32_t)(i % d->experts), &g);
		bias_views(&g, d->hidden, views);
		status =
			xfp_forward_row(forward, matrix == DOWN ? g.down_bias : g.gate_bias, &views[matrix], bias, err);
		for (size_t c = 0; !status && c < width; c++)
			to[c] += (matrix == DOWN ? weights[i] : 1) * bias[c];
		y += matrix == DOWN ? 0 : width;
	}
	free(bias);
	return status;
}

/* Sets `done` if all selected experts are in stacks. */
static enum xfp_status by_stacks(const struct xfp_forward *forward, uint32_t layer, const float *weights,
				 const float *x, float *y, bool *done, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t max = forward->tokens * d->experts_per_token;
	struct stacks s = { .numbers = malloc(d->experts * sizeof *s.numbers),
			    .place = malloc(MATRICES * d->experts * sizeof *s.place),
			    .products = malloc(max * sizeof *s.products) };
	float *a = xfp_floats(max, d->expert_intermediate), *b = xfp_floats(max, d->expert_intermediate);
	enum xfp_status status = s.numbers && s.place && s.products && a && b ? XFP_OK : xfp_no_memory(err);

	*done = !status && find_stacks(forward, layer, weights, &s);
	if (*done) {
		memset(y, 0, forward->tokens * d->hidden * sizeof *y);
		if (!(status = multiply_stack(forward, weights, GATE, &s, x, a, err)) &&
		    !(status = multiply_stack(forward, weights, UP, &s, x, b, err)) &&
		    !(status = add_stack_biases(forward, layer, weights, GATE, a, err)) &&
		    !(status = add_stack_biases(forward, layer, weights, UP, b, err)) &&
		    !(status = xfp_forward_activate(forward, a, b, d->expert_intermediate, s.count, err)) &&
		    !(status = multiply_stack(forward, weights, DOWN, &s, a, y, err)))
			status = add_stack_biases(forward, layer, weights, DOWN, y, err);
	}
	free(a);
	free(b);
	free(s.numbers);
	free(s.place);
	free(s.products);
	return status;
}

/* ---- the MLP with experts -------------------------------------------------------------------------- */

/* The shared expert, weighted by a sigmoid if it has a router. */
static enum xfp_status add_shared(const struct xfp_forward *forward, uint32_t layer, float *weights, const float *x,
				  float *output, float *y, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct glu_tensors g = { .width = d->shared_intermediate, .down_input = XFP_INPUT_SHARED_DOWN };
	char tensor[XFP_TENSOR_NAME];
	struct xfp_linear_map router = { .input = XFP_INPUT_MLP, .tensor = tensor, .rows = 1, .cols = d->hidden };
	enum xfp_status status;

	if (d->expert_names->shared_router)
		xfp_layer_tensor(tensor, forward->names, layer, d->expert_names->shared_router);
	xfp_layer_tensor(g.gate, forward->names, layer, d->expert_names->shared_gate);
	xfp_layer_tensor(g.up, forward->names, layer, d->expert_names->shared_up);
	xfp_layer_tensor(g.down, forward->names, layer, d->expert_names->shared_down);
	if ((d->expert_names->shared_router &&
	     (status = xfp_forward_map(forward, &router, x, forward->tokens, weights, err))) ||
	    (status = glu(forward, &g, x, forward->tokens, output, err)))
		return status;
	for (size_t t = 0; t < forward->tokens; t++, y += d->hidden, output += d->hidden) {
		float weight = d->expert_names->shared_router ? (float)xfp_sigmoid(weights[t]) : 1;

		for (size_t i = 0; i < d->hidden; i++)
			y[i] += weight * output[i];
	}
	return XFP_OK;
}

static enum xfp_status experts(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
			       struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	float *weights = xfp_floats(forward->tokens, d->experts), *output = xfp_floats(forward->tokens, d->hidden);
	enum xfp_status status =
		weights && output ? xfp_forward_route(forward, layer, x, weights, err) : xfp_no_memory(err);
	bool done = false;

	if (!status && forward->arithmetic == XFP_FAST && forward->tokens * d->experts_per_token <= XFP_STACK_PRODUCTS)
		status = by_stacks(forward, layer, weights, x, y, &done, err);
	if (!status && !done)
		status = one_by_one(forward, layer, weights, x, output, y, err);
	if (!status && d->shared_intermediate)
		status = add_shared(forward, layer, weights, x, output, y, err);
	free(weights);
	free(output);
	return status;
}

enum xfp_status xfp_forward_mlp(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				struct xfp_error *err)
{
	return (forward->description->layer[layer].experts ? experts : dense)(forward, layer, x, y, err);
}
