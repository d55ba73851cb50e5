/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/number.h"

#include <string.h>

static float float_from_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

static uint32_t bits_from_float(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits;
}

float xfp_half_to_float(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16;
	uint32_t exponent = half >> 10 & 31, mantissa = half & 0x3ff;

	if (exponent == 31)
		return float_from_bits(sign | 0x7f800000 | mantissa << 13);
	if (exponent)
		return float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
	/* Subnormal: mantissa * 2^-24, exact in f32. */
	return float_from_bits(sign | bits_from_float((float)mantissa * 0x1p-24f));
}

uint16_t xfp_double_to_half(double value)
{
	uint64_t bits, mantissa, rest, half;
	uint16_t sign;
	int exponent, drop;

	memcpy(&bits, &value, sizeof bits);
	sign = (uint16_t)(bits >> 48 & 0x8000);
	exponent = (int)(bits >> 52 & 2047) - 1023;
	if (exponent >= -14 && exponent <= 14) /* normal before and after: the common case */
		return (uint16_t)(sign |
				  ((((bits & INT64_MAX) + 0x1ffffffffff + (bits >> 42 & 1)) >> 42) - (1008u << 10)));
	mantissa = bits & 0xfffffffffffff;
	if (exponent == 1024)
		return mantissa ? 0x7e00 : (uint16_t)(sign | 0x7c00);
	if (exponent < -25)
		return 0;
	if (exponent > 15)
		return (uint16_t)(sign | 0x7c00);
	mantissa |= 1ull << 52;
	/* Keep 11 bits of a normal number, fewer of a subnormal one. */
	drop = exponent < -14 ? 42 + (-14 - exponent) : 42;
	rest = mantissa & ((1ull << drop) - 1);
	half = 1ull << (drop - 1);
	mantissa >>= drop;
	mantissa += rest > half || (rest == half && (mantissa & 1));
	if (!mantissa)
		return 0;
	/* A carry out of the mantissa increments the exponent, up to infinity. */
	if (exponent < -14)
		return (uint16_t)(sign | mantissa);
	return (uint16_t)(sign | (((uint64_t)(exponent + 14) << 10) + mantissa));
}

uint16_t xfp_float_to_half(float value)
{
	return xfp_double_to_half(value);
}

float xfp_bf16_to_float(uint16_t bf16)
{
	return float_from_bits((uint32_t)bf16 << 16);
}

uint16_t xfp_float_to_bf16(float value)
{
	uint32_t bits = bits_from_float(value);

	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float xfp_e4m3_to_float(uint8_t code)
{
	uint32_t sign = (uint32_t)(code & 0x80) << 24;
	uint32_t exponent = code >> 3 & 15, mantissa = code & 7;

	if (exponent == 15 && mantissa == 7)
		return float_from_bits(sign | 0x7fc00000);
	if (exponent)
		return float_from_bits(sign | (exponent + 120) << 23 | mantissa << 20);
	return float_from_bits(sign | bits_from_float((float)mantissa * 0x1p-9f));
}

uint8_t xfp_float_to_e4m3(float value)
{
	uint32_t bits = bits_from_float(value), mantissa, rest, half;
	uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
	int exponent, drop;

	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return (uint8_t)(sign | 0x7f);
	if (bits >= 0x43e00000) /* 448 */
		return (uint8_t)(sign | 0x7e);
	exponent = (int)(bits >> 23) - 127;
	if (exponent < -10)
		return sign;
	mantissa = (bits & 0x7fffff) | 0x800000;
	drop = exponent < -6 ? 20 + (-6 - exponent) : 20;
	rest = mantissa & ((1u << drop) - 1);
	half = 1u << (drop - 1);
	mantissa >>= drop;
	mantissa += rest > half || (rest == half && (mantissa & 1));
	if (exponent < -6)
		return (uint8_t)(sign | mantissa);
	mantissa += (uint32_t)(exponent + 6) << 3;
	return (uint8_t)(sign | mantissa);
}

/* dtype numbers of base/dtype.h, which kernels/ does not include. */
enum { F64, F32, F16, BF16 };

void xfp_to_float(int dtype, const void *source, size_t count, float *out)
{
	const unsigned char *bytes = source;

	switch (dtype) {
	case F64:
		for (size_t i = 0; i < count; i++) {
			double value;

			memcpy(&value, bytes + i * 8, 8);
			out[i] = (float)value;
		}
		break;
	case F32:
		memcpy(out, source, count * sizeof *out);
		break;
	case F16:
	case BF16:
		for (size_t i = 0; i < count; i++) {
			uint16_t bits;

			memcpy(&bits, bytes + i * 2, 2);
			out[i] = dtype == F16 ? xfp_half_to_float(bits) : xfp_bf16_to_float(bits);
		}
		break;
	}
}

void xfp_from_float(int dtype, const float *source, size_t count, void *out)
{
	uint8_t *bytes = out;

	if (dtype == F32) {
		memcpy(out, source, count * sizeof *source);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint16_t half = dtype == F16 ? xfp_float_to_half(source[i]) : xfp_float_to_bf16(source[i]);

		memcpy(bytes + 2 * i, &half, sizeof half);
	}
}
