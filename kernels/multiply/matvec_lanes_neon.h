/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_lanes_neon.h - the lanes of matvec_rows.h as four quarters, with the NEON that every AArch64 processor has.
 * What each does is said in matvec_lanes_plain.h.
 */
#ifndef XFP_MATVEC_LANES_NEON_H
#define XFP_MATVEC_LANES_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/common/neon_lookup.h"
#include "kernels/multiply/matvec.h"

typedef struct {
	float32x4_t a, b, c, d; /* lanes 0-3, 4-7, 8-11, 12-15 */
} mf;
typedef struct words mi;

/* One of the two, by k; `entry` is where it is made. */
struct table {
	struct few few;
	struct planes planes;
	float entry[64];
};

#define PREFETCH_AHEAD 2048
#define OPEN_SUMS 2 /* each is four registers */

#define m_prefetch(at) __builtin_prefetch((at) + PREFETCH_AHEAD)

ALWAYS mf mf_zero(void)
{
	return (mf){ vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) };
}

ALWAYS mf mf_load(const float *from)
{
	return (mf){ vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12) };
}

ALWAYS void mf_store(float *to, mf a)
{
	vst1q_f32(to, a.a);
	vst1q_f32(to + 4, a.b);
	vst1q_f32(to + 8, a.c);
	vst1q_f32(to + 12, a.d);
}

ALWAYS mf mf_mul(mf a, mf b)
{
	return (mf){ vmulq_f32(a.a, b.a), vmulq_f32(a.b, b.b), vmulq_f32(a.c, b.c), vmulq_f32(a.d, b.d) };
}

ALWAYS mf mf_fma(mf a, mf b, mf c)
{
	return (mf){ vfmaq_f32(c.a, a.a, b.a), vfmaq_f32(c.b, a.b, b.b), vfmaq_f32(c.c, a.c, b.c),
		     vfmaq_f32(c.d, a.d, b.d) };
}

ALWAYS mf mf_add(mf a, mf b)
{
	return (mf){ vaddq_f32(a.a, b.a), vaddq_f32(a.b, b.b), vaddq_f32(a.c, b.c), vaddq_f32(a.d, b.d) };
}

ALWAYS float mf_sum(mf a)
{
	return vaddvq_f32(vaddq_f32(vaddq_f32(a.a, a.c), vaddq_f32(a.b, a.d)));
}

ALWAYS float32x4_t from_quarter(float32x4_t a, float32x4_t b, unsigned lane, unsigned first)
{
	const uint32x4_t lanes = { first, first + 1, first + 2, first + 3 };

	return vbslq_f32(vcltq_u32(lanes, vdupq_n_u32(lane)), a, b);
}

ALWAYS mf mf_from(mf a, mf b, unsigned lane)
{
	return (mf){ from_quarter(a.a, b.a, lane, 0), from_quarter(a.b, b.b, lane, 4), from_quarter(a.c, b.c, lane, 8),
		     from_quarter(a.d, b.d, lane, 12) };
}

ALWAYS uint32x4_t load_quarter(const uint8_t *from)
{
	return vreinterpretq_u32_u8(vld1q_u8(from));
}

ALWAYS mi mi_load(const uint8_t *from)
{
	return (mi){ load_quarter(from), load_quarter(from + 16), load_quarter(from + 32), load_quarter(from + 48) };
}

ALWAYS mi mi_load_part(const uint8_t *from, unsigned lanes)
{
	uint8_t all[64] = { 0 };

	memcpy(all, from, (size_t)4 * lanes);
	return mi_load(all);
}

/* Operators, since the instructions for constants take no 0. */
ALWAYS mi mi_shift(mi a, unsigned count)
{
	return (mi){ a.a >> count, a.b >> count, a.c >> count, a.d >> count };
}

ALWAYS mi mi_merge(mi a, mi b, uint32_t mask)
{
	const uint32x4_t m = vdupq_n_u32(mask);

	return (mi){ vbslq_u32(m, a.a, b.a), vbslq_u32(m, a.b, b.b), vbslq_u32(m, a.c, b.c), vbslq_u32(m, a.d, b.d) };
}

ALWAYS mf from_words(struct words a)
{
	return (mf){ vreinterpretq_f32_u32(a.a), vreinterpretq_f32_u32(a.b), vreinterpretq_f32_u32(a.c),
		     vreinterpretq_f32_u32(a.d) };
}

ALWAYS mf mf_lookup(unsigned k, const struct table *t, mi index)
{
	const uint32x4_t low = vdupq_n_u32((1u << k) - 1);

	if (k > 3)
		return from_words(look_up_planes(1u << k, &t->planes,
						 vandq_u8(low_bytes(index), vdupq_n_u8((uint8_t)((1u << k) - 1)))));
	index = (mi){ vandq_u32(index.a, low), vandq_u32(index.b, low), vandq_u32(index.c, low),
		      vandq_u32(index.d, low) };
	return from_words(look_up_few(1u << k, &t->few, index));
}

ALWAYS float32x4_t halves_quarter(const uint8_t *from)
{
	return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)));
}

ALWAYS void table_of_floats(unsigned k, const float *from, struct table *t)
{
	if (k <= 3)
		t->few = load_few(1u << k, from);
	else
		t->planes = load_planes(1u << k, from);
}

ALWAYS void table_of_halves(unsigned k, const uint8_t *from, struct table *t)
{
	for (unsigned i = 0; i < 1u << (k - 2); i++)
		vst1q_f32(t->entry + 4 * i, halves_quarter(from + 8 * i));
	table_of_floats(k, t->entry, t);
}

ALWAYS void table_scale(unsigned k, struct table *t, const uint8_t *pair)
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

/* As fp16 of a 256th; the one NaN is a number there, and becomes one. */
ALWAYS float32x4_t e4m3_quarter(int16x4_t wide)
{
	uint16x4_t size = vand_u16(vreinterpret_u16_s16(vshl_n_s16(wide, 7)), vdup_n_u16(0x3f80));
	uint16x4_t nan = vand_u16(vceq_u16(size, vdup_n_u16(0x3f80)), vdup_n_u16(0x7e00));
	uint16x4_t sign = vand_u16(vreinterpret_u16_s16(wide), vdup_n_u16(0x8000));

	return vcvt_f32_f16(vreinterpret_f16_u16(vorr_u16(vorr_u16(size, nan), sign)));
}

ALWAYS float32x4_t numbers_quarter(enum xfp_matvec_mode mode, const uint8_t *from)
{
	if (mode == XFP_MATVEC_F32)
		return vreinterpretq_f32_u8(vld1q_u8(from));
	if (mode == XFP_MATVEC_F16)
		return halves_quarter(from);
	return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(from)), 16));
}

ALWAYS mf mf_numbers(enum xfp_matvec_mode mode, const uint8_t *from)
{
	size_t quarter = mode == XFP_MATVEC_F32 ? 16 : 8;

	if (mode == XFP_MATVEC_FP8) {
		int8x16_t codes = vreinterpretq_s8_u8(vld1q_u8(from));
		int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);

		return (mf){ e4m3_quarter(vget_low_s16(low)), e4m3_quarter(vget_high_s16(low)),
			     e4m3_quarter(vget_low_s16(high)), e4m3_quarter(vget_high_s16(high)) };
	}
	return (mf){ numbers_quarter(mode, from), numbers_quarter(mode, from + quarter),
		     numbers_quarter(mode, from + 2 * quarter), numbers_quarter(mode, from + 3 * quarter) };
}

#undef ALWAYS

#endif
