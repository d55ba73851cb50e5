/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.h - the tensors that a description requires, and sizes of a layer's matrices, from which predictions of
 * memory and time derive.
 */
#ifndef XFP_TENSORS_H
#define XFP_TENSORS_H

#include "model/forward/forward.h"

/* Find the prefix of the model's tensor names: that of a text model ("model."), of a multimodal one, or of one without
 * an output head; with experts in separate tensors or stacked. */
const struct xfp_tensor_names *xfp_find_names(const struct xfp_description *description,
					      const struct xfp_weights *weights);

/* What a matrix of a layer belongs to. */
enum xfp_layer_part {
	XFP_PART_NONE, /* not a matrix that multiplies each token */
	XFP_PART_ATTENTION,
	XFP_PART_MLP,
	XFP_PART_ROUTER,
	XFP_PART_EXPERT,
	XFP_PART_SHARED, /* the shared expert */
	XFP_PARTS
};

/* A tensor that a description requires, or with rank 0 one that must not exist, because it would change what the model
 * computes. */
struct xfp_required_tensor {
	const char *name;
	uint32_t rank;
	const uint64_t *shape;
	enum xfp_layer_part part;
};

/* Call `each` for every required tensor. Stop when it returns false. */
void xfp_each_tensor(const struct xfp_description *description, const struct xfp_tensor_names *names,
		     bool (*each)(void *context, const struct xfp_required_tensor *tensor), void *context);
/* The same for the tensors of a layer, with only the first `experts` experts if they are separate tensors. */
void xfp_each_layer_tensor(const struct xfp_description *description, const struct xfp_tensor_names *names,
			   uint32_t layer, uint32_t experts,
			   bool (*each)(void *context, const struct xfp_required_tensor *tensor), void *context);

/* The matrices of a part of a layer. */
struct xfp_part_shape {
	uint64_t weights;
	uint64_t rows;   /* of all matrices: elements of their outputs for a token */
	uint64_t inputs; /* columns of all matrices: elements of their inputs for a token */
	uint64_t cols;   /* of the widest matrix */
};

struct xfp_layer_shape {
	struct xfp_part_shape part[XFP_PARTS]; /* XFP_PART_EXPERT: one expert */
};

struct xfp_layer_shape xfp_layer_shape(const struct xfp_description *description, uint32_t layer);

/* Weights that a token's products use, and those that are read if `tokens` tokens select different experts, as far as
 * there are so many. */
uint64_t xfp_layer_products(const struct xfp_description *description, const struct xfp_layer_shape *shape);
uint64_t xfp_layer_reads(const struct xfp_description *description, const struct xfp_layer_shape *shape,
			 uint64_t tokens);

/* XFP_BAD_INPUT if a tensor is missing, has another shape, or must not exist. */
enum xfp_status xfp_check_tensors(const struct xfp_description *description, const struct xfp_weights *weights,
				  const struct xfp_tensor_names *names, struct xfp_error *err);

#endif
