/* SPDX-License-Identifier: Apache-2.0 */
/* Plain int4: one scale per group, round to nearest. */
#include "kernels/peers/blocks.h"

/* Pack codes 0 ... 15 into halves of bytes, and unpack them. */
static void pack(const uint8_t *code, unsigned group, uint8_t *out)
{
	for (unsigned i = 0; i < group / 2; i++)
		out[i] = (uint8_t)(code[i] | code[i + group / 2] << 4);
}

static void unpack(const uint8_t *in, unsigned group, float scale, float zero, float *x)
{
	for (unsigned i = 0; i < group / 2; i++) {
		x[i] = scale * ((float)(in[i] & 15) - zero);
		x[i + group / 2] = scale * ((float)(in[i] >> 4) - zero);
	}
}

static void round_all(const float *x, unsigned group, float scale, float zero, uint8_t *out)
{
	uint8_t code[128];

	for (unsigned i = 0; i < group; i++)
		code[i] = (uint8_t)(peer_round(scale != 0 ? x[i] / scale : 0, -zero, 15 - zero) + zero);
	pack(code, group, out);
}

static void encode(const float *x, unsigned group, uint8_t *block)
{
	float peak = 0;
	uint16_t half;

	for (unsigned i = 0; i < group; i++)
		if (x[i] * x[i] > peak * peak)
			peak = x[i];
	half = peer_half(peak / -8);
	peer_store_half(block, half);
	round_all(x, group, xfp_half_to_float(half), 8, block + 2);
}

static void encode_zero(const float *x, unsigned group, uint8_t *block)
{
	block[4] = 0;
	for (unsigned g = 0; g < 2; g++, x += group) {
		float low = 0, high = 0, scale, zero;
		uint16_t half;

		for (unsigned i = 0; i < group; i++) {
			low = x[i] < low ? x[i] : low;
			high = x[i] > high ? x[i] : high;
		}
		half = peer_half((high - low) / 15);
		scale = xfp_half_to_float(half);
		zero = peer_round(scale > 0 ? -low / scale : 0, 0, 15);
		peer_store_half(block + 2 * g, half);
		block[4] |= (uint8_t)((unsigned)zero << (4 * g));
		round_all(x, group, scale, zero, block + 5 + g * (group / 2));
	}
}

static void decode_zero(const uint8_t *block, unsigned group, float *x)
{
	for (unsigned g = 0; g < 2; g++)
		unpack(block + 5 + g * (group / 2), group, peer_load_half(block + 2 * g),
		       (float)(block[4] >> (4 * g) & 15), x + g * group);
}

void xfp_int4_32_encode(const float *x, uint8_t *block)
{
	encode(x, 32, block);
}
void xfp_int4_32_decode(const uint8_t *block, float *x)
{
	unpack(block + 2, 32, peer_load_half(block), 8, x);
}
void xfp_int4_128_encode(const float *x, uint8_t *block)
{
	encode(x, 128, block);
}
void xfp_int4_128_decode(const uint8_t *block, float *x)
{
	unpack(block + 2, 128, peer_load_half(block), 8, x);
}
void xfp_int4z_32_encode(const float *x, uint8_t *block)
{
	encode_zero(x, 32, block);
}
void xfp_int4z_32_decode(const uint8_t *block, float *x)
{
	decode_zero(block, 32, x);
}
void xfp_int4z_128_encode(const float *x, uint8_t *block)
{
	encode_zero(x, 128, block);
}
void xfp_int4z_128_decode(const uint8_t *block, float *x)
{
	decode_zero(block, 128, x);
}
