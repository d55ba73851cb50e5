/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e2m1.h - 4-bit floats. Private to checkpoints/packed/.
 */
#ifndef XFP_E2M1_H
#define XFP_E2M1_H

#include "checkpoints/packed/nibbles.h"

/* Decode codes [first, first + count) from `bytes`, times a scale. */
static inline void xfp_e2m1_scaled(const unsigned char *bytes, uint64_t first, uint64_t count, float scale,
				   float *value)
{
	static const float pairs[256][2] =
		XFP_NIBBLE_PAIRS(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -0.5f, -1, -1.5f, -2, -3, -4, -6);

	xfp_nibble_values(pairs, bytes, first, count, value);
#pragma omp simd
	for (uint64_t i = 0; i < count; i++)
		value[i] *= scale;
}

#endif
