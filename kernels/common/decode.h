/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - decode rows of a stored matrix to scaled weights x' (see scale.h).
 */
#ifndef XFP_DECODE_H
#define XFP_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The codebooks of a unit in mode v2a or v2c, converted to f32. schemas/layout/bundle_layout.h documents the
 * storage. */
struct xfp_library {
	unsigned k;         /* bits per index: a codebook has 2^k entries */
	unsigned group;     /* log2 of the columns per group (16 to 1024); the last group may be shorter */
	unsigned codebooks; /* number of codebooks, 1 to 256; in v2c a power of two */
	const float *entry; /* [codebooks][2^k] */
	const float *ratio; /* v2c: [256 / codebooks] */
};

/* Convert fp16 numbers to f32. */
void xfp_decode_halves(const uint16_t *half, size_t count, float *value);

/* Compute a v2a entry within a group: one fma in f32, because the product of two fp16 numbers is exact in f32. */
static inline float xfp_scaled_value(float entry, float scale, float midpoint)
{
	return entry * scale + midpoint;
}

/* Decode a v2a row: packed indices, and for each group scale and midpoint (fp16) and the codebook number. Returns false
 * if a codebook number is invalid; x is then undefined. */
bool xfp_decode_v2a(const struct xfp_library *library, const uint8_t *packed, const uint16_t *pair,
		    const uint8_t *number, size_t cols, float *x);

/* Decode a v2c row: packed indices, one byte per group, and the byte of the row. */
void xfp_decode_v2c(const struct xfp_library *library, const uint8_t *packed, const uint8_t *group, uint8_t row,
		    size_t cols, float *x);

/* Decode an fp8 row: w = RN32(e4m3(code) * scale). The results are source weights, not scaled weights. */
void xfp_decode_fp8(const uint8_t *code, float scale, size_t cols, float *w);

#endif
