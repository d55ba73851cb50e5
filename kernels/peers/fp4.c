/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of four bits, E2M1: a sign above 0, 0.5, 1, 1.5, 2, 3, 4 and 6. A byte holds two, the first in its low half.
 *
 *   NVFP4  0  1  the scale of the 16 as E4M3: times it, times the f32 of the whole matrix
 *          1  8  indices
 *   MXFP4  0  1  the scale of the 32 as E8M0: times 2^(it - 127)
 *          1 16  indices
 */
#include "kernels/peers/blocks.h"

#define TOP 6            /* that a code holds */
#define LEAST 0x1p-9f    /* of E4M3 above 0 */
#define LARGEST 448.0f   /* of E4M3 */
#define TOP_EXPONENT 2   /* of 6 */
#define LARGEST_E8M0 254 /* 255 is NaN */

static const float value[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };

/* The nearest, of two the one whose last bit is 0. */
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
	/* Where the scale of the matrix is 0, all weights are, or too small for it. */
	float own = scale > 0 ? peak_of(x, 16) / (TOP * scale) : 0, step;

	own = own > LEAST ? own : own > 0 ? LEAST : 1;
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

/* So that the exponent of the largest weight is that of 6: what is above 6 then becomes 6. */
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
