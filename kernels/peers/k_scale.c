/* SPDX-License-Identifier: Apache-2.0 */
/* Q3_K, Q6_K and Q4_0: one scale per group, no minimum. */
#include "kernels/peers/scale.h"

/* Q3_K: 16 groups of 16, -4 ... 3, numbers -32 ... 31. kernels/ggml/k.c documents the layout. */
static const struct scale_search q3_search = {
	.half = 4, .from = 2.6f, .step = 0.2f, .tries = 14, .limit = 32, .reach = 2, .ends = { -32, -29 }
};

void xfp_q3_k_encode(const float *x, uint8_t *block)
{
	struct scale_block fit;

	scale_fit(&fit, 16, x, &q3_search);
	memset(block, 0, 108);
	for (unsigned i = 0; i < 256; i++) {
		unsigned q = (unsigned)(peer_round(x[i] * scale_inverse_of(&fit, i / 16), -4, 3) + 4);

		block[i % 32] |= (uint8_t)((q >> 2) << (i / 32));
		block[32 + i / 128 * 32 + i % 32] |= (uint8_t)((q & 3) << (2 * (i / 32 % 4)));
	}
	for (unsigned g = 0; g < 16; g++) {
		unsigned number = (unsigned)(scale_number(&fit, g) + 32);

		block[96 + g % 8] |= (uint8_t)((number & 15) << (4 * (g / 8)));
		block[104 + g % 4] |= (uint8_t)((number >> 4) << (2 * (g / 4)));
	}
	peer_store_half(block + 108, fit.d);
}

/* Q6_K: 16 groups of 16, -32 ... 31, numbers -128 ... 127. */
static const struct scale_search q6_search = {
	.half = 32, .from = 25, .step = 0.5f, .tries = 18, .limit = 128, .reach = 2, .ends = { -128, -120 }
};

void xfp_q6_k_encode(const float *x, uint8_t *block)
{
	struct scale_block fit;

	scale_fit(&fit, 16, x, &q6_search);
	memset(block, 0, 192);
	for (unsigned i = 0; i < 256; i++) {
		unsigned q = (unsigned)(peer_round(x[i] * scale_inverse_of(&fit, i / 16), -32, 31) + 32);

		block[i / 128 * 64 + i % 64] |= (uint8_t)((q & 15) << (4 * (i / 64 % 2)));
		block[128 + i / 128 * 32 + i % 32] |= (uint8_t)((q >> 4) << (2 * (i / 32 % 4)));
	}
	for (unsigned g = 0; g < 16; g++)
		block[192 + g] = (uint8_t)scale_number(&fit, g);
	peer_store_half(block + 208, fit.d);
}

/* Q4_0 is int4-32 with a searched scale. A block is one group, so each lane tries other levels. */
static const struct scale_search q4_search = { .half = 8, .from = 6.2f, .step = 0.8f, .tries = 4 };

void xfp_q4_0_encode(const float *x, uint8_t *block)
{
	const struct scale_search *how = &q4_search;
	struct peer_groups groups = { .length = 32 };
	struct peer_lanes inverse, gain = { 0 }, scale = { 0 };
	float peak = 0, best = 0, max = 0;
	uint16_t half;

	for (unsigned i = 0; i < 32; i++) {
		peak = x[i] * x[i] > peak * peak ? x[i] : peak;
		PEER_EACH groups.x[i].v[l] = x[i];
	}
	for (int n = 0; n < how->tries; n++) {
		float level = how->from + (float)n * how->step;

		PEER_EACH inverse.v[l] = scale_inverse(peak) * (level + (float)l * (how->step / PEER_LANES));
		scale_try(&groups, how, &inverse, &gain, &scale);
		PEER_EACH inverse.v[l] = -inverse.v[l];
		scale_try(&groups, how, &inverse, &gain, &scale);
	}
	PEER_EACH
	{
		best = gain.v[l] > max ? scale.v[l] : best;
		max = gain.v[l] > max ? gain.v[l] : max;
	}
	half = peer_half(best);
	peer_store_half(block, half);
	best = scale_inverse(xfp_half_to_float(half));
	for (unsigned i = 0; i < 16; i++)
		block[2 + i] = (uint8_t)((unsigned)(peer_round(x[i] * best, -8, 7) + 8) |
					 (unsigned)(peer_round(x[i + 16] * best, -8, 7) + 8) << 4);
}
