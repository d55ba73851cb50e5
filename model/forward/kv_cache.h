/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache.h - the KV cache and, for linear attention, convolution inputs and recurrent state.
 *
 * Its size follows from the description, so that it is known before weights are read.
 */
#ifndef XFP_KV_CACHE_H
#define XFP_KV_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/forward/description.h"

/* One layer. Sizes are 0 and pointers NULL for parts that its kind of attention lacks. */
struct xfp_kv_cache_layer {
	/* Keys, after norms and RoPE, [sequence][kv_heads][capacity][head_dim], and values, with value_dim; position p
	 * is at p % capacity. With a sliding window, the capacity is at most the window. */
	size_t capacity;
	float *keys, *values;

	/* Linear attention, per sequence: the last inputs of the convolution, [kernel - 1][channels], oldest first, and
	 * the recurrent state, [value_heads][key_dim][value_dim]. All zeros at the start of a sequence. */
	size_t inputs_size, state_size;
	float *inputs;
	double *state;
};

struct xfp_kv_cache {
	const struct xfp_description *description;
	size_t sequences, context; /* context: capacity of each sequence, in tokens */
	size_t *count;             /* tokens cached of each sequence */
	size_t *length;            /* length that selected longrope's factors for them */
	struct xfp_kv_cache_layer *layer;
};

/* Bytes that xfp_kv_cache_open allocates; UINT64_MAX on overflow. */
uint64_t xfp_kv_cache_bytes(const struct xfp_description *description, size_t sequences, size_t context);

/* The description is borrowed. XFP_BAD_INPUT if `context` exceeds the model's, XFP_FAILED if out of memory. */
enum xfp_status xfp_kv_cache_open(const struct xfp_description *description, size_t sequences, size_t context,
				  struct xfp_kv_cache **out, struct xfp_error *err);
void xfp_kv_cache_close(struct xfp_kv_cache *cache); /* no-op if NULL */

/* Whether the cached keys of a sequence that becomes `length` tokens long have the wrong factors of longrope. As in
 * transformers' phi3, all its tokens must then be computed again. */
bool xfp_kv_cache_is_stale(const struct xfp_kv_cache *cache, size_t sequence, size_t length);

/* Empty the cache of a sequence. */
void xfp_kv_cache_reset(struct xfp_kv_cache *cache, size_t sequence);

#endif
