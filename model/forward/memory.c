/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/memory.h"

#include <string.h>

#include "base/bytes.h"
#include "model/forward/parts.h"
#include "model/forward/product.h"
#include "model/forward/tensors.h"

/* Numbers of one token, of the layer that is being walked through, and of the largest so far. */
struct layer_widths {
	char layer[XFP_TENSOR_NAME]; /* what its tensors' names begin with */
	uint64_t made,
		most_made; /* by all its matrices but those of experts, which are made at the same time at most */
	uint64_t most_cols;
};

/* "model.layers.12." */
static size_t layer_length(const char *tensor)
{
	const char *at = strstr(tensor, "layers."), *end = at ? strchr(at + strlen("layers."), '.') : NULL;

	return end ? (size_t)(end - tensor) + 1 : 0;
}

static bool add_tensor(void *context, const char *tensor, uint32_t rank, const uint64_t *shape)
{
	struct layer_widths *w = context;
	size_t length = layer_length(tensor);

	if (rank < 2 || length >= sizeof w->layer)
		return true;
	if (shape[rank - 1] > w->most_cols)
		w->most_cols = shape[rank - 1];
	if (!length || strstr(tensor, ".experts."))
		return true;
	if (strncmp(tensor, w->layer, length) || w->layer[length]) {
		memcpy(w->layer, tensor, length);
		w->layer[length] = 0;
		w->made = 0;
	}
	/* Linear attention has what its projections make, and once more what a convolution makes of that. */
	w->made += strstr(tensor, "linear_attn.") ? 2 * shape[0] : shape[0];
	if (w->made > w->most_made)
		w->most_made = w->made;
	return true;
}

uint64_t xfp_forward_bytes(const struct xfp_forward *forward, size_t sequences, unsigned threads)
{
	const struct xfp_description *d = forward->description;
	uint64_t length = forward->length, tokens = xfp_mul_sat(sequences, length), width, block, own, quad;
	struct layer_widths w = { .most_cols = d->hidden };

	xfp_each_tensor(d, forward->names, add_tensor, &w);
	/* x normed and what is made of it; what all matrices make; what goes into the last of a half, and a gate of
	 * that; panels. */
	width = 2 * (uint64_t)d->hidden + w.most_made + 3 * w.most_cols;
	/* Vectors as libxfp's kernels want them. */
	if (forward->form == XFP_FAST)
		width += 2 * w.most_cols;
	/* Weights of experts, tokens gathered for one, and what it makes. */
	if (d->experts)
		width += d->experts + 2 * (uint64_t)d->hidden + 2 * (uint64_t)d->expert_intermediate;
	/* Or what all that few tokens chose make, and vectors for that. */
	if (d->experts && forward->form == XFP_FAST && xfp_mul_sat(tokens, d->chosen) <= XFP_STACK_PRODUCTS)
		width += d->chosen * (2 * (uint64_t)d->expert_intermediate + 2 * w.most_cols);
	block = xfp_mul_sat(XFP_QUAD * sizeof(float), w.most_cols);
	block = 2 * (block > XFP_BLOCK_BYTES ? block : XFP_BLOCK_BYTES); /* as floats, and as a file has them */
	own = xfp_add_sat(xfp_mul_sat(length + d->head_dim, sizeof(double)),
			  xfp_mul_sat(xfp_mul_sat(length, d->head_dim), sizeof(float)));
	quad = xfp_mul_sat(XFP_QUAD * sizeof(double), w.most_cols);
	own = own > quad ? own : quad;
	return xfp_add_sat(
		xfp_add_sat(xfp_mul_sat(xfp_mul_sat(xfp_add_sat(tokens, XFP_PANEL), width), sizeof(float)), block),
		xfp_mul_sat(own, threads));
}
