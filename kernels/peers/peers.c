/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/peers/peers.h"

#include <string.h>

#include "kernels/ggml/blocks.h"
#include "kernels/peers/blocks.h"

#define LARGEST 0x1p30f /* above the largest number of every format; its square is far from infinity */

static const struct xfp_peer_shared nvfp4 = { false, 6 * 448, xfp_nvfp4_encode, xfp_nvfp4_decode };
static const struct xfp_peer_shared fp8_tile = { true, 448, xfp_fp8_tile_encode, xfp_fp8_tile_decode };

const struct xfp_peer xfp_peers[XFP_PEERS] = {
	{ "int4-32", 32, 18, xfp_int4_32_encode, xfp_int4_32_decode, NULL },
	{ "int4-128", 128, 66, xfp_int4_128_encode, xfp_int4_128_decode, NULL },
	{ "int4z-32", 64, 37, xfp_int4z_32_encode, xfp_int4z_32_decode, NULL },
	{ "int4z-128", 256, 133, xfp_int4z_128_encode, xfp_int4z_128_decode, NULL },
	{ "Q4_0", 32, 18, xfp_q4_0_encode, xfp_int4_32_decode, NULL },
	{ "Q2_K", 256, 84, xfp_q2_k_encode, xfp_ggml_q2_k, NULL },
	{ "Q3_K", 256, 110, xfp_q3_k_encode, xfp_ggml_q3_k, NULL },
	{ "Q4_K", 256, 144, xfp_q4_k_encode, xfp_ggml_q4_k, NULL },
	{ "Q5_K", 256, 176, xfp_q5_k_encode, xfp_ggml_q5_k, NULL },
	{ "Q6_K", 256, 210, xfp_q6_k_encode, xfp_ggml_q6_k, NULL },
	{ "IQ4_XS", 256, 136, xfp_iq4_xs_encode, xfp_ggml_iq4_xs, NULL },
	{ "NVFP4", 16, 9, NULL, NULL, &nvfp4 },
	{ "MXFP4", 32, 17, xfp_mxfp4_encode, xfp_mxfp4_decode, NULL },
	{ "FP8-128x128", 1, 1, NULL, NULL, &fp8_tile },
};

static uint64_t tiles_of(uint64_t count)
{
	return (count + XFP_PEER_TILE - 1) / XFP_PEER_TILE;
}

uint64_t xfp_peer_matrix_size(const struct xfp_peer *peer, uint64_t rows, uint64_t cols)
{
	uint64_t scales = !peer->shared ? 0 : peer->shared->tiles ? tiles_of(rows) * tiles_of(cols) : 1;

	return xfp_peer_size(peer, rows * cols) + scales * sizeof(float);
}

static float scale_of(const struct xfp_peer *peer, float peak)
{
	return (peak < LARGEST ? peak : LARGEST) / peer->shared->top;
}

void xfp_peer_encode(const struct xfp_peer *peer, float peak, const float *x, size_t n, uint8_t *out)
{
	float block[XFP_PEER_WEIGHTS], scale = peer->shared ? scale_of(peer, peak) : 0;

	for (size_t at = 0; at < n; at += peer->weights, out += peer->bytes) {
		for (size_t i = 0; i < peer->weights; i++) {
			float value = at + i < n ? x[at + i] : 0;

			value = value < LARGEST ? value : value >= LARGEST ? LARGEST : 0;
			block[i] = value > -LARGEST ? value : -LARGEST;
		}
		if (peer->shared)
			peer->shared->encode(block, scale, out);
		else
			peer->encode(block, out);
	}
}

void xfp_peer_decode(const struct xfp_peer *peer, float peak, const uint8_t *in, size_t n, float *x)
{
	float block[XFP_PEER_WEIGHTS], scale = peer->shared ? scale_of(peer, peak) : 0;

	for (size_t at = 0; at < n; at += peer->weights, in += peer->bytes) {
		if (peer->shared)
			peer->shared->decode(in, scale, block);
		else
			peer->decode(in, block);
		memcpy(x + at, block, (n - at < peer->weights ? n - at : peer->weights) * sizeof *x);
	}
}
