/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled_decode.h - what rows of groups with scale and midpoint decode to.
 */
#ifndef XFP_SCALED_DECODE_H
#define XFP_SCALED_DECODE_H

#include <stddef.h>
#include <stdint.h>

/* fma(entry, scale, midpoint) of fp16 numbers, rounded once to f32. The product has 22 bits and the midpoint 11: their
 * sum either fits a double, or one is so far below the other that no f32 is a tie and double rounding does no harm. */
static inline float xfp_scaled_value(float entry, float scale, float midpoint)
{
	return (float)((double)entry * scale + midpoint);
}

/* A row of `cols` weights in groups of `length`, or fewer at the end: for each group the number of an entry, a scale
 * and a midpoint (fp16); the library of 2^k numbers an entry, as f32; an index a weight. */
void xfp_scaled_decode_row(unsigned k, const float *library, const uint8_t *entry, const uint16_t *scale,
			   const uint16_t *midpoint, const uint8_t *index, size_t cols, unsigned length, float *value);

#endif
