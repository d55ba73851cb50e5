/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/memory.h"

#include "base/bytes.h"
#include "model/forward/lane_set.h"
#include "model/forward/parts.h"
#include "model/forward/product.h"
#include "model/forward/rope.h"

#define FAST_BLOCK_BYTES 0x400000 /* stored rows that a fast product reads at a time, and their conversion */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* One half of a layer (attention or MLP): floats per token, and columns of the widest matrix that multiplies them. */
struct half_widths {
	uint64_t floats, cols;
};

/* Compressed vectors of multi-head latent attention, and what they are expanded to. */
static uint64_t latent_floats(const struct xfp_description *d)
{
	const struct xfp_latent *latent = &d->latent;

	if (!latent->kv_rank)
		return 0;
	return (uint64_t)latent->query_rank + latent->kv_rank + (d->head_dim - latent->plain_dim) +
	       d->heads * ((uint64_t)latent->plain_dim + d->value_dim);
}

/* Queries with their gates, keys, values, weighted sums of values, and the gates once more. */
static struct half_widths attention_widths(const struct xfp_description *d)
{
	uint64_t rows = (uint64_t)d->heads * d->head_dim, kv_rows = (uint64_t)d->kv_heads * d->head_dim;
	uint64_t mixed = (uint64_t)d->heads * d->value_dim, values = (uint64_t)d->kv_heads * d->value_dim;

	return (struct half_widths){ (d->output_gate ? 3 : 1) * rows + mixed + kv_rows + values + latent_floats(d),
				     larger(larger(d->hidden, mixed),
					    larger(d->latent.query_rank, d->latent.kv_rank)) };
}

/* Channels of the convolution, gates, beta and decay. The output of a fused projection is copied. */
static struct half_widths delta_widths(const struct xfp_description *d)
{
	const struct xfp_delta *delta = &d->delta;
	uint64_t values = delta->value_heads * delta->value_dim, projected = xfp_delta_channels(delta) + values;

	return (struct half_widths){ (delta->by_heads ? 2 : 1) * projected + 2 * delta->value_heads,
				     larger(d->hidden, values) };
}

/* Gate and up. */
static struct half_widths dense_widths(const struct xfp_description *d)
{
	return (struct half_widths){ 2 * (uint64_t)d->intermediate, larger(d->hidden, d->intermediate) };
}

/* Router probabilities, gathered tokens, gate, up and output of one expert, which all tokens may select. */
static struct half_widths expert_widths(const struct xfp_description *d)
{
	uint64_t width = larger(d->expert_intermediate, d->shared_intermediate);

	/* And factors of the gathered tokens. */
	return (struct half_widths){ d->experts + 2 * (uint64_t)d->hidden + 2 * width + d->router.input,
				     larger(d->hidden, width) };
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

	for (uint32_t i = 0; i < d->layers; i++) {
		struct half_widths mixer = d->layer[i].delta ? delta_widths(d) : attention_widths(d);
		struct half_widths mlp = d->layer[i].experts ? expert_widths(d) : dense_widths(d);

		floats = larger(floats, larger(mixer.floats, mlp.floats));
		cols = larger(cols, larger(mixer.cols, mlp.cols));
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
