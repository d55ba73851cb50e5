/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "model/forward/parts.h"

struct tensor_walk {
	const struct xfp_description *description;
	const struct xfp_tensor_names *names;
	bool (*each)(void *context, const struct xfp_required_tensor *tensor);
	void *context;
	uint32_t experts; /* to report */
	uint32_t layer;
	enum xfp_layer_part part;
	bool ended;
};

static void report(struct tensor_walk *walk, const char *tensor, uint32_t rank, const uint64_t *shape)
{
	const struct xfp_required_tensor required = { tensor, rank, shape, walk->part };

	walk->ended = walk->ended || !walk->each(walk->context, &required);
}

/* `cols` 0: one dimension. */
static void expect(struct tensor_walk *walk, const char *tensor, uint64_t rows, uint64_t cols)
{
	uint64_t shape[] = { rows, cols };

	report(walk, tensor, cols ? 2 : 1, shape);
}

/* A vector of the layer, which must exist or must not. */
static void expect_vector(struct tensor_walk *walk, const char *name, bool there, uint64_t size)
{
	char tensor[XFP_TENSOR_NAME];

	xfp_layer_tensor(tensor, walk->names, walk->layer, name);
	report(walk, tensor, there, &size);
}

static void expect_matrix(struct tensor_walk *walk, const char *name, uint64_t rows, uint64_t cols)
{
	char tensor[XFP_TENSOR_NAME];

	xfp_layer_tensor(tensor, walk->names, walk->layer, name);
	expect(walk, tensor, rows, cols);
}

/* The bias of a weight "....weight" of the layer, which must not exist. */
static void expect_no_bias(struct tensor_walk *walk, const char *weight)
{
	char bias[XFP_TENSOR_NAME];

	snprintf(bias, sizeof bias, "%.*sbias", (int)(strlen(weight) - strlen("weight")), weight);
	expect_vector(walk, bias, false, 0);
}

static void walk_attention(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	uint64_t rows = (uint64_t)d->heads * d->head_dim, kv_rows = (uint64_t)d->kv_heads * d->head_dim;

	uint64_t query_rows = d->output_gate ? 2 * rows : rows;

	if (d->fused) {
		expect_matrix(walk, "self_attn.qkv_proj.weight", rows + 2 * kv_rows, d->hidden);
		expect_vector(walk, "self_attn.qkv_proj.bias", false, 0);
	} else {
		expect_matrix(walk, "self_attn.q_proj.weight", query_rows, d->hidden);
		expect_matrix(walk, "self_attn.k_proj.weight", kv_rows, d->hidden);
		expect_matrix(walk, "self_attn.v_proj.weight", kv_rows, d->hidden);
	}
	expect_matrix(walk, "self_attn.o_proj.weight", d->hidden, rows);
	expect_vector(walk, "self_attn.q_proj.bias", d->qkv_bias, query_rows);
	expect_vector(walk, "self_attn.k_proj.bias", d->qkv_bias, kv_rows);
	expect_vector(walk, "self_attn.v_proj.bias", d->qkv_bias, kv_rows);
	expect_vector(walk, "self_attn.o_proj.bias", d->output_bias, d->hidden);
	expect_vector(walk, "self_attn.sinks", d->sinks, d->heads);
	expect_vector(walk, "self_attn.q_norm.weight", d->query_key_norm, d->joint_norm ? rows : d->head_dim);
	expect_vector(walk, "self_attn.k_norm.weight", d->query_key_norm, d->joint_norm ? kv_rows : d->head_dim);
}

static void walk_latent(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	const struct xfp_latent *latent = &d->latent;
	uint64_t rows = (uint64_t)d->heads * d->head_dim, rotated = d->head_dim - latent->nope_dim;

	if (latent->query_rank) {
		expect_matrix(walk, "self_attn.q_a_proj.weight", latent->query_rank, d->hidden);
		expect_vector(walk, "self_attn.q_a_layernorm.weight", true, latent->query_rank);
		expect_matrix(walk, "self_attn.q_b_proj.weight", rows, latent->query_rank);
	} else {
		expect_matrix(walk, "self_attn.q_proj.weight", rows, d->hidden);
	}
	expect_no_bias(walk, "self_attn.q_proj.weight");
	expect_no_bias(walk, "self_attn.q_b_proj.weight");
	expect_no_bias(walk, "self_attn.kv_b_proj.weight");
	expect_vector(walk, "self_attn.sinks", false, 0);
	expect_vector(walk, "self_attn.q_norm.weight", false, 0);
	expect_vector(walk, "self_attn.k_norm.weight", false, 0);
	expect_vector(walk, "self_attn.q_a_proj.bias", latent->query_rank && d->qkv_bias, latent->query_rank);
	expect_matrix(walk, "self_attn.kv_a_proj_with_mqa.weight", latent->kv_rank + rotated, d->hidden);
	expect_vector(walk, "self_attn.kv_a_proj_with_mqa.bias", d->qkv_bias, latent->kv_rank + rotated);
	expect_vector(walk, "self_attn.kv_a_layernorm.weight", true, latent->kv_rank);
	expect_matrix(walk, "self_attn.kv_b_proj.weight", d->heads * ((uint64_t)latent->nope_dim + d->value_dim),
		      latent->kv_rank);
	expect_matrix(walk, "self_attn.o_proj.weight", d->hidden, (uint64_t)d->heads * d->value_dim);
	expect_vector(walk, "self_attn.o_proj.bias", d->output_bias, d->hidden);
}

static void walk_delta(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	const struct xfp_delta *delta = &d->delta;
	uint64_t values = delta->value_heads * delta->value_dim,
		 convolution[] = { xfp_delta_channels(delta), 1, delta->kernel };
	char tensor[XFP_TENSOR_NAME];

	if (delta->by_heads) {
		expect_matrix(walk, "linear_attn.in_proj_qkvz.weight", convolution[0] + values, d->hidden);
		expect_matrix(walk, "linear_attn.in_proj_ba.weight", 2 * delta->value_heads, d->hidden);
	} else {
		expect_matrix(walk, "linear_attn.in_proj_qkv.weight", convolution[0], d->hidden);
		expect_matrix(walk, "linear_attn.in_proj_z.weight", values, d->hidden);
		expect_matrix(walk, "linear_attn.in_proj_b.weight", delta->value_heads, d->hidden);
		expect_matrix(walk, "linear_attn.in_proj_a.weight", delta->value_heads, d->hidden);
	}
	xfp_layer_tensor(tensor, walk->names, walk->layer, "linear_attn.conv1d.weight");
	report(walk, tensor, 3, convolution);
	expect_vector(walk, "linear_attn.conv1d.bias", false, 0);
	expect_vector(walk, "linear_attn.A_log", true, delta->value_heads);
	expect_vector(walk, "linear_attn.dt_bias", true, delta->value_heads);
	expect_vector(walk, "linear_attn.norm.weight", true, delta->value_dim);
	expect_matrix(walk, "linear_attn.out_proj.weight", d->hidden, values);
}

static void walk_norms(struct tensor_walk *walk)
{
	static const char *const all[] = { "input_layernorm.weight", "post_attention_layernorm.weight",
					   "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight" };
	const struct xfp_layer_norms *norms = walk->description->norms;
	const char *has[] = { norms->attention, norms->attention_output, norms->mlp, norms->mlp_output };

	for (size_t i = 0; i < 4; i++) {
		bool there = false;

		for (size_t k = 0; k < 4; k++)
			there = there || (has[k] && !strcmp(has[k], all[i]));
		expect_vector(walk, all[i], there, walk->description->hidden);
	}
}

/* A matrix of the layer's MLP; `cols` 0: a bias, which must exist or must not. */
static void expect_mlp(struct tensor_walk *walk, const char *name, uint64_t rows, uint64_t cols)
{
	char tensor[XFP_TENSOR_NAME];
	uint64_t shape[] = { rows, cols };

	xfp_mlp_tensor(tensor, walk->description, walk->names, walk->layer, name);
	report(walk, tensor, cols ? 2 : walk->description->mlp_bias, shape);
}

static void walk_mlp(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;

	if (d->fused) {
		expect_mlp(walk, "gate_up_proj.weight", 2 * (uint64_t)d->intermediate, d->hidden);
	} else {
		expect_mlp(walk, "gate_proj.weight", d->intermediate, d->hidden);
		expect_mlp(walk, "up_proj.weight", d->intermediate, d->hidden);
	}
	expect_mlp(walk, "down_proj.weight", d->hidden, d->intermediate);
	expect_mlp(walk, "gate_proj.bias", d->intermediate, 0);
	expect_mlp(walk, "up_proj.bias", d->intermediate, 0);
	expect_mlp(walk, "down_proj.bias", d->hidden, 0);
}

static void expect_stack(struct tensor_walk *walk, const char *name, const char *bias, uint64_t rows, uint64_t cols)
{
	const struct xfp_description *d = walk->description;
	bool transposed = d->expert_names->transposed;
	uint64_t shape[] = { d->experts, transposed ? cols : rows, transposed ? rows : cols };
	char tensor[XFP_TENSOR_NAME];

	xfp_layer_tensor(tensor, walk->names, walk->layer, name);
	walk->part = XFP_PART_EXPERT;
	report(walk, tensor, 3, shape);
	walk->part = XFP_PART_NONE;
	if (bias)
		expect_matrix(walk, bias, d->experts, rows);
}

/* The shared expert. If the config has none, its tensors must not exist. */
static void walk_shared(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	const struct xfp_expert_names *names = d->expert_names;
	const char *const all[] = { names->shared_gate, names->shared_up, names->shared_down };

	walk->part = XFP_PART_ROUTER;
	if (names->shared_router)
		expect_matrix(walk, names->shared_router, 1, d->hidden);
	walk->part = XFP_PART_SHARED;
	for (size_t i = 0; i < 3; i++) {
		bool down = i == 2;

		expect_no_bias(walk, all[i]);
		if (d->shared_intermediate)
			expect_matrix(walk, all[i], down ? d->hidden : d->shared_intermediate,
				      down ? d->shared_intermediate : d->hidden);
		else
			expect_vector(walk, all[i], false, 0);
	}
}

static void walk_experts(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	const struct xfp_expert_names *names = d->expert_names;
	const char *router = xfp_router_name(names, walk->names->stacked);
	const char *correction = xfp_correction_name(names, walk->names->stacked);
	char tensor[XFP_TENSOR_NAME];

	walk->part = XFP_PART_ROUTER;
	expect_matrix(walk, router, d->experts, d->hidden);
	walk->part = XFP_PART_NONE;
	if (names->router_bias)
		expect_vector(walk, names->router_bias, true, d->experts);
	else
		expect_no_bias(walk, router);
	if (correction && names->correction_row)
		expect_matrix(walk, correction, 1, d->experts);
	else
		expect_vector(walk, correction ? correction : "mlp.gate.e_score_correction_bias", correction,
			      d->experts);
	if (names->shared_gate)
		walk_shared(walk);
	if (walk->names->stacked) {
		expect_stack(walk, names->gate_up_stack, names->gate_up_bias, 2 * (uint64_t)d->expert_intermediate,
			     d->hidden);
		expect_stack(walk, names->down_stack, names->down_bias, d->hidden, d->expert_intermediate);
		return;
	}
	walk->part = XFP_PART_EXPERT;
	for (uint32_t e = 0; !walk->ended && e < walk->experts; e++) {
		xfp_expert_tensor(tensor, walk->names, walk->layer, d->expert_names->gate, e);
		expect(walk, tensor, d->expert_intermediate, d->hidden);
		xfp_expert_tensor(tensor, walk->names, walk->layer, d->expert_names->up, e);
		expect(walk, tensor, d->expert_intermediate, d->hidden);
		xfp_expert_tensor(tensor, walk->names, walk->layer, d->expert_names->down, e);
		expect(walk, tensor, d->hidden, d->expert_intermediate);
	}
}

/* A matrix or an embedding, NAME.weight, of an encoder's layer, with its bias. */
static void expect_dense(struct tensor_walk *walk, const char *name, uint64_t rows, uint64_t cols)
{
	char part[64];

	snprintf(part, sizeof part, "%s.weight", name);
	expect_matrix(walk, part, rows, cols);
	snprintf(part, sizeof part, "%s.bias", name);
	expect_vector(walk, part, true, rows);
}

/* `norm` is the tensors' name without "weight" and "bias". */
static void expect_layer_norm(struct tensor_walk *walk, const char *norm)
{
	char tensor[XFP_TENSOR_NAME];

	for (int bias = 0; bias < 2; bias++) {
		xfp_layer_norm_tensor(tensor, walk->names, norm, bias);
		expect(walk, tensor, walk->description->hidden, 0);
	}
}

static void walk_encoder_layer(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	char tensor[XFP_TENSOR_NAME];

	walk->part = XFP_PART_ATTENTION;
	expect_dense(walk, "attention.self.query", d->hidden, d->hidden);
	expect_dense(walk, "attention.self.key", d->hidden, d->hidden);
	expect_dense(walk, "attention.self.value", d->hidden, d->hidden);
	expect_dense(walk, "attention.output.dense", d->hidden, d->hidden);
	xfp_layer_tensor(tensor, walk->names, walk->layer, "attention.output.LayerNorm");
	expect_layer_norm(walk, tensor);
	walk->part = XFP_PART_MLP;
	expect_dense(walk, "intermediate.dense", d->intermediate, d->hidden);
	expect_dense(walk, "output.dense", d->hidden, d->intermediate);
	xfp_layer_tensor(tensor, walk->names, walk->layer, "output.LayerNorm");
	expect_layer_norm(walk, tensor);
	expect_vector(walk, "crossattention.self.query.weight", false, 0);
}

static void walk_layer(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	const struct xfp_layer *layer = &d->layer[walk->layer];

	if (d->encoder) {
		walk_encoder_layer(walk);
	} else {
		walk_norms(walk);
		walk->part = XFP_PART_ATTENTION;
		(layer->delta ? walk_delta : d->latent.kv_rank ? walk_latent : walk_attention)(walk);
		walk->part = XFP_PART_MLP;
		(layer->experts ? walk_experts : walk_mlp)(walk);
	}
	walk->part = XFP_PART_NONE;
}

static void walk_encoder(struct tensor_walk *walk)
{
	static const char *const embedded[] = { "word", "position", "token_type" };
	const struct xfp_description *d = walk->description;
	const uint32_t rows[] = { d->vocabulary, d->context, d->token_types };
	char tensor[XFP_TENSOR_NAME], name[64];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "embeddings.%s_embeddings.weight", embedded[i]);
		xfp_body_tensor(tensor, walk->names, name);
		expect(walk, tensor, rows[i], d->hidden);
	}
	xfp_body_tensor(tensor, walk->names, "embeddings.LayerNorm");
	expect_layer_norm(walk, tensor);
	for (; !walk->ended && walk->layer < d->layers; walk->layer++)
		walk_layer(walk);
	expect_vector(walk, "output.dense.bias", false, 0); /* one layer too many */
}

void xfp_each_tensor(const struct xfp_description *description, const struct xfp_tensor_names *names,
		     bool (*each)(void *context, const struct xfp_required_tensor *tensor), void *context)
{
	struct tensor_walk walk = { description, names, each, context, .experts = description->experts };
	char tensor[XFP_TENSOR_NAME];

	if (description->encoder) {
		walk_encoder(&walk);
		return;
	}
	xfp_embedding_tensor(tensor, names);
	expect(&walk, tensor, description->vocabulary, description->hidden);
	for (; !walk.ended && walk.layer < description->layers; walk.layer++)
		walk_layer(&walk);
	if (!description->mtp_layers)
		expect_vector(&walk, "input_layernorm.weight", false, 0); /* one layer too many */
	xfp_body_tensor(tensor, names, "norm.weight");
	expect(&walk, tensor, description->hidden, 0);
	if (!description->tied)
		expect(&walk, names->head, description->vocabulary, description->hidden);
}

void xfp_each_layer_tensor(const struct xfp_description *description, const struct xfp_tensor_names *names,
			   uint32_t layer, uint32_t experts,
			   bool (*each)(void *context, const struct xfp_required_tensor *tensor), void *context)
{
	struct tensor_walk walk = { description, names, each, context, .experts = experts, .layer = layer };

	walk_layer(&walk);
}

/* ---- sizes of a layer's matrices ------------------------------------------------------------------- */

struct measure {
	const struct xfp_description *description;
	struct xfp_layer_shape shape;
};

static void add_matrix(struct xfp_part_shape *part, uint64_t rows, uint64_t cols)
{
	part->weights = xfp_add_sat(part->weights, xfp_mul_sat(rows, cols));
	part->rows += rows;
	part->inputs += cols;
	part->cols = cols > part->cols ? cols : part->cols;
}

/* Vectors and convolutions are not matrices of a product. */
static bool measure_tensor(void *context, const struct xfp_required_tensor *tensor)
{
	struct measure *measure = context;
	struct xfp_part_shape *part = &measure->shape.part[tensor->part];
	const uint64_t *shape = tensor->shape;

	if (tensor->part == XFP_PART_NONE)
		return true;
	if (tensor->rank == 3 && tensor->part == XFP_PART_EXPERT) {
		bool transposed = measure->description->expert_names->transposed;

		add_matrix(part, shape[transposed ? 2 : 1], shape[transposed ? 1 : 2]);
	} else if (tensor->rank == 2) {
		add_matrix(part, shape[0], shape[1]);
	}
	return true;
}

struct xfp_layer_shape xfp_layer_shape(const struct xfp_description *description, uint32_t layer)
{
	const bool stacked = description->experts && !description->expert_names->gate;
	const struct xfp_tensor_names names = { .body = "", .stacked = stacked, .encoder = description->encoder };
	struct measure measure = { .description = description };

	xfp_each_layer_tensor(description, &names, layer, 1, measure_tensor, &measure);
	return measure.shape;
}

static uint64_t weights_with(const struct xfp_layer_shape *shape, uint64_t experts)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < XFP_PARTS; i++)
		sum = xfp_add_sat(sum, xfp_mul_sat(shape->part[i].weights, i == XFP_PART_EXPERT ? experts : 1));
	return sum;
}

uint64_t xfp_layer_products(const struct xfp_description *description, const struct xfp_layer_shape *shape)
{
	return weights_with(shape, description->experts_per_token);
}

uint64_t xfp_layer_reads(const struct xfp_description *description, const struct xfp_layer_shape *shape,
			 uint64_t tokens)
{
	uint64_t selected = xfp_mul_sat(tokens, description->experts_per_token);

	return weights_with(shape, selected < description->experts ? selected : description->experts);
}
