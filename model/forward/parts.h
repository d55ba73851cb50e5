/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - what a layer is made of. Private to model/forward/.
 */
#ifndef XFP_FORWARD_PARTS_H
#define XFP_FORWARD_PARTS_H

#include "model/forward/forward.h"

#define XFP_TENSOR_NAME 160
#define XFP_BLOCK_BYTES 0x400000            /* of a matrix's rows that are read at a time, as floats */
#define XFP_STACK_PRODUCTS 256              /* of experts, up to which those that are chosen are multiplied together */
#define XFP_EMBEDDING "embed_tokens.weight" /* of words, behind what names begin with */

/* Floats for `tokens` times `width` numbers; NULL when they are too many. */
float *xfp_floats(size_t tokens, size_t width);

/* "model.NAME" into `text`, or with whatever else the model's tensors begin with. */
void xfp_body_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, const char *name);
/* "model.layers.LAYER.NAME" likewise. */
void xfp_layer_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, uint32_t layer,
		      const char *name);
/* Likewise with the number of an expert for %u. */
void xfp_expert_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, uint32_t layer,
		       const char *name, uint32_t expert);

/* y[t][0 ... rows) = W x[t] of rows [first, first + rows) of a matrix of `cols` columns, and `bias`, if that is no
 * NULL, added to it (a tensor's name). Vectors are `cols` and `rows` apart. */
struct xfp_linear_map {
	const char *tensor, *bias;
	const struct xfp_view *part; /* the matrix, where it is part of a fused tensor; NULL: it is all of the tensor */
	size_t first, rows, cols;
};
enum xfp_status xfp_forward_map(const struct xfp_forward *forward, const struct xfp_linear_map *map, const float *x,
				size_t count, float *y, struct xfp_error *err);

/* All `size` numbers of a tensor of one dimension. */
enum xfp_status xfp_forward_vector(const struct xfp_forward *forward, const char *tensor, size_t size, float *out,
				   struct xfp_error *err);

/* Likewise of a norm's weights, to which the description's offset is added. */
enum xfp_status xfp_forward_norm_weights(const struct xfp_forward *forward, const char *tensor, size_t size, float *out,
					 struct xfp_error *err);

/* y = x / sqrt(mean of x^2 + epsilon) weight, for `count` vectors of `size`; y may be x. */
void xfp_rms_norm(const float *x, size_t count, size_t size, const float *weight, double epsilon, float *y);

/* What attention, linear attention, and the feed-forward part of a layer make of normed activations:
 * y[token][hidden]. */
enum xfp_status xfp_forward_attention(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				      struct xfp_error *err);
enum xfp_status xfp_forward_delta(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				  struct xfp_error *err);
enum xfp_status xfp_forward_mlp(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
				struct xfp_error *err);

#endif
