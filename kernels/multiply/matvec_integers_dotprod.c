/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_integers_dotprod.c - activations as 16-bit integers, in bytes, for matvec_dotprod.c.
 */
#include <arm_neon.h>

#include "kernels/multiply/matvec.h"

#define BLOCK_VECTORS (XFP_BYTES_BLOCK / 16)

static const float *lanes_of(const struct xfp_matvec_x *x, unsigned m, size_t vector)
{
	return x->lanes + (vector * x->tile + m) * 16;
}

/* Return the largest magnitude of some vectors, at least XFP_X_SMALLEST; XFP_X_TOO_LARGE if one is larger or NaN. */
static float largest(const struct xfp_matvec_x *x, unsigned m, size_t first, size_t end)
{
	float32x4_t most = vdupq_n_f32(XFP_X_SMALLEST);
	uint32x4_t fit = vdupq_n_u32(~0u);

	for (size_t v = first; v < end; v++)
		for (unsigned i = 0; i < 4; i++) {
			float32x4_t size = vabsq_f32(vld1q_f32(lanes_of(x, m, v) + 4 * i));

			fit = vandq_u32(fit, vcltq_f32(size, vdupq_n_f32(XFP_X_TOO_LARGE)));
			most = vmaxq_f32(most, size);
		}
	return vminvq_u32(fit) ? vmaxvq_f32(most) : XFP_X_TOO_LARGE;
}

static float sum_of_group(const struct xfp_matvec_x *x, unsigned m, size_t first)
{
	double sum = 0;

	for (size_t v = first; v < first + XFP_BYTES_GROUP / 16; v++)
		for (unsigned i = 0; i < 16; i++)
			sum += lanes_of(x, m, v)[i];
	return (float)sum;
}

/* Convert eight columns to integers. */
static int16x8_t in_steps(const float *from, float per_step)
{
	int32x4_t one = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(from), per_step));
	int32x4_t other = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(from + 4), per_step));

	return vcombine_s16(vmovn_s32(one), vmovn_s32(other));
}

/* Order two vectors like the indices of load_halves: columns 0, 16, 4, 20, 1, 17, 5, 21 ... */
static void put_bytes(int8x16_t one, int8x16_t other, int8_t *to)
{
	int16x8_t low = vreinterpretq_s16_s8(vzip1q_s8(one, other)), high = vreinterpretq_s16_s8(vzip2q_s8(one, other));

	vst1q_s8(to, vreinterpretq_s8_s16(vzip1q_s16(low, vextq_s16(low, low, 4))));
	vst1q_s8(to + 32, vreinterpretq_s8_s16(vzip1q_s16(high, vextq_s16(high, high, 4))));
}

/* Convert 64 columns to high bytes and low bytes. */
static void four_vectors(const struct xfp_matvec_x *x, unsigned m, size_t first, float per_step)
{
	int8_t *to = x->bytes + (first / 4 * x->tile + m) * 128;

	for (unsigned h = 0; h < 2; h++) {
		int8x16_t high[2], low[2];

		for (unsigned v = 0; v < 2; v++) {
			const float *from = lanes_of(x, m, first + 2 * h + v);
			int16x8_t one = in_steps(from, per_step), other = in_steps(from + 8, per_step);

			high[v] = vcombine_s8(vrshrn_n_s16(one, 8), vrshrn_n_s16(other, 8));
			low[v] = vcombine_s8(vmovn_s16(one), vmovn_s16(other));
		}
		put_bytes(high[0], high[1], to + 64 * h);
		put_bytes(low[0], low[1], to + 64 * h + 16);
	}
}

bool xfp_matvec_integers_dotprod(struct xfp_matvec_x *x)
{
	for (size_t first = 0, end; first < x->vectors; first = end) {
		end = first + BLOCK_VECTORS < x->vectors ? first + BLOCK_VECTORS : x->vectors;
		for (unsigned m = 0; m < x->tile; m++) {
			float most = largest(x, m, first, end);

			if (most >= XFP_X_TOO_LARGE)
				return false;
			for (size_t v = first; v < end; v += 4)
				four_vectors(x, m, v, XFP_BYTES_LIMIT / most);
			for (size_t v = first; x->groups && v < end; v += XFP_BYTES_GROUP / 16)
				x->group_sum[m * x->groups + v * 16 / XFP_BYTES_GROUP] = sum_of_group(x, m, v);
			x->step[first / BLOCK_VECTORS * x->tile + m] = most / XFP_BYTES_LIMIT * 0x1p8f;
		}
	}
	return true;
}
