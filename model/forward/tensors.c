/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/tensors.h"

#include <stdio.h>
#include <string.h>

#include "model/forward/parts.h"

struct tensor_check {
	const struct xfp_description *description;
	const struct xfp_weights *weights;
	uint32_t layer;
	enum xfp_status status;
	struct xfp_error *err;
};

/* `cols` 0: of one dimension. */
static void expect(struct tensor_check *check, const char *name, uint64_t rows, uint64_t cols)
{
	const char *path = xfp_weights_path(check->weights);
	uint64_t shape[XFP_MAX_RANK] = { 0 };
	uint32_t rank = 0;

	if (check->status)
		return;
	if (!xfp_weights_shape(check->weights, name, &rank, shape))
		check->status = xfp_fail(
			check->err, XFP_BAD_INPUT,
			"%s: has no tensor %s, which its config speaks of; it may belong to another model", path, name);
	else if (rank != (cols ? 2 : 1) || shape[0] != rows || (cols && shape[1] != cols))
		check->status = xfp_fail(
			check->err, XFP_BAD_INPUT,
			"%s: %s is not [%ju%s%.0ju], which its config makes it; it may belong to another model", path,
			name, (uintmax_t)rows, cols ? ", " : "", (uintmax_t)cols);
}

static void expect_absent(struct tensor_check *check, const char *name)
{
	uint64_t shape[XFP_MAX_RANK];
	uint32_t rank;

	if (!check->status && xfp_weights_shape(check->weights, name, &rank, shape))
		check->status =
			xfp_fail(check->err, XFP_BAD_INPUT,
				 "%s: has %s, of which its config does not speak; it may belong to another model",
				 xfp_weights_path(check->weights), name);
}

/* A tensor of one dimension that the description has, or has not. */
static void expect_vector(struct tensor_check *check, const char *name, bool there, uint64_t size)
{
	char tensor[XFP_TENSOR_NAME];

	xfp_layer_tensor(tensor, check->layer, name);
	if (there)
		expect(check, tensor, size, 0);
	else
		expect_absent(check, tensor);
}

static void expect_matrix(struct tensor_check *check, const char *name, uint64_t rows, uint64_t cols)
{
	char tensor[XFP_TENSOR_NAME];

	xfp_layer_tensor(tensor, check->layer, name);
	expect(check, tensor, rows, cols);
}

static void check_attention(struct tensor_check *check)
{
	const struct xfp_description *d = check->description;
	uint64_t rows = (uint64_t)d->heads * d->head_dim, kv_rows = (uint64_t)d->kv_heads * d->head_dim;

	expect_vector(check, "input_layernorm.weight", true, d->hidden);
	expect_matrix(check, "self_attn.q_proj.weight", rows, d->hidden);
	expect_matrix(check, "self_attn.k_proj.weight", kv_rows, d->hidden);
	expect_matrix(check, "self_attn.v_proj.weight", kv_rows, d->hidden);
	expect_matrix(check, "self_attn.o_proj.weight", d->hidden, rows);
	expect_vector(check, "self_attn.q_proj.bias", d->qkv_bias, rows);
	expect_vector(check, "self_attn.k_proj.bias", d->qkv_bias, kv_rows);
	expect_vector(check, "self_attn.v_proj.bias", d->qkv_bias, kv_rows);
	expect_vector(check, "self_attn.o_proj.bias", d->output_bias, d->hidden);
	expect_vector(check, "self_attn.q_norm.weight", d->query_key_norm, d->head_dim);
	expect_vector(check, "self_attn.k_norm.weight", d->query_key_norm, d->head_dim);
	expect_vector(check, "post_attention_layernorm.weight", true, d->hidden);
}

static void check_mlp(struct tensor_check *check)
{
	const struct xfp_description *d = check->description;

	expect_matrix(check, "mlp.gate_proj.weight", d->intermediate, d->hidden);
	expect_matrix(check, "mlp.up_proj.weight", d->intermediate, d->hidden);
	expect_matrix(check, "mlp.down_proj.weight", d->hidden, d->intermediate);
	expect_vector(check, "mlp.gate_proj.bias", d->mlp_bias, d->intermediate);
	expect_vector(check, "mlp.up_proj.bias", d->mlp_bias, d->intermediate);
	expect_vector(check, "mlp.down_proj.bias", d->mlp_bias, d->hidden);
}

static void check_experts(struct tensor_check *check)
{
	const struct xfp_description *d = check->description;
	char tensor[XFP_TENSOR_NAME];

	expect_matrix(check, d->expert_names->router, d->experts, d->hidden);
	for (uint32_t e = 0; e < d->experts; e++) {
		xfp_expert_tensor(tensor, check->layer, d->expert_names->gate, e);
		expect(check, tensor, d->expert_intermediate, d->hidden);
		xfp_expert_tensor(tensor, check->layer, d->expert_names->up, e);
		expect(check, tensor, d->expert_intermediate, d->hidden);
		xfp_expert_tensor(tensor, check->layer, d->expert_names->down, e);
		expect(check, tensor, d->hidden, d->expert_intermediate);
	}
}

enum xfp_status xfp_check_tensors(const struct xfp_description *description, const struct xfp_weights *weights,
				  struct xfp_error *err)
{
	struct tensor_check check = { .description = description, .weights = weights, .err = err };
	char beyond[XFP_TENSOR_NAME];

	expect(&check, "model.embed_tokens.weight", description->vocabulary, description->hidden);
	for (; !check.status && check.layer < description->layers; check.layer++) {
		check_attention(&check);
		(description->layer[check.layer].experts ? check_experts : check_mlp)(&check);
	}
	xfp_layer_tensor(beyond, description->layers, "input_layernorm.weight");
	expect_absent(&check, beyond);
	expect(&check, "model.norm.weight", description->hidden, 0);
	if (!description->tied)
		expect(&check, "lm_head.weight", description->vocabulary, description->hidden);
	return check.status;
}
