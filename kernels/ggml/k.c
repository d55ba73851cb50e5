/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k.c - Q2_K to Q6_K: blocks of 256 weights, in groups whose scales are quantized, too.
 *
 * Weight 128 h + 32 b + i is in half h of the block, and there in band b.
 */
#include "kernels/ggml/blocks.h"
#include "kernels/ggml/number.h"

/* Q2_K: 16 groups of 16, w = (d scale) q - (dmin minimum).
 *
 *   0   16   one byte per group: scale in the low half, minimum in the high half
 *   16  64   q of weight 128 h + 32 b + i: bits 2 b of byte 32 h + i
 *   80  4    d, dmin
 */
void xfp_ggml_q2_k(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block + 80), dmin = xfp_ggml_half(block + 82);

	for (int g = 0; g < 16; g++) {
		const uint8_t *codes = block + 16 + g / 8 * 32 + g % 2 * 16;
		float scale = d * (float)(block[g] & 15), minimum = dmin * (float)(block[g] >> 4);
		int shift = g / 2 % 4 * 2;

		for (int i = 0; i < 16; i++)
			x[16 * g + i] = scale * (float)(codes[i] >> shift & 3) - minimum;
	}
}

/* Q3_K: 16 groups of 16, -4 ... 3, w = (d number) q, numbers of -32 ... 31.
 *
 *   0   32   bit h of byte i: set if q + 4 of weight 32 h + i is 4 or more
 *   32  64   the low two bits of q + 4 of weight 128 h + 32 b + i: bits 2 b of byte 32 h + i
 *   96  12   number + 32 of the groups: low four bits of group g in half g / 8 of byte g % 8, high two bits in bits
 *            2 (g / 4) of byte 8 + g % 4
 *   108 2    d
 */
void xfp_ggml_q3_k(const uint8_t *restrict block, float *restrict x)
{
	const uint8_t *numbers = block + 96;
	float d = xfp_ggml_half(block + 108);

	for (int g = 0; g < 16; g++) {
		const uint8_t *codes = block + 32 + g / 8 * 32 + g % 2 * 16, *high = block + g % 2 * 16;
		int number = (numbers[g % 8] >> (g / 8 * 4) & 15) | (numbers[8 + g % 4] >> (g / 4 * 2) & 3) << 4;
		float scale = d * (float)(number - 32);
		int shift = g / 2 % 4 * 2, bit = g / 2;

		for (int i = 0; i < 16; i++)
			x[16 * g + i] = scale * (float)((codes[i] >> shift & 3) + ((high[i] >> bit & 1) << 2) - 4);
	}
}

/* Q4_K and Q5_K: 8 groups of 32, w = (d scale) q - (dmin minimum).
 *
 *   0   4    d, dmin
 *   4   12   six-bit numbers. Groups 0-3: scales in the low bits of bytes 0-3, minima in those of bytes 4-7. Groups
 *            4-7: the low four bits of scale and minimum are the halves of bytes 8-11, the high two bits are the top
 *            bits of bytes 0-3 and 4-7
 *   16  32   Q5_K only: bit 4 of q of weight 32 g + i is bit g of byte i
 *   16  128  (48 in Q5_K) the low four bits of q of weight 64 h + 32 b + i: half b of byte 32 h + i
 */
static void load_numbers(const uint8_t *in, int g, int *scale, int *minimum)
{
	if (g < 4) {
		*scale = in[g] & 63;
		*minimum = in[g + 4] & 63;
	} else {
		*scale = (in[g + 4] & 15) | (in[g - 4] >> 6) << 4;
		*minimum = in[g + 4] >> 4 | (in[g] >> 6) << 4;
	}
}

void xfp_ggml_q4_k(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block), dmin = xfp_ggml_half(block + 2);

	for (int g = 0; g < 8; g++) {
		const uint8_t *codes = block + 16 + g / 2 * 32;
		int number, min, shift = g % 2 * 4;
		float scale, minimum;

		load_numbers(block + 4, g, &number, &min);
		scale = d * (float)number;
		minimum = dmin * (float)min;
		for (int i = 0; i < 32; i++)
			x[32 * g + i] = scale * (float)(codes[i] >> shift & 15) - minimum;
	}
}

void xfp_ggml_q5_k(const uint8_t *restrict block, float *restrict x)
{
	const uint8_t *high = block + 16;
	float d = xfp_ggml_half(block), dmin = xfp_ggml_half(block + 2);

	for (int g = 0; g < 8; g++) {
		const uint8_t *codes = block + 48 + g / 2 * 32;
		int number, min, shift = g % 2 * 4;
		float scale, minimum;

		load_numbers(block + 4, g, &number, &min);
		scale = d * (float)number;
		minimum = dmin * (float)min;
		for (int i = 0; i < 32; i++)
			x[32 * g + i] = scale * (float)((codes[i] >> shift & 15) + ((high[i] >> g & 1) << 4)) - minimum;
	}
}

/* Q6_K: 16 groups of 16, -32 ... 31, w = (d number) q, numbers of -128 ... 127.
 *
 *   0   128  the low four bits of q + 32 of weight 128 h + 32 b + i: half b / 2 of byte 64 h + 32 (b % 2) + i
 *   128 64   its high two bits: bits 2 b of byte 32 h + i
 *   192 16   the numbers
 *   208 2    d
 */
void xfp_ggml_q6_k(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block + 208);

	for (int g = 0; g < 16; g++) {
		const uint8_t *low = block + g / 8 * 64 + g % 4 * 16, *high = block + 128 + g / 8 * 32 + g % 2 * 16;
		float scale = d * (float)(int8_t)block[192 + g];
		int half = g / 4 % 2 * 4, shift = g / 2 % 4 * 2;

		for (int i = 0; i < 16; i++)
			x[16 * g + i] = scale * (float)((low[i] >> half & 15) + ((high[i] >> shift & 3) << 4) - 32);
	}
}
