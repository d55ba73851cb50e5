/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign.h - from weights to what is stored of them: indices, residuals, fp8 codes.
 */
#ifndef XFP_ASSIGN_H
#define XFP_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

/* The row's weights as indices of the nearest fp16 entry of an ascending codebook; an exact midpoint
 * goes to the lower entry. `value`, when not NULL, receives the entries as f32. */
void xfp_assign(unsigned k, const uint16_t *codebook, const float *x, size_t cols, uint8_t *index, float *value);

/* What is stored for an outlier: the fp16 nearest to x - value. */
uint16_t xfp_residual(float x, float value);

/* One row as e4m3 with a scale: scale = RN32(largest |w| / 448), code = e4m3(RN32(w / scale)). A row whose
 * scale would be zero gets scale 0 and codes 0. Returns the scale. */
float xfp_encode_fp8(const float *w, size_t cols, uint8_t *code);

#endif
