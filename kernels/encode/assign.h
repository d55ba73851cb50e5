/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign.h - from weights to what is stored of them: indices, residuals, fp8 codes.
 */
#ifndef XFP_ASSIGN_H
#define XFP_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/encode/encode.h"

/* A codebook as the assignment uses it: entries and, between each two, the largest f32 that belongs to
 * the lower one (an exact midpoint does). */
struct xfp_quantizer {
	unsigned k;
	float entry[64], edge[64];
};
void xfp_quantizer_init(struct xfp_quantizer *quantizer, unsigned k, const uint16_t *codebook);

/* A padded row as the nearest entries (padded too), or as their indices (a buffer of xfp_padded(cols)). */
void xfp_assign(const struct xfp_quantizer *quantizer, const float *x, size_t cols, float *value);
void xfp_assign_index(const struct xfp_quantizer *quantizer, const float *x, size_t cols, uint8_t *index);

/* The nearest entry of one weight. */
float xfp_nearest(const struct xfp_quantizer *quantizer, float x);

/* Row w, in padding zero, against what xfp_assign makes of x, times `down`: sums of cosine.h. */
struct xfp_row_sums xfp_quantized_sums(const struct xfp_quantizer *quantizer, const float *x, const float *down,
				       const float *w, size_t cols);

/* What is stored for an outlier: the fp16 nearest to x - value. */
uint16_t xfp_residual(float x, float value);

/* One row as e4m3 with a scale: scale = RN32(largest |w| / 448), code = e4m3(RN32(w / scale)). A row whose
 * scale would be zero gets scale 0 and codes 0. Returns the scale. */
float xfp_encode_fp8(const float *w, size_t cols, uint8_t *code);

#endif
