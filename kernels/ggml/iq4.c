/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iq4.c - IQ4_XS: 256 weights in 8 groups of 32, sixteen nonuniform levels; w = (d number) level, numbers -32 ... 31.
 *
 *   0   2    d
 *   2   2    the high two bits of number + 32 of group g in bits 2 g
 *   4   4    its low four bits in half g % 2 of byte g / 2
 *   8   128  the index of the level of weight 32 g + 16 b + i: half b of byte 16 g + i
 */
#include "kernels/ggml/blocks.h"
#include "kernels/ggml/number.h"

void xfp_ggml_iq4_xs(const uint8_t *restrict block, float *restrict x)
{
	float d = xfp_ggml_half(block);
	int high = block[2] | block[3] << 8;

	for (int g = 0; g < 8; g++) {
		const uint8_t *codes = block + 8 + 16 * g;
		int low = block[4 + g / 2] >> (g % 2 * 4) & 15;
		float scale = d * (float)((low | (high >> (2 * g) & 3) << 4) - 32);

		for (int i = 0; i < 16; i++) {
			x[32 * g + i] = scale * xfp_ggml_iq4_levels[codes[i] & 15];
			x[32 * g + 16 + i] = scale * xfp_ggml_iq4_levels[codes[i] >> 4];
		}
	}
}
