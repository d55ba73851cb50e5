/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign.h - convert weights to what is stored: indices, residuals, fp8 codes.
 */
#ifndef XFP_ASSIGN_H
#define XFP_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/encode/encode.h"

/* A codebook prepared for assignment: entries and, between each two, the largest f32 that belongs to the lower one (an
 * exact midpoint does). */
struct xfp_quantizer {
	unsigned k;
	float entry[64], edge[64];
};
void xfp_quantizer_init(struct xfp_quantizer *quantizer, unsigned k, const uint16_t *codebook);

/* Convert a padded row to its nearest entries (padded), or to their indices (a buffer of xfp_padded(cols)). */
void xfp_assign(const struct xfp_quantizer *quantizer, const float *x, size_t cols, float *value);
void xfp_assign_index(const struct xfp_quantizer *quantizer, const float *x, size_t cols, uint8_t *index);

/* Return the entry nearest to one weight. */
float xfp_nearest(const struct xfp_quantizer *quantizer, float x);

/* Compare row w, whose padding is zero, with the assigned entries of x times `down`: sums of cosine.h. */
struct xfp_row_sums xfp_quantized_sums(const struct xfp_quantizer *quantizer, const float *x, const float *down,
				       const float *w, size_t cols);

/* Return the stored residual of an outlier: the fp16 nearest to x - value. */
uint16_t xfp_residual(float x, float value);

/* Encode a row as e4m3 with a scale: scale = RN32(largest |w| / 448), code = e4m3(RN32(w / scale)). If the scale would
 * be zero, scale and codes are 0. Returns the scale. */
float xfp_encode_fp8(const float *w, size_t cols, uint8_t *code);

#endif
