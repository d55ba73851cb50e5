/* SPDX-License-Identifier: Apache-2.0 */
/* Four-bit floats, E2M1: a sign bit, and 0, 0.5, 1, 1.5, 2, 3, 4 or 6. A byte holds two, the first in its low half.
 *
 *   NVFP4  0  1  E4M3 scale s of the 16 weights; w = value s t, t the f32 scale of the whole matrix
 *          1  8  codes
 *   MXFP4  0  1  E8M0 scale e of the 32 weights; w = value 2^(e - 127)
 *          1 16  codes
 */
#include "kernels/peers/blocks.h"

#define TOP 6            /* the largest value of a code */
#define MIN_E4M3 0x1p-9f /* the smallest positive E4M3 */
#define LARGEST 448.0f   /* the largest E4M3 */
#define TOP_EXPONENT 2   /* exponent of 6 */
#define LARGEST_E8M0 254 /* 255 is NaN */

static const float value[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };

/* The code of the nearest value, ties to even codes. */
static unsigned code_of(float y)
{
	float size = y < 0 ? -y : y;
	unsigned code = (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) + (size > 2.5f) +
			(size >= 3.5f) + (size > 5);

	return code | (y < 0 ? 8 : 0);
}

static float value_of(unsigned code)
{
	return code & 8 ? -value[code & 7] : value[code & 7];
}

static float peak_of(const float *x, unsigned count)
{
	float peak = 0;

	for (unsigned i = 0; i < count; i++) {
		float size = x[i] < 0 ? -x[i] : x[i];

		peak = size > peak ? size : peak;
	}
	return peak;
}

static void unpack(const uint8_t *code, unsigned count, float step, float *x)
{
	for (unsigned i = 0; i < count; i++)
		x[i] = value_of(code[i / 2] >> (i % 2 * 4) & 15) * step;
}

void xfp_nvfp4_encode(const float *x, float scale, uint8_t *block)
{
	/* If the scale of the matrix is 0, all weights are 0 or too small for it. */
	float own = scale > 0 ? peak_of(x, 16) / (TOP * scale) : 0, step;

	own = own > MIN_E4M3 ? own : own > 0 ? MIN_E4M3 : 1;
	block[0] = xfp_float_to_e4m3(own < LARGEST ? own : LARGEST);
	step = xfp_e4m3_to_float(block[0]) * scale;
	memset(block + 1, 0, 8);
	for (unsigned i = 0; step > 0 && i < 16; i++)
		block[1 + i / 2] |= (uint8_t)(code_of(x[i] / step) << (i % 2 * 4));
}

void xfp_nvfp4_decode(const uint8_t *block, float scale, float *x)
{
	unpack(block + 1, 16, xfp_e4m3_to_float(block[0]) * scale, x);
}

/* 2^(code - 127) */
static float power_of(unsigned code)
{
	uint32_t bits = code ? (uint32_t)code << 23 : 1u << 22;
	float power;

	memcpy(&power, &bits, sizeof power);
	return power;
}

/* The scale gives the largest weight the exponent of 6; larger scaled values become 6. */
void xfp_mxfp4_encode(const float *x, uint8_t *block)
{
	float peak = peak_of(x, 32), inverse;
	unsigned exponent;
	uint32_t bits;

	memcpy(&bits, &peak, sizeof bits);
	exponent = bits >> 23;
	block[0] = (uint8_t)(exponent > TOP_EXPONENT ? exponent - TOP_EXPONENT : 0);
	inverse = power_of(LARGEST_E8M0 - block[0]);
	memset(block + 1, 0, 16);
	for (unsigned i = 0; i < 32; i++)
		block[1 + i / 2] |= (uint8_t)(code_of(x[i] * inverse) << (i % 2 * 4));
}

void xfp_mxfp4_decode(const uint8_t *block, float *x)
{
	unpack(block + 1, 32, power_of(block[0]), x);
}
