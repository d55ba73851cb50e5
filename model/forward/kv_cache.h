/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache.h - what layers keep of the tokens that sequences have had, so that the next ones can go on from there.
 *
 * Its size follows from the description, and is known before anything is read.
 */
#ifndef XFP_KV_CACHE_H
#define XFP_KV_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/forward/description.h"

/* Of one layer. A layer has keys and values, or a state that does not grow: counts are 0 and pointers NULL of what it
 * has not. */
struct xfp_kv_cache_layer {
	/* Keys, after norms and positions, and values: [sequence][kv_heads][room][head_dim], position p at p % room. A
	 * layer with a window keeps no more than that. */
	size_t capacity;
	float *keys, *values;

	/* Numbers of one sequence: the last inputs of linear attention's convolution, [kernel - 1][channels], oldest
	 * first, and what its heads remember, [value_heads][key_dim][value_dim]. All are 0 where a sequence begins. */
	size_t inputs_size, state_size;
	float *inputs;
	double *state;
};

struct xfp_kv_cache {
	const struct xfp_description *description;
	size_t sequences, context; /* positions that each sequence may have */
	size_t *count;             /* tokens that each sequence has had, */
	size_t *length;            /* and the length that longrope's factors were selected for */
	struct xfp_kv_cache_layer *layer;
};

/* Bytes that xfp_kv_cache_open takes; UINT64_MAX when they are beyond counting. */
uint64_t xfp_kv_cache_bytes(const struct xfp_description *description, size_t sequences, size_t context);

/* The description is borrowed. XFP_BAD_INPUT for a context beyond the model's, XFP_FAILED without memory. */
enum xfp_status xfp_kv_cache_open(const struct xfp_description *description, size_t sequences, size_t context,
				  struct xfp_kv_cache **out, struct xfp_error *err);
void xfp_kv_cache_close(struct xfp_kv_cache *cache); /* NULL is fine */

/* Whether a sequence that becomes `length` tokens long has other factors of longrope than those of its keys. As in
 * transformers' phi3, all its tokens must then be computed again. */
bool xfp_kv_cache_is_stale(const struct xfp_kv_cache *cache, size_t sequence, size_t length);

/* The sequence restarts. */
void xfp_kv_cache_reset(struct xfp_kv_cache *cache, size_t sequence);

#endif
