/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/memory.h"

#include "base/bytes.h"
#include "model/forward/lane_set.h"
#include "model/forward/parts.h"
#include "model/forward/product.h"
#include "model/forward/rope.h"
#include "model/forward/tensors.h"

#define FAST_BLOCK_BYTES 0x400000 /* stored rows that a fast product reads at a time, and their conversion */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Queries with their gates, keys and values, compressed ones too; then weighted sums of values, the gates once more,
 * and the keys and values that compressed ones are expanded to. */
static uint64_t attention_floats(const struct xfp_description *d, const struct xfp_part_shape *part)
{
	uint64_t gates = d->output_gate ? (uint64_t)d->heads * d->head_dim : 0;
	uint64_t expanded = d->latent.kv_rank ? d->kv_heads * ((uint64_t)d->head_dim + d->value_dim) : 0;

	return part->rows - d->hidden + (uint64_t)d->heads * d->value_dim + gates + expanded;
}

/* Channels of the convolution, gates, beta and decay. The output of a fused projection is copied. */
static uint64_t delta_floats(const struct xfp_description *d, const struct xfp_part_shape *part)
{
	const struct xfp_delta *delta = &d->delta;

	return part->rows - d->hidden +
	       (delta->by_heads ? xfp_delta_channels(delta) + delta->value_heads * delta->value_dim : 0);
}

/* Gate and up; or router probabilities, gathered tokens with their factors, gate, up and output of one expert, which
 * all tokens may select. */
static uint64_t mlp_floats(const struct xfp_description *d, const struct xfp_layer_shape *shape, bool experts)
{
	const struct xfp_part_shape *part = shape->part;

	if (!experts)
		return part[XFP_PART_MLP].rows - d->hidden;
	return part[XFP_PART_ROUTER].rows + d->hidden + d->router.input +
	       larger(part[XFP_PART_EXPERT].rows, part[XFP_PART_SHARED].rows);
}

/* Floats per token of a product's input: panels, or vectors prepared for the kernels of libxfp. */
static uint64_t vector_floats(const struct xfp_forward_batch *batch, uint64_t cols)
{
	return batch->arithmetic == XFP_FAST ? 2 * cols : cols;
}

/* Bytes of a few tokens' experts that are multiplied together (by_stacks in mlp.c). */
static uint64_t stack_bytes(const struct xfp_description *d, const struct xfp_forward_batch *batch)
{
	uint64_t products = xfp_mul_sat(batch->tokens, d->experts_per_token);

	if (batch->arithmetic != XFP_FAST || products > XFP_STACK_PRODUCTS)
		return 0;
	return products * (2 * (uint64_t)d->expert_intermediate + vector_floats(batch, d->expert_intermediate)) *
	       sizeof(float);
}

/* Rows of a matrix that are in memory at a time: as stored and, for XFP_REPRODUCIBLE, as floats. */
static uint64_t block_bytes(const struct xfp_forward_batch *batch, uint64_t cols)
{
	if (batch->arithmetic == XFP_FAST)
		return larger(FAST_BLOCK_BYTES, xfp_mul_sat(2 * sizeof(double), cols));
	return 2 * larger(XFP_BLOCK_BYTES, xfp_mul_sat(XFP_PRODUCT_ROWS * sizeof(float), cols));
}

/* Per thread: the scores of a query, or of some; for XFP_REPRODUCIBLE also transposed keys, or the doubles of a
 * product. */
static uint64_t thread_bytes(const struct xfp_description *d, const struct xfp_forward_batch *batch)
{
	uint64_t scores;

	if (batch->arithmetic == XFP_FAST)
		return xfp_mul_sat(xfp_add_sat(batch->positions, XFP_LANES), XFP_QUERIES * sizeof(float));
	scores = xfp_add_sat(xfp_mul_sat(xfp_add_sat(batch->positions, d->value_dim), sizeof(double)),
			     xfp_mul_sat(xfp_mul_sat(batch->positions, d->head_dim), sizeof(float)));
	return larger(scores, XFP_PRODUCT_SCRATCH * sizeof(double));
}

uint64_t xfp_forward_bytes(const struct xfp_description *d, const struct xfp_forward_batch *batch)
{
	uint64_t floats = 0, cols = d->hidden, tokens = xfp_add_sat(batch->tokens, XFP_PANEL), bytes;
	bool seen[2][2] = { { false } };

	for (uint32_t i = 0; i < d->layers; i++) {
		const bool delta = d->layer[i].delta, experts = d->layer[i].experts;
		struct xfp_layer_shape shape;

		if (seen[delta][experts])
			continue;
		seen[delta][experts] = true;
		shape = xfp_layer_shape(d, i);
		floats = larger(floats, (delta ? delta_floats : attention_floats)(d, &shape.part[XFP_PART_ATTENTION]));
		floats = larger(floats, mlp_floats(d, &shape, experts));
		for (unsigned part = 0; part < XFP_PARTS; part++)
			cols = larger(cols, shape.part[part].cols);
	}
	/* The normalized activations, and the output of the half. */
	floats = xfp_add_sat(floats, 2 * (uint64_t)d->hidden + vector_floats(batch, cols));
	bytes = xfp_add_sat(xfp_mul_sat(xfp_mul_sat(tokens, floats), sizeof(float)), block_bytes(batch, cols));
	if (d->experts)
		bytes = xfp_add_sat(bytes, stack_bytes(d, batch));
	return xfp_add_sat(bytes, xfp_mul_sat(thread_bytes(d, batch), batch->threads));
}

uint64_t xfp_forward_table_bytes(const struct xfp_description *d, size_t positions)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < d->ropes; i++) {
		const struct xfp_rope *rope = &d->rope[i];
		uint64_t tabled = positions;

		/* longrope: there is a table for short texts, too. */
		if (xfp_rope_is_long(rope, positions))
			tabled = xfp_add_sat(tabled, (uint64_t)rope->original_context);
		bytes = xfp_add_sat(bytes, xfp_mul_sat(tabled, rope->dim * sizeof(float)));
	}
	return bytes;
}
