/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.h - scales and codes of packed weights as f32, exactly, and what was decoded in the tensor's dtype.
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

/* 2^(exponent - 127); 255 is no number. */
static inline float xfp_e8m0_to_float(uint8_t exponent)
{
	return xfp_bits_to_float(exponent == 255 ? UINT32_C(0x7fc00000)
				 : exponent      ? (uint32_t)exponent << 23
						 : UINT32_C(0x00400000));
}

/* Of five exponent bits and two others: the upper byte of an f16. */
static inline float xfp_e5m2_to_float(uint8_t code)
{
	return xfp_half_to_float((uint16_t)(code << 8));
}

/* Whether scales of this type can be read. */
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

/* The half nearest to a number, ties to even, where that is 0 or normal; *other is set where it is neither. */
static inline uint16_t xfp_usual_half(float value, uint32_t *other)
{
	uint32_t bits, size;

	memcpy(&bits, &value, sizeof bits);
	size = bits & 0x7fffffff;
	*other |= size && size - 0x38800000 >= 0x477ff000 - 0x38800000; /* 2^-14, 65520 */
	return (uint16_t)((bits >> 16 & 0x8000) |
			  (size ? ((size + 0xfff + (size >> 13 & 1)) >> 13) - (112u << 10) : 0));
}

/* What was decoded, in the tensor's dtype; unlike what kernels store, -0 is itself in every dtype. */
static inline void xfp_store_decoded(enum xfp_dtype dtype, const float *values, uint64_t count, unsigned char *out)
{
	uint32_t other = 0;

	if (dtype == XFP_F16)
		for (uint64_t i = 0; i < count; i++)
			xfp_store16(out + 2 * i, xfp_usual_half(values[i], &other));
	if (dtype == XFP_F16 && !other)
		return;
	xfp_from_float((int)dtype, values, count, out);
	for (uint64_t i = 0; dtype == XFP_F16 && i < count; i++)
		if (signbit(values[i]))
			out[2 * i + 1] |= 0x80;
}

#endif
