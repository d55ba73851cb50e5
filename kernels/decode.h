/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - rows of a stored matrix as scaled weights x' (see scale.h).
 */
#ifndef XFP_DECODE_H
#define XFP_DECODE_H

#include <stddef.h>
#include <stdint.h>

/* One v2 row: packed indices, 2^k fp16 entries -> cols values. Outliers are not yet added. */
void xfp_decode_v2(unsigned k, const uint8_t *packed, const uint16_t *codebook, size_t cols, float *x);

/* Add a row's outliers: x[column[i]] += half(residual[i]), in f32. `wide`: columns are uint32, otherwise uint16. */
void xfp_decode_outliers(const void *column, int wide, const uint16_t *residual, size_t count, float *x);

/* One fp8 row: w = RN32(e4m3(code) * scale). These are source weights, not scaled ones. */
void xfp_decode_fp8(const uint8_t *code, float scale, size_t cols, float *w);

#endif
