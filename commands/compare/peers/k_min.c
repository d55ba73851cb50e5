/* SPDX-License-Identifier: Apache-2.0 */
/* Q2_K, Q4_K and Q5_K: a scale and a minimum a group. */
#include "commands/compare/peers/min.h"

/* Q2_K: 16 groups of 16.
 *
 *   0   16   a byte a group: the scale's number, above it the minimum's
 *   16  64   the index of weight 128 h + 32 b + i: bits 2 b of byte 32 h + i
 *   80  4    d, dmin
 */
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

void xfp_q2_k_decode(const uint8_t *block, float *x)
{
	float d = peer_load_half(block + 80), dmin = peer_load_half(block + 82);

	for (unsigned i = 0; i < 256; i++) {
		unsigned q = block[16 + i / 128 * 32 + i % 32] >> (2 * (i / 32 % 4)) & 3, both = block[i / 16];

		x[i] = d * (float)(both & 15) * (float)q - dmin * (float)(both >> 4);
	}
}

/* Q4_K and Q5_K: 8 groups of 32.
 *
 *   0   4    d, dmin
 *   4   12   six-bit numbers: of the scales of groups 0-3 the low bits of bytes 0-3, of their minima those of bytes
 *            4-7; of groups 4-7 the low four bits of scales and minima are the halves of bytes 8-11, and the high two
 *            bits are on top of bytes 0-3 and 4-7
 *   16  32   Q5_K only: bit 4 of the index of weight 32 g + i is bit g of byte i
 *   16  128  (48 in Q5_K) the low four bits of the index of weight 64 h + 32 b + i: half b of byte 32 h + i
 */
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

static void load_numbers(const uint8_t *in, unsigned g, float *number, float *minimum)
{
	if (g < 4) {
		*number = (float)(in[g] & 63);
		*minimum = (float)(in[g + 4] & 63);
	} else {
		*number = (float)((in[g + 4] & 15) | (in[g - 4] >> 6) << 4);
		*minimum = (float)(in[g + 4] >> 4 | (in[g] >> 6) << 4);
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

static void decode_32(const uint8_t *block, const uint8_t *high, const uint8_t *low, float *x)
{
	float d = peer_load_half(block), dmin = peer_load_half(block + 2);

	for (unsigned g = 0; g < 8; g++) {
		float number, minimum;

		load_numbers(block + 4, g, &number, &minimum);
		for (unsigned i = 0; i < 32; i++) {
			unsigned q = low[g / 2 * 32 + i] >> (4 * (g % 2)) & 15;

			q |= high ? (high[i] >> g & 1u) << 4 : 0;
			x[32 * g + i] = d * number * (float)q - dmin * minimum;
		}
	}
}

void xfp_q4_k_encode(const float *x, uint8_t *block)
{
	encode_32(x, &q4_search, block);
}
void xfp_q4_k_decode(const uint8_t *block, float *x)
{
	decode_32(block, NULL, block + 16, x);
}
void xfp_q5_k_encode(const float *x, uint8_t *block)
{
	encode_32(x, &q5_search, block);
}
void xfp_q5_k_decode(const uint8_t *block, float *x)
{
	decode_32(block, block + 16, block + 48, x);
}
