/* SPDX-License-Identifier: Apache-2.0 */
/* Q2_K, Q4_K and Q5_K: one scale and one minimum per group. */
#include "kernels/peers/min.h"

/* Q2_K: 16 groups of 16. kernels/ggml/k.c documents the layout. */
static const struct peer_min_search q2_search = {
	.top = 3, .limit = 15, .from = -0.2f, .step = 0.2f, .tries = 5, .reach = 1, .fill = { 1, 0.9f }
};

void xfp_q2_k_encode(const float *x, uint8_t *block)
{
	struct peer_min_block fit;
	uint8_t q[256];

	xfp_peer_min_fit(&fit, 16, x, &q2_search);
	xfp_peer_min_indices(&fit, x, &q2_search, q);
	for (unsigned g = 0; g < 16; g++)
		block[g] = (uint8_t)(min_number(&fit, g) | min_minimum(&fit, g) << 4);
	for (unsigned i = 0; i < 64; i++) {
		const uint8_t *at = q + i / 32 * 128 + i % 32;

		block[16 + i] = (uint8_t)(at[0] | at[32] << 2 | at[64] << 4 | at[96] << 6);
	}
	peer_store_half(block + 80, fit.d);
	peer_store_half(block + 82, fit.dmin);
}

/* Q4_K and Q5_K: 8 groups of 32. */
static const struct peer_min_search q4_search = {
	.top = 15, .limit = 63, .from = -0.6f, .step = 0.3f, .tries = 6, .reach = 2, .fill = { 1 }
};
static const struct peer_min_search q5_search = {
	.top = 31, .limit = 63, .from = -1.2f, .step = 0.4f, .tries = 6, .reach = 2, .fill = { 1 }
};

static void store_numbers(const struct peer_min_block *fit, uint8_t *out)
{
	for (unsigned g = 0; g < 4; g++) {
		unsigned n = min_number(fit, g + 4), m = min_minimum(fit, g + 4);

		out[g] = (uint8_t)(min_number(fit, g) | (n >> 4) << 6);
		out[g + 4] = (uint8_t)(min_minimum(fit, g) | (m >> 4) << 6);
		out[g + 8] = (uint8_t)((n & 15) | (m & 15) << 4);
	}
}

static void encode_32(const float *x, const struct peer_min_search *how, uint8_t *block)
{
	struct peer_min_block fit;
	uint8_t q[256], *low = block + 16;

	xfp_peer_min_fit(&fit, 32, x, how);
	xfp_peer_min_indices(&fit, x, how, q);
	peer_store_half(block, fit.d);
	peer_store_half(block + 2, fit.dmin);
	store_numbers(&fit, block + 4);
	if (how->top > 15) {
		memset(block + 16, 0, 32);
		for (unsigned i = 0; i < 256; i++)
			block[16 + i % 32] |= (uint8_t)((q[i] >> 4) << (i / 32));
		low += 32;
	}
	for (unsigned i = 0; i < 128; i++) {
		const uint8_t *at = q + i / 32 * 64 + i % 32;

		low[i] = (uint8_t)((at[0] & 15) | (at[32] & 15) << 4);
	}
}

void xfp_q4_k_encode(const float *x, uint8_t *block)
{
	encode_32(x, &q4_search, block);
}

void xfp_q5_k_encode(const float *x, uint8_t *block)
{
	encode_32(x, &q5_search, block);
}
