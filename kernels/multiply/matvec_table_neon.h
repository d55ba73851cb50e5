/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_table_neon.h - matvec_table_plain.h with the NEON that every AArch64 processor has. Tables are those of
 * neon_lookup.h.
 */
#ifndef XFP_MATVEC_TABLE_NEON_H
#define XFP_MATVEC_TABLE_NEON_H

#include <stddef.h>
#include <string.h>

#include "kernels/lanes/neon.h"
#include "kernels/multiply/matvec.h"

/* One of the two members is used, depending on k; `entry` is the buffer to build it. */
struct table {
	struct few few;
	struct planes planes;
	float entry[64];
};

#define PREFETCH_AHEAD 2048
#define OPEN_SUMS 2 /* each uses four registers */

#define m_prefetch(at) __builtin_prefetch((at) + PREFETCH_AHEAD)

LANES_INLINE vf table_lookup(unsigned k, const struct table *t, vi index)
{
	const uint8_t low = (uint8_t)((1u << k) - 1);

	if (k > 3)
		index = look_up_planes(1u << k, &t->planes, vandq_u8(low_bytes(index), vdupq_n_u8(low)));
	else
		index = look_up_few(1u << k, &t->few, vi_and(index, vi_all(low)));
	return vf_from_bits(index);
}

LANES_INLINE float32x4_t halves_quarter(const uint8_t *from)
{
	return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)));
}

LANES_INLINE void table_of_floats(unsigned k, const float *from, struct table *t)
{
	if (k <= 3)
		t->few = load_few(1u << k, from);
	else
		t->planes = load_planes(1u << k, from);
}

LANES_INLINE void table_of_halves(unsigned k, const uint8_t *from, struct table *t)
{
	for (unsigned i = 0; i < 1u << (k - 2); i++)
		vst1q_f32(t->entry + 4 * i, halves_quarter(from + 8 * i));
	table_of_floats(k, t->entry, t);
}

LANES_INLINE void table_scale(unsigned k, struct table *t, const uint8_t *pair)
{
	uint32_t both;
	float32x4_t numbers;

	memcpy(&both, pair, sizeof both);
	numbers = vcvt_f32_f16(vreinterpret_f16_u32(vdup_n_u32(both)));
	if (k == 2)
		vst1q_u8((uint8_t *)t->entry, t->few.part.val[0]);
	else if (k == 3)
		vst1q_u8_x2((uint8_t *)t->entry, t->few.part);
	for (unsigned i = 0; i < 1u << k >> 4; i++)
		vst4q_u8((uint8_t *)(t->entry + 16 * i), t->planes.part[i]);
	for (unsigned i = 0; i < 1u << k; i += 4)
		vst1q_f32(t->entry + i,
			  vfmaq_f32(vdupq_laneq_f32(numbers, 1), vld1q_f32(t->entry + i), vdupq_laneq_f32(numbers, 0)));
	table_of_floats(k, t->entry, t);
}

/* Convert as fp16, which gives 1/256 of the value; the NaN code would become a number and is replaced. */
LANES_INLINE float32x4_t e4m3_quarter(int16x4_t wide)
{
	uint16x4_t size = vand_u16(vreinterpret_u16_s16(vshl_n_s16(wide, 7)), vdup_n_u16(0x3f80));
	uint16x4_t nan = vand_u16(vceq_u16(size, vdup_n_u16(0x3f80)), vdup_n_u16(0x7e00));
	uint16x4_t sign = vand_u16(vreinterpret_u16_s16(wide), vdup_n_u16(0x8000));

	return vcvt_f32_f16(vreinterpret_f16_u16(vorr_u16(vorr_u16(size, nan), sign)));
}

LANES_INLINE vf stored_numbers(enum xfp_matvec_mode mode, const uint8_t *from)
{
	vf a;

	if (mode == XFP_MATVEC_F32)
		return vf_from_bits(vi_load(from));
	if (mode == XFP_MATVEC_BF16)
		return vf_from_bf16((const uint16_t *)(const void *)from);
	if (mode == XFP_MATVEC_FP8) {
		int8x16_t codes = vreinterpretq_s8_u8(vld1q_u8(from));
		int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);

		return (vf){ { e4m3_quarter(vget_low_s16(low)), e4m3_quarter(vget_high_s16(low)),
			       e4m3_quarter(vget_low_s16(high)), e4m3_quarter(vget_high_s16(high)) } };
	}
	EACH_REGISTER a.of[i] = halves_quarter(from + 8 * i);
	return a;
}

#endif
