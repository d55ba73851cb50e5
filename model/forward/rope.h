/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope.h - rotary position embedding (RoPE): pairs of a head's elements are rotated by angles that grow with the
 * position.
 */
#ifndef XFP_ROPE_H
#define XFP_ROPE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/forward/description.h"

/* Whether all positions of a sequence of `length` tokens use longrope's factors for long texts. */
bool xfp_rope_is_long(const struct xfp_rope *rope, size_t length);

/* Cosine and sine of every pair at positions 0 ... count - 1: table[(position * dim / 2 + pair) * 2] and the next.
 * `is_long` selects longrope's factors. Frequencies and angles are rounded to f32 as in published code, so that the
 * angles are the same. */
void xfp_rope_table(const struct xfp_rope *rope, size_t count, bool is_long, float *table);

/* Rotate a head in place; `position` is one position's part of the table. */
void xfp_rope_rotate(const struct xfp_rope *rope, const float *position, float *head);

#endif
