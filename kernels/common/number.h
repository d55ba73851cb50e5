/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - conversions between stored number formats, exact or rounded to nearest, ties to even.
 *
 * No hardware conversion is used, so results are the same everywhere. NaN stays NaN.
 */
#ifndef XFP_NUMBER_H
#define XFP_NUMBER_H

#include <stddef.h>
#include <stdint.h>

float xfp_half_to_float(uint16_t half);
/* Convert to fp16. Overflow gives infinity; callers keep magnitudes below 65520. Never returns negative zero. */
uint16_t xfp_float_to_half(float value);
uint16_t xfp_double_to_half(double value);

float xfp_bf16_to_float(uint16_t bf16);
uint16_t xfp_float_to_bf16(float value);

/* Convert from and to e4m3 (fn): no infinity, maximum 448; larger magnitudes saturate. */
float xfp_e4m3_to_float(uint8_t code);
uint8_t xfp_float_to_e4m3(float value);

/* Convert `count` elements of a source dtype (enum xfp_dtype of base/: F64, F32, F16 or BF16) to f32. F64 is rounded;
 * the others are exact. `source` may be unaligned. */
void xfp_to_float(int dtype, const void *source, size_t count, float *out);

/* Convert `count` f32 numbers to F32, F16 or BF16. `out` may be unaligned. */
void xfp_from_float(int dtype, const float *source, size_t count, void *out);

#endif
