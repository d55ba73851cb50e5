/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IQ4_XS: 8 groups of 32, sixteen nonuniform levels, numbers -32 ... 31. kernels/ggml/iq4.c documents the layout.
 */
#include "kernels/peers/blocks.h"

/* The midpoints of neighbouring levels, and the distances of these levels. */
static const float edge[15] = { -115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101 };
static const float step[15] = { 23, 21, 18, 16, 14, 13, 12, 11, 12, 12, 13, 15, 16, 20, 24 };

static inline float nearest(float y)
{
	float level = -127;

	for (int j = 0; j < 15; j++)
		level += y > edge[j] ? step[j] : 0;
	return level;
}

#define PEER_LEVEL(how, y) ((void)(how), nearest(y))
#include "kernels/peers/scale.h"

static const struct scale_search search = {
	.from = 100, .step = 6, .tries = 8, .limit = 32, .reach = 1, .ends = { -32 }
};

static unsigned nearest_index(float y)
{
	unsigned index = 0;

	for (int j = 0; j < 15; j++)
		index += y > edge[j];
	return index;
}

void xfp_iq4_xs_encode(const float *x, uint8_t *block)
{
	struct scale_block fit;
	unsigned high = 0;

	scale_fit(&fit, 32, x, &search);
	memset(block, 0, 8);
	for (unsigned g = 0; g < 8; g++) {
		unsigned number = (unsigned)(scale_number(&fit, g) + 32);
		float inverse = scale_inverse_of(&fit, g);

		high |= (number >> 4) << (2 * g);
		block[4 + g / 2] |= (uint8_t)((number & 15) << (4 * (g % 2)));
		for (unsigned i = 0; i < 16; i++)
			block[8 + 16 * g + i] = (uint8_t)(nearest_index(x[32 * g + i] * inverse) |
							  nearest_index(x[32 * g + 16 + i] * inverse) << 4);
	}
	block[2] = (uint8_t)high;
	block[3] = (uint8_t)(high >> 8);
	peer_store_half(block, fit.d);
}
