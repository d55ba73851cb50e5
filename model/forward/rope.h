/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope.h - rotary positions: pairs of a head's elements turn by angles that grow with the position.
 */
#ifndef XFP_ROPE_H
#define XFP_ROPE_H

#include <stddef.h>

#include "model/forward/description.h"

/* Cosine and sine of every pair at positions 0 ... length - 1: table[(position * dim / 2 + pair) * 2] and the next.
 * Frequencies and angles are rounded to f32 as published code does, so that both turn by the same angle. */
void xfp_rope_table(const struct xfp_rope *rope, size_t length, float *table);

/* Turn a head by one position's part of the table. */
void xfp_rope_turn(const struct xfp_rope *rope, const float *position, float *head);

#endif
