/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - predicted memory of a forward pass, besides the weights and the KV cache.
 */
#ifndef XFP_FORWARD_MEMORY_H
#define XFP_FORWARD_MEMORY_H

#include "model/forward/forward.h"

/* A batch that passes through a layer. */
struct xfp_forward_batch {
	enum xfp_arithmetic arithmetic;
	size_t tokens;
	size_t positions; /* of the longest sequence */
	unsigned threads;
};

/* An upper bound of the bytes that any layer, or the output head without its logits, allocates for the batch:
 * activations within the layer, the rows of a matrix that are in memory at a time, and the memory of each thread. The
 * activations x[tokens][hidden] of the caller are not included. UINT64_MAX on overflow. */
uint64_t xfp_forward_bytes(const struct xfp_description *description, const struct xfp_forward_batch *batch);

/* Bytes of the cosines and sines that xfp_forward_open_cached computes for that many positions. */
uint64_t xfp_forward_table_bytes(const struct xfp_description *description, size_t positions);

#endif
