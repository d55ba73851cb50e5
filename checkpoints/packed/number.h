/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - convert scales and codes of packed weights to f32, exactly, and decoded values to the tensor's dtype.
 */
#ifndef XFP_PACKED_NUMBER_H
#define XFP_PACKED_NUMBER_H

#include <math.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "kernels/common/number.h"

static inline float xfp_bits_to_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Return 2^(exponent - 127); NaN for 255. */
static inline float xfp_e8m0_to_float(uint8_t exponent)
{
	return xfp_bits_to_float(exponent == 255 ? UINT32_C(0x7fc00000)
				 : exponent      ? (uint32_t)exponent << 23
						 : UINT32_C(0x00400000));
}

/* Convert a float with five exponent bits and two mantissa bits: the upper byte of an f16. */
static inline float xfp_e5m2_to_float(uint8_t code)
{
	return xfp_half_to_float((uint16_t)(code << 8));
}

/* Return whether scales of this dtype are supported. */
static inline bool xfp_dtype_is_scale(enum xfp_dtype dtype)
{
	return dtype == XFP_F32 || dtype == XFP_BF16 || dtype == XFP_F16 || dtype == XFP_F8_E8M0;
}

static inline float xfp_scale_to_float(enum xfp_dtype dtype, const unsigned char *at)
{
	switch (dtype) {
	case XFP_F32:
		return xfp_bits_to_float(xfp_load32(at));
	case XFP_BF16:
		return xfp_bf16_to_float(xfp_load16(at));
	case XFP_F16:
		return xfp_half_to_float(xfp_load16(at));
	default:
		return xfp_e8m0_to_float(*at);
	}
}

/* Round to the nearest f16, ties to even; sets *other if the result is infinite or NaN. */
static inline uint16_t xfp_round_to_half(float value, uint32_t *other)
{
	uint32_t bits, size, small, is_small;
	float beyond;

	memcpy(&bits, &value, sizeof bits);
	size = bits & 0x7fffffff;
	*other |= size >= 0x477ff000;            /* 65520 */
	beyond = xfp_bits_to_float(size) + 0.5f; /* rounded to a multiple of 2^-24, as halves below 2^-14 are */
	memcpy(&small, &beyond, sizeof small);
	is_small = 0u - (size < 0x38800000); /* branch-free, for vectorization */
	return (uint16_t)((bits >> 16 & 0x8000) | ((small - 0x3f000000) & is_small) |
			  ((((size + 0xfff + (size >> 13 & 1)) >> 13) - (112u << 10)) & ~is_small));
}

/* Round to the nearest bf16, ties to even; sets *other for NaN. */
static inline uint16_t xfp_round_to_bf16(float value, uint32_t *other)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	*other |= (bits & 0x7fffffff) > 0x7f800000;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Store decoded values as F16 or BF16. Unlike in kernels, -0 is preserved in both. The common case has no branches, so
 * that compilers vectorize it. */
static inline void xfp_store_decoded(enum xfp_dtype dtype, const float *values, uint64_t count, unsigned char *out)
{
	uint32_t other = 0;

	if (dtype == XFP_F16) {
#pragma omp simd reduction(| : other)
		for (uint64_t i = 0; i < count; i++)
			xfp_store16(out + 2 * i, xfp_round_to_half(values[i], &other));
	} else {
#pragma omp simd reduction(| : other)
		for (uint64_t i = 0; i < count; i++)
			xfp_store16(out + 2 * i, xfp_round_to_bf16(values[i], &other));
	}
	if (!other)
		return;
	xfp_from_float((int)dtype, values, count, out);
	for (uint64_t i = 0; dtype == XFP_F16 && i < count; i++)
		if (signbit(values[i]))
			out[2 * i + 1] |= 0x80;
}

#endif
