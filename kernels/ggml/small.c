/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small.c - blocks of 32 and 64 weights.
 *
 * d and m are fp16. If halves of bytes contain codes, byte i contains the code of weight i below that of weight i + 16
 * (blocks of 32; i + 8 in groups of 16). The fifth bit of weight i is bit i of a 32-bit word.
 *
 *   Q4_0    d, 16 bytes of halves             w = (q - 8) d
 *   Q4_1    d, m, 16 bytes of halves          w = (q d) + m
 *   Q5_0    d, fifth bits, halves             w = (q - 16) d
 *   Q5_1    d, m, fifth bits, halves          w = (q d) + m
 *   Q8_0    d, 32 signed bytes                w = q d
 *   IQ4_NL  d, halves                         w = d level(q)
 *   MXFP4   an exponent e, halves             w = value(q) 2^(e - 128); values are twice those of the 4-bit float
 *   NVFP4   4 scales of 16 weights, halves    w = value(q) (scale / 2); scales are 8-bit floats without a sign
 *
 * Unlike in other 4-bit floats, there is no -0, and no exponent or scale means NaN: exponent 255 is 2^128 times one
 * half, and scale 127 is 0.
 */
#include "kernels/ggml/blocks.h"
#include "kernels/ggml/number.h"

const float xfp_ggml_iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

static const float doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static uint32_t load32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

void xfp_ggml_q4_0(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block);

	for (int i = 0; i < 16; i++) {
		x[i] = (float)((block[2 + i] & 15) - 8) * d;
		x[i + 16] = (float)((block[2 + i] >> 4) - 8) * d;
	}
}

void xfp_ggml_q4_1(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block), m = xfp_ggml_half(block + 2);

	for (int i = 0; i < 16; i++) {
		x[i] = (float)(block[4 + i] & 15) * d + m;
		x[i + 16] = (float)(block[4 + i] >> 4) * d + m;
	}
}

void xfp_ggml_q5_0(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block);
	uint32_t fifth = load32(block + 2);

	for (int i = 0; i < 16; i++) {
		x[i] = (float)((int)((block[6 + i] & 15) | (fifth >> i & 1) << 4) - 16) * d;
		x[i + 16] = (float)((int)(block[6 + i] >> 4 | (fifth >> (i + 16) & 1) << 4) - 16) * d;
	}
}

void xfp_ggml_q5_1(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block), m = xfp_ggml_half(block + 2);
	uint32_t fifth = load32(block + 4);

	for (int i = 0; i < 16; i++) {
		x[i] = (float)(int)((block[8 + i] & 15) | (fifth >> i & 1) << 4) * d + m;
		x[i + 16] = (float)(int)(block[8 + i] >> 4 | (fifth >> (i + 16) & 1) << 4) * d + m;
	}
}

void xfp_ggml_q8_0(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block);

	for (int i = 0; i < 32; i++)
		x[i] = (float)(int8_t)block[2 + i] * d;
}

void xfp_ggml_iq4_nl(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block);

	for (int i = 0; i < 16; i++) {
		x[i] = d * xfp_ggml_iq4_levels[block[2 + i] & 15];
		x[i + 16] = d * xfp_ggml_iq4_levels[block[2 + i] >> 4];
	}
}

void xfp_ggml_mxfp4(const uint8_t *restrict block, float *restrict x)
{
	uint32_t bits = *block < 2 ? UINT32_C(0x00200000) << *block : (*block - UINT32_C(1)) << 23;
	float d;

	memcpy(&d, &bits, sizeof d);
	for (int i = 0; i < 16; i++) {
		x[i] = doubled[block[1 + i] & 15] * d;
		x[i + 16] = doubled[block[1 + i] >> 4] * d;
	}
}

void xfp_ggml_nvfp4(const uint8_t *restrict block, float *restrict x)
{
	for (int g = 0; g < 4; g++) {
		unsigned scale = block[g], mantissa = scale & 7, exponent = scale >> 3 & 15;
		uint32_t bits = (exponent + 119) << 23 | mantissa << 20;
		float d;

		memcpy(&d, &bits, sizeof d);
		d = scale == 127 ? 0 : exponent ? d : (float)mantissa * 0x1p-10f;
		for (int i = 0; i < 8; i++) {
			x[16 * g + i] = doubled[block[4 + 8 * g + i] & 15] * d;
			x[16 * g + i + 8] = doubled[block[4 + 8 * g + i] >> 4] * d;
		}
	}
}
