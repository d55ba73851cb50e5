/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/tensors.h"

#include <stdio.h>
#include <string.h>

#include "model/forward/parts.h"

/* With experts one by one, and stacked. */
#define NAMES(body, head)                      \
	{ body, head, false, false, false },   \
	{                                      \
		body, head, true, false, false \
	}
/* With new and old names of norms. */
#define ENCODER_NAMES(body)                 \
	{ body, "", false, true, false },   \
	{                                   \
		body, "", false, true, true \
	}

static const struct xfp_tensor_names all_names[] = {
	NAMES("model.", "lm_head.weight"),
	NAMES("model.language_model.", "lm_head.weight"),
	NAMES("language_model.model.", "language_model.lm_head.weight"),
	NAMES("", "lm_head.weight"),
	NAMES("language_model.", "lm_head.weight"),
	ENCODER_NAMES(""),
	ENCODER_NAMES("bert."),
};
#define FIRST_ENCODER (sizeof all_names / sizeof *all_names - 4)

static bool has_layer_tensor(const struct xfp_weights *weights, const struct xfp_tensor_names *names, uint32_t layer,
			     const char *name)
{
	uint64_t shape[XFP_MAX_RANK];
	char tensor[XFP_TENSOR_NAME];
	uint32_t rank;

	xfp_layer_tensor(tensor, names, layer, name);
	return xfp_weights_shape(weights, tensor, &rank, shape);
}

static bool has_stacks(const struct xfp_description *d, const struct xfp_weights *weights,
		       const struct xfp_tensor_names *names)
{
	if (d->experts && !d->expert_names->gate)
		return true;
	for (uint32_t i = 0; d->experts && d->expert_names->gate_up_stack && i < d->layers; i++) {
		if (d->layer[i].experts)
			return has_layer_tensor(weights, names, i, d->expert_names->gate_up_stack);
	}
	return false;
}

static bool has_old_norms(const struct xfp_weights *weights, const struct xfp_tensor_names *names)
{
	uint64_t shape[XFP_MAX_RANK];
	char tensor[XFP_TENSOR_NAME];
	uint32_t rank;

	xfp_body_tensor(tensor, names, "embeddings.LayerNorm.gamma");
	return names->encoder && xfp_weights_shape(weights, tensor, &rank, shape);
}

const struct xfp_tensor_names *xfp_find_names(const struct xfp_description *description,
					      const struct xfp_weights *weights)
{
	for (size_t i = 0; i < sizeof all_names / sizeof *all_names; i++) {
		uint64_t shape[XFP_MAX_RANK];
		char tensor[XFP_TENSOR_NAME];
		uint32_t rank;

		if (all_names[i].encoder != description->encoder)
			continue;
		xfp_embedding_tensor(tensor, &all_names[i]);
		if (xfp_weights_shape(weights, tensor, &rank, shape) &&
		    has_stacks(description, weights, &all_names[i]) == all_names[i].stacked &&
		    has_old_norms(weights, &all_names[i]) == all_names[i].gamma)
			return &all_names[i];
	}
	/* The check will report them as missing. */
	return &all_names[description->encoder ? FIRST_ENCODER
					       : description->experts && !description->expert_names->gate];
}

/* ---- required tensors ------------------------------------------------------------------------------ */

struct tensor_walk {
	const struct xfp_description *description;
	const struct xfp_tensor_names *names;
	bool (*each)(void *context, const char *tensor, uint32_t rank, const uint64_t *shape);
	void *context;
	uint32_t layer;
	bool ended;
};

static void report(struct tensor_walk *walk, const char *tensor, uint32_t rank, const uint64_t *shape)
{
	walk->ended = walk->ended || !walk->each(walk->context, tensor, rank, shape);
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
	uint64_t rows = (uint64_t)d->heads * d->head_dim, rotated = d->head_dim - latent->plain_dim;

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
	expect_matrix(walk, "self_attn.kv_b_proj.weight", d->heads * ((uint64_t)latent->plain_dim + d->value_dim),
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
	report(walk, tensor, 3, shape);
	if (bias)
		expect_matrix(walk, bias, d->experts, rows);
}

/* The shared expert. If the config has none, its tensors must not exist. */
static void walk_shared(struct tensor_walk *walk)
{
	const struct xfp_description *d = walk->description;
	const struct xfp_expert_names *names = d->expert_names;
	const char *const all[] = { names->shared_gate, names->shared_up, names->shared_down };

	if (names->shared_router)
		expect_matrix(walk, names->shared_router, 1, d->hidden);
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

	expect_matrix(walk, router, d->experts, d->hidden);
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
	for (uint32_t e = 0; !walk->ended && e < d->experts; e++) {
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
	for (; !walk->ended && walk->layer < d->layers; walk->layer++) {
		expect_dense(walk, "attention.self.query", d->hidden, d->hidden);
		expect_dense(walk, "attention.self.key", d->hidden, d->hidden);
		expect_dense(walk, "attention.self.value", d->hidden, d->hidden);
		expect_dense(walk, "attention.output.dense", d->hidden, d->hidden);
		xfp_layer_tensor(tensor, walk->names, walk->layer, "attention.output.LayerNorm");
		expect_layer_norm(walk, tensor);
		expect_dense(walk, "intermediate.dense", d->intermediate, d->hidden);
		expect_dense(walk, "output.dense", d->hidden, d->intermediate);
		xfp_layer_tensor(tensor, walk->names, walk->layer, "output.LayerNorm");
		expect_layer_norm(walk, tensor);
		expect_vector(walk, "crossattention.self.query.weight", false, 0);
	}
	expect_vector(walk, "output.dense.bias", false, 0); /* one layer too many */
}

void xfp_each_tensor(const struct xfp_description *description, const struct xfp_tensor_names *names,
		     bool (*each)(void *context, const char *tensor, uint32_t rank, const uint64_t *shape),
		     void *context)
{
	struct tensor_walk walk = { description, names, each, context, 0, false };
	char tensor[XFP_TENSOR_NAME];

	if (description->encoder) {
		walk_encoder(&walk);
		return;
	}
	xfp_embedding_tensor(tensor, names);
	expect(&walk, tensor, description->vocabulary, description->hidden);
	for (; !walk.ended && walk.layer < description->layers; walk.layer++) {
		walk_norms(&walk);
		(description->layer[walk.layer].delta ? walk_delta
		 : description->latent.kv_rank        ? walk_latent
						      : walk_attention)(&walk);
		(description->layer[walk.layer].experts ? walk_experts : walk_mlp)(&walk);
	}
	if (!description->more_layers)
		expect_vector(&walk, "input_layernorm.weight", false, 0); /* one layer too many */
	xfp_body_tensor(tensor, names, "norm.weight");
	expect(&walk, tensor, description->hidden, 0);
	if (!description->tied)
		expect(&walk, names->head, description->vocabulary, description->hidden);
}

/* ---- checking the model's tensors ------------------------------------------------------------------ */

struct tensor_check {
	const struct xfp_weights *weights;
	enum xfp_status status;
	struct xfp_error *err;
};

static bool check_tensor(void *context, const char *tensor, uint32_t wanted, const uint64_t *shape)
{
	struct tensor_check *check = context;
	const char *path = xfp_weights_path(check->weights);
	uint64_t has[XFP_MAX_RANK] = { 0 };
	uint32_t rank = 0;
	bool there, same;

	there = xfp_weights_shape(check->weights, tensor, &rank, has);
	same = rank == wanted && !memcmp(has, shape, wanted * sizeof *shape);
	if (there && !wanted)
		check->status = xfp_fail(
			check->err, XFP_BAD_INPUT,
			"%s: has %s, which its config does not describe; it may belong to another model", path, tensor);
	else if (!there && wanted)
		check->status =
			xfp_fail(check->err, XFP_BAD_INPUT,
				 "%s: has no tensor %s, which its config requires; it may belong to another model",
				 path, tensor);
	else if (there && !same)
		check->status = xfp_fail(
			check->err, XFP_BAD_INPUT,
			"%s: %s is not [%ju%s%.0ju%s%.0ju], as its config requires; it may belong to another model",
			path, tensor, (uintmax_t)shape[0], wanted > 1 ? ", " : "", wanted > 1 ? (uintmax_t)shape[1] : 0,
			wanted > 2 ? ", " : "", wanted > 2 ? (uintmax_t)shape[2] : 0);
	return !check->status;
}

/* A layer after the last must be one of multi-token prediction, which has eh_proj. */
static void check_next_layer(struct tensor_check *check, const struct xfp_description *d,
			     const struct xfp_tensor_names *names)
{
	if (has_layer_tensor(check->weights, names, d->layers, "input_layernorm.weight") &&
	    !has_layer_tensor(check->weights, names, d->layers, "eh_proj.weight"))
		check->status =
			xfp_fail(check->err, XFP_BAD_INPUT,
				 "%s: has a layer %u, but its config has num_hidden_layers %u; it may belong to "
				 "another model",
				 xfp_weights_path(check->weights), (unsigned)d->layers, (unsigned)d->layers);
}

enum xfp_status xfp_check_tensors(const struct xfp_description *description, const struct xfp_weights *weights,
				  const struct xfp_tensor_names *names, struct xfp_error *err)
{
	struct tensor_check check = { .weights = weights, .err = err };

	xfp_each_tensor(description, names, check_tensor, &check);
	if (!check.status && description->more_layers)
		check_next_layer(&check, description, names);
	return check.status;
}
