/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - what a layer takes while sequences go through it.
 */
#ifndef XFP_FORWARD_MEMORY_H
#define XFP_FORWARD_MEMORY_H

#include "model/forward/forward.h"

/* An upper bound of the bytes that any layer, or the output head without its logits, allocates for so many sequences of
 * the forward's length: activations within it, rows of a matrix that are there at a time, and what each of `threads`
 * has of its own. What the caller keeps is not counted. UINT64_MAX when that is beyond counting. */
uint64_t xfp_forward_bytes(const struct xfp_forward *forward, size_t sequences, unsigned threads);

#endif
