/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.h - the batches of a round of products (round.c), and the vectors that they need. Private to runtime/.
 */
#ifndef XFP_BATCHES_H
#define XFP_BATCHES_H

#include "runtime/round.h"

/* Products of one expert of a linear: numbers [first, first + count) in expert order. */
struct xfp_batch {
	struct xfp_matvec w;
	const struct xfp_linear *linear;
	uint32_t expert;
	unsigned first, count;
	size_t vectors; /* index of its prepared vectors */
	bool decoded;
};

/* Vectors that are prepared once, for the first batch that needs them and for others like it. */
struct xfp_vectors {
	const struct xfp_batch *batch;
	struct xfp_matvec_x x; /* if not decoded */
	void *buffer;          /* of x, or the panel */
};

struct xfp_round {
	const struct xfp_multiplication *call;
	const struct xfp_product *products; /* products of this round */
	size_t count;
	uint64_t *order;           /* product numbers, ordered by expert */
	uint32_t *place;           /* position of each product in `order` */
	struct xfp_batch *batches; /* [linear][batch_count] */
	size_t batch_count;        /* per linear */
	struct xfp_vectors *vectors;
	size_t vectors_count;
	size_t block;        /* rows per block */
	size_t panel_stride; /* floats from row to row of panels' sums */

	/* Offsets in each thread's own memory. */
	size_t sums_at, tile_at, panel_sums_at, gathered_at;
	int failed; /* set by the first thread that fails, which alone writes the message */
	enum xfp_status status;
};

/* Divide the products of a round into batches, the same for all linears, and find their vectors. */
void xfp_batches_make(struct xfp_round *round);

/* Return the number of the m-th input vector of a batch. */
uint32_t xfp_batch_input(const struct xfp_round *round, const struct xfp_batch *batch, unsigned m);

/* Return the factors of a batch's columns; NULL if not balanced. */
const float *xfp_batch_factors(const struct xfp_batch *batch);

/* Return the columns before the slice that the batch's matrix has. */
size_t xfp_batch_columns_before(const struct xfp_batch *batch);

#endif
