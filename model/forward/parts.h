/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - the parts of a layer. Private to model/forward/.
 *
 * All products of weights and activations are computed by xfp_forward_maps, except those of stacked experts with
 * XFP_FAST (by_stacks in mlp.c).
 */
#ifndef XFP_FORWARD_PARTS_H
#define XFP_FORWARD_PARTS_H

#include "model/forward/forward.h"

#define XFP_TENSOR_NAME 160
#define XFP_BLOCK_BYTES 0x400000 /* rows of a matrix that are read at a time, as floats */
#define XFP_STACK_PRODUCTS 256   /* of stacked experts, up to which those of all tokens are multiplied together */

/* Allocate tokens * width floats; NULL if out of memory, or on overflow. */
float *xfp_floats(size_t tokens, size_t width);

/* Write "model.NAME", with the prefix of the model's tensors. */
void xfp_body_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, const char *name);
/* Write the name of the word embedding. */
void xfp_embedding_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names);
/* Write "model.layers.LAYER.NAME", with the prefix of the model's tensors. */
void xfp_layer_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, uint32_t layer,
		      const char *name);
/* Write "model.layers.LAYER.mlp.NAME", with the name of the layer's MLP. */
void xfp_mlp_tensor(char text[XFP_TENSOR_NAME], const struct xfp_description *description,
		    const struct xfp_tensor_names *names, uint32_t layer, const char *name);
/* The name of a layer's tensor, with the expert's number for %u. */
void xfp_expert_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, uint32_t layer,
		       const char *name, uint32_t expert);

/* Names of the router's tensors in a layer. */
static inline const char *xfp_router_name(const struct xfp_expert_names *names, bool stacked)
{
	return stacked && names->stack_router ? names->stack_router : names->router;
}

static inline const char *xfp_correction_name(const struct xfp_expert_names *names, bool stacked)
{
	return stacked && names->stack_correction ? names->stack_correction : names->correction;
}

/* The vectors that a matrix of an expert multiplies, for observers. */
struct xfp_expert_vectors {
	uint32_t expert;
	bool stacked;
	const uint32_t *tokens; /* NULL: there is no observer */
};

/* y[t][0 ... rows) = W x[t] + bias, for rows [first, first + rows) of a matrix of `cols` columns. `input` names x,
 * which has the vectors of all tokens if `expert` is NULL. `bias` names a tensor, or is NULL. Vectors of x are `cols`
 * apart, those of y `rows`. */
struct xfp_linear_map {
	const char *input;
	const struct xfp_expert_vectors *expert;
	const char *tensor, *bias;
	const struct xfp_view *part;      /* where the matrix is in a fused tensor; NULL: it is the tensor */
	const struct xfp_view *bias_part; /* the same for the bias, a row */
	size_t first, rows, cols;
};
enum xfp_status xfp_forward_map(const struct xfp_forward *forward, const struct xfp_linear_map *map, const float *x,
				size_t count, float *y, struct xfp_error *err);
/* Up to XFP_WEIGHT_PRODUCTS maps of the same x, in one product with XFP_FAST. */
enum xfp_status xfp_forward_maps(const struct xfp_forward *forward, const struct xfp_linear_map *maps,
				 float *const *outputs, size_t map_count, const float *x, size_t count,
				 struct xfp_error *err);

/* Read all `size` numbers of a one-dimensional tensor. */
enum xfp_status xfp_forward_vector(const struct xfp_forward *forward, const char *tensor, size_t size, float *out,
				   struct xfp_error *err);
/* Read a row of a tensor. */
enum xfp_status xfp_forward_row(const struct xfp_forward *forward, const char *tensor, const struct xfp_view *row,
				float *out, struct xfp_error *err);

/* Read the weights of a norm, with the description's offset added. */
enum xfp_status xfp_forward_norm_weights(const struct xfp_forward *forward, const char *tensor, size_t size, float *out,
					 struct xfp_error *err);

/* y = weight x / sqrt(mean of x^2 + epsilon), for `count` vectors of `size`; y may be x. NULL: the weights are 1. */
void xfp_rms_norm(const float *x, size_t count, size_t size, const float *weight, double epsilon, float *y);

/* a becomes activation(a) b, for `count` vectors. b is NULL if the MLP has no gate. */
enum xfp_status xfp_forward_activate(const struct xfp_forward *forward, float *a, const float *b, size_t width,
				     size_t count, struct xfp_error *err);

/* Attention, linear attention and MLP of a layer: y[token][hidden] from normalized activations x. */
enum xfp_status xfp_forward_attention(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				      struct xfp_error *err);
/* Queries and keys, [token][heads][head_dim], not yet rotated, and values, [token][heads][value_dim], of multi-head
 * latent attention. */
enum xfp_status xfp_forward_latent(const struct xfp_forward *forward, uint32_t layer, const float *x, float *queries,
				   float *keys, float *values, struct xfp_error *err);
enum xfp_status xfp_forward_delta(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				  struct xfp_error *err);
enum xfp_status xfp_forward_mlp(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				struct xfp_error *err);

/* ---- encoders (encoder.c) -------------------------------------------------------------------------- */

/* Write the name of the weights, or the bias, of a LayerNorm. */
void xfp_layer_norm_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, const char *norm,
			   bool bias);
/* x[token][hidden] are embeddings of words, and become the input of the first layer. */
enum xfp_status xfp_encoder_embed(const struct xfp_forward *forward, float *x, struct xfp_error *err);
enum xfp_status xfp_encoder_layer(const struct xfp_forward *forward, uint32_t layer, float *x, struct xfp_error *err);

#endif
