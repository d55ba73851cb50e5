/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past.h - what layers keep of the tokens that sequences have had, so that the next ones can go on from there.
 *
 * Its size follows from the description, and is known before anything is read.
 */
#ifndef XFP_PAST_H
#define XFP_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/forward/description.h"

/* Of one layer. A layer has keys and values, or a state that does not grow: counts are 0 and pointers NULL of what it
 * has not. */
struct xfp_past_layer {
	/* Keys, after norms and positions, and values: [sequence][kv_heads][room][head_dim], position p at p % room. A
	 * layer with a window keeps no more than that. */
	size_t room;
	float *keys, *values;

	/* Numbers of one sequence: the last inputs of linear attention's convolution, [kernel - 1][channels], oldest
	 * first, and what its heads remember, [value_heads][key_dim][value_dim]. All are 0 where a sequence begins. */
	size_t inputs_size, state_size;
	float *inputs;
	double *state;
};

struct xfp_past {
	const struct xfp_description *description;
	size_t sequences, context; /* positions that each sequence may have */
	size_t *count;             /* tokens that each sequence has had, */
	size_t *length;            /* and the length that longrope's factors were selected for */
	struct xfp_past_layer *layer;
};

/* Bytes that xfp_past_open takes; UINT64_MAX when they are beyond counting. */
uint64_t xfp_past_size(const struct xfp_description *description, size_t sequences, size_t context);

/* The description is borrowed. XFP_BAD_INPUT for a context beyond the model's, XFP_FAILED without memory. */
enum xfp_status xfp_past_open(const struct xfp_description *description, size_t sequences, size_t context,
			      struct xfp_past **out, struct xfp_error *err);
void xfp_past_close(struct xfp_past *past); /* NULL is fine */

/* Whether a sequence that becomes `length` tokens long has other factors of longrope than those of its keys. As in
 * transformers' phi3, all its tokens must then be computed again. */
bool xfp_past_is_stale(const struct xfp_past *past, size_t sequence, size_t length);

/* The sequence restarts. */
void xfp_past_forget(struct xfp_past *past, size_t sequence);

#endif
