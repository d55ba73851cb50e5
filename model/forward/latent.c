/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multi-head latent attention: queries, keys and values of all heads from compressed vectors. Keys and values are
 * expanded, so attention.c computes them like any others.
 */
#include <stdlib.h>
#include <string.h>

#include "model/forward/parts.h"

#define LATENT_EPSILON 1e-6 /* of the norms of compressed vectors, whatever the config says */

/* A projection of all tokens; `bias` names a tensor of the layer, or is NULL. */
static enum xfp_status project(const struct xfp_forward *forward, uint32_t layer, const char *weight, const char *bias,
			       const char *input, size_t rows, size_t cols, const float *x, float *y,
			       struct xfp_error *err)
{
	char tensor[XFP_TENSOR_NAME], bias_tensor[XFP_TENSOR_NAME];
	struct xfp_linear_map map = {
		.input = input, .tensor = tensor, .bias = bias ? bias_tensor : NULL, .rows = rows, .cols = cols
	};

	xfp_layer_tensor(tensor, forward->names, layer, weight);
	if (bias)
		xfp_layer_tensor(bias_tensor, forward->names, layer, bias);
	return xfp_forward_map(forward, &map, x, forward->tokens, y, err);
}

/* Normalize compressed vectors in place. */
static enum xfp_status normalize(const struct xfp_forward *forward, uint32_t layer, const char *name, size_t size,
				 float *x, struct xfp_error *err)
{
	char tensor[XFP_TENSOR_NAME];
	float *weight = xfp_floats(1, size);
	enum xfp_status status;

	xfp_layer_tensor(tensor, forward->names, layer, name);
	status = weight ? xfp_forward_norm_weights(forward, tensor, size, weight, err) : xfp_no_memory(err);
	if (!status)
		xfp_rms_norm(x, forward->tokens, size, weight, LATENT_EPSILON, x);
	free(weight);
	return status;
}

static enum xfp_status make_queries(const struct xfp_forward *forward, uint32_t layer, const float *x, float *queries,
				    struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t rows = (size_t)d->heads * d->head_dim, rank = d->latent.query_rank;
	float *compressed;
	enum xfp_status status;

	if (!rank)
		return project(forward, layer, "self_attn.q_proj.weight", NULL, XFP_INPUT_ATTENTION, rows, d->hidden, x,
			       queries, err);
	if (!(compressed = xfp_floats(forward->tokens, rank)))
		return xfp_no_memory(err);
	if (!(status = project(forward, layer, "self_attn.q_a_proj.weight",
			       d->qkv_bias ? "self_attn.q_a_proj.bias" : NULL, XFP_INPUT_ATTENTION, rank, d->hidden, x,
			       compressed, err)) &&
	    !(status = normalize(forward, layer, "self_attn.q_a_layernorm.weight", rank, compressed, err)))
		status = project(forward, layer, "self_attn.q_b_proj.weight", NULL, XFP_INPUT_QUERY_LATENT, rows, rank,
				 compressed, queries, err);
	free(compressed);
	return status;
}

/* Move the rotated part, which follows each compressed vector, to the keys of all heads, and close the gaps. */
static void split_rotated(const struct xfp_forward *forward, float *compressed, float *keys)
{
	const struct xfp_description *d = forward->description;
	size_t rank = d->latent.kv_rank, rotated = d->head_dim - d->latent.nope_dim;

	for (size_t t = 0; t < forward->tokens; t++) {
		const float *from = compressed + t * (rank + rotated);

		for (size_t h = 0; h < d->heads; h++, keys += d->head_dim)
			memcpy(keys + d->latent.nope_dim, from + rank, rotated * sizeof *keys);
		memmove(compressed + t * rank, from, rank * sizeof *compressed);
	}
}

/* Each head of the expanded vectors is the first part of a key, and then a value. */
static void split_expanded(const struct xfp_forward *forward, const float *expanded, float *keys, float *values)
{
	const struct xfp_description *d = forward->description;
	size_t plain = d->latent.nope_dim;

	for (size_t i = 0; i < forward->tokens * d->heads; i++, expanded += plain + d->value_dim) {
		memcpy(keys + i * d->head_dim, expanded, plain * sizeof *keys);
		memcpy(values + i * d->value_dim, expanded + plain, d->value_dim * sizeof *values);
	}
}

enum xfp_status xfp_forward_latent(const struct xfp_forward *forward, uint32_t layer, const float *x, float *queries,
				   float *keys, float *values, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t rank = d->latent.kv_rank, rotated = d->head_dim - d->latent.nope_dim;
	size_t rows = d->heads * ((size_t)d->latent.nope_dim + d->value_dim);
	float *compressed = xfp_floats(forward->tokens, rank + rotated), *expanded = xfp_floats(forward->tokens, rows);
	enum xfp_status status = compressed && expanded ? XFP_OK : xfp_no_memory(err);

	if (status || (status = make_queries(forward, layer, x, queries, err)) ||
	    (status = project(forward, layer, "self_attn.kv_a_proj_with_mqa.weight",
			      d->qkv_bias ? "self_attn.kv_a_proj_with_mqa.bias" : NULL, XFP_INPUT_ATTENTION,
			      rank + rotated, d->hidden, x, compressed, err)))
		goto done;
	split_rotated(forward, compressed, keys);
	if ((status = normalize(forward, layer, "self_attn.kv_a_layernorm.weight", rank, compressed, err)) ||
	    (status = project(forward, layer, "self_attn.kv_b_proj.weight", NULL, XFP_INPUT_KV_LATENT, rows, rank,
			      compressed, expanded, err)))
		goto done;
	split_expanded(forward, expanded, keys, values);
done:
	free(compressed);
	free(expanded);
	return status;
}
