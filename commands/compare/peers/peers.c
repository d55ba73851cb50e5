/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/compare/peers/peers.h"

#include <string.h>

#include "commands/compare/peers/blocks.h"

#define LARGEST 0x1p30f /* above all that any format can say; squares of it are far from infinity */

const struct xfp_peer xfp_peers[XFP_PEERS] = {
	{ "int4-32", 32, 18, xfp_int4_32_encode, xfp_int4_32_decode },
	{ "int4-128", 128, 66, xfp_int4_128_encode, xfp_int4_128_decode },
	{ "int4z-32", 64, 37, xfp_int4z_32_encode, xfp_int4z_32_decode },
	{ "int4z-128", 256, 133, xfp_int4z_128_encode, xfp_int4z_128_decode },
	{ "Q4_0", 32, 18, xfp_q4_0_encode, xfp_int4_32_decode },
	{ "Q2_K", 256, 84, xfp_q2_k_encode, xfp_q2_k_decode },
	{ "Q3_K", 256, 110, xfp_q3_k_encode, xfp_q3_k_decode },
	{ "Q4_K", 256, 144, xfp_q4_k_encode, xfp_q4_k_decode },
	{ "Q5_K", 256, 176, xfp_q5_k_encode, xfp_q5_k_decode },
	{ "Q6_K", 256, 210, xfp_q6_k_encode, xfp_q6_k_decode },
	{ "IQ4_XS", 256, 136, xfp_iq4_xs_encode, xfp_iq4_xs_decode },
};

void xfp_peer_encode(const struct xfp_peer *peer, const float *x, size_t n, uint8_t *out)
{
	float block[XFP_PEER_WEIGHTS];

	for (size_t at = 0; at < n; at += peer->weights, out += peer->bytes) {
		for (size_t i = 0; i < peer->weights; i++) {
			float value = at + i < n ? x[at + i] : 0;

			value = value < LARGEST ? value : value >= LARGEST ? LARGEST : 0;
			block[i] = value > -LARGEST ? value : -LARGEST;
		}
		peer->encode(block, out);
	}
}

void xfp_peer_decode(const struct xfp_peer *peer, const uint8_t *in, size_t n, float *x)
{
	float block[XFP_PEER_WEIGHTS];

	for (size_t at = 0; at < n; at += peer->weights, in += peer->bytes) {
		peer->decode(in, block);
		memcpy(x + at, block, (n - at < peer->weights ? n - at : peer->weights) * sizeof *x);
	}
}
