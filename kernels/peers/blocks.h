/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - encoders and decoders of single blocks (peers.h), and the code that encoders share.
 *
 * Encoders process eight groups of weights at a time, one group per lane, so that no sum crosses lanes.
 */
#ifndef XFP_PEER_BLOCKS_H
#define XFP_PEER_BLOCKS_H

#include <stdint.h>
#include <string.h>

#include "kernels/common/number.h"

#define PEER_LANES 8
#define PEER_EACH for (int l = 0; l < PEER_LANES; l++)

struct peer_lanes {
	float v[PEER_LANES];
};

/* Eight groups of `length` weights each. */
struct peer_groups {
	unsigned length;
	struct peer_lanes x[32];
};

static inline void peer_groups_load(struct peer_groups *groups, unsigned length, const float *x)
{
	groups->length = length;
	for (unsigned i = 0; i < length; i++)
		PEER_EACH groups->x[i].v[l] = x[(unsigned)l * length + i];
}

/* Round to the nearest integer from low to high, ties to even. */
static inline float peer_round(float y, float low, float high)
{
	y = y > low ? y : low;
	y = y < high ? y : high;
	return (y + 0x1.8p23f) - 0x1.8p23f;
}

/* Round to fp16; larger values saturate. */
static inline uint16_t peer_half(float value)
{
	return xfp_float_to_half(value > 65504 ? 65504 : value < -65504 ? -65504 : value);
}

static inline void peer_store_half(uint8_t *out, uint16_t half)
{
	memcpy(out, &half, sizeof half); /* every host of xfp is little-endian */
}

static inline float peer_load_half(const uint8_t *in)
{
	uint16_t half;

	memcpy(&half, in, sizeof half);
	return xfp_half_to_float(half);
}

#define PEER_BLOCK(name)                                          \
	void xfp_##name##_encode(const float *x, uint8_t *block); \
	void xfp_##name##_decode(const uint8_t *block, float *x);

PEER_BLOCK(int4_32)
PEER_BLOCK(int4_128)
PEER_BLOCK(int4z_32)
PEER_BLOCK(int4z_128)
PEER_BLOCK(mxfp4)
/* llama.cpp's types, which kernels/ggml/blocks.h decodes. */
void xfp_q4_0_encode(const float *x, uint8_t *block);
void xfp_q2_k_encode(const float *x, uint8_t *block);
void xfp_q3_k_encode(const float *x, uint8_t *block);
void xfp_q4_k_encode(const float *x, uint8_t *block);
void xfp_q5_k_encode(const float *x, uint8_t *block);
void xfp_q6_k_encode(const float *x, uint8_t *block);
void xfp_iq4_xs_encode(const float *x, uint8_t *block);

/* Formats in which many blocks share a scale. */
#define PEER_SCALED_BLOCK(name)                                                \
	void xfp_##name##_encode(const float *x, float scale, uint8_t *block); \
	void xfp_##name##_decode(const uint8_t *block, float scale, float *x);

PEER_SCALED_BLOCK(nvfp4)
PEER_SCALED_BLOCK(fp8_tile)

#endif
