/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - rows of a stored matrix as scaled weights x' (see scale.h).
 */
#ifndef XFP_DECODE_H
#define XFP_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The codebooks of a unit in mode v2a or v2c, as f32 (schemas/layout/bundle_layout.h says how they are stored). */
struct xfp_library {
	unsigned k;         /* a codebook has 2^k entries */
	unsigned group;     /* a group has 2^group columns, 16 to 1024; the last of a row may have fewer */
	unsigned codebooks; /* 1 to 256; in v2c a power of two */
	const float *entry; /* [codebooks][2^k] */
	const float *ratio; /* v2c: [256 / codebooks] */
};

/* fp16 numbers as the f32 that they are. */
void xfp_decode_halves(const uint16_t *half, size_t count, float *value);

/* A codebook's entry in a group of v2a: one fma of fp16 numbers in f32, since their product is exact in it. */
static inline float xfp_scaled_value(float entry, float scale, float midpoint)
{
	return entry * scale + midpoint;
}

/* One v2a row: packed indices, and for each group scale and midpoint (fp16) and the codebook's number.
 * False when the library has no such codebook; x is then undefined. */
bool xfp_decode_v2a(const struct xfp_library *library, const uint8_t *packed, const uint16_t *pair,
		    const uint8_t *number, size_t cols, float *x);

/* One v2c row: packed indices, each group's byte, and the row's byte. */
void xfp_decode_v2c(const struct xfp_library *library, const uint8_t *packed, const uint8_t *group, uint8_t row,
		    size_t cols, float *x);

/* One fp8 row: w = RN32(e4m3(code) * scale). These are source weights, not scaled ones. */
void xfp_decode_fp8(const uint8_t *code, float scale, size_t cols, float *w);

#endif
