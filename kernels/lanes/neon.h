/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neon.h - sixteen lanes with the NEON that every AArch64 processor has, in four registers. plain.h describes each
 * operation.
 */
#ifndef XFP_LANES_NEON_H
#define XFP_LANES_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

#define LANES_WIDTH 4
typedef float32x4_t reg_f;
typedef int32x4_t reg_i;
typedef float64x2_t reg_d;
typedef uint32x4_t reg_m;
#include "kernels/lanes/masks.h"
#include "kernels/lanes/neon_lookup.h"

/* For functions specialized by k. */
#define LANES_BY_K LANES_INLINE

LANES_INLINE vf vf_where(vm m, vf a, vf b)
{
	EACH_REGISTER a.of[i] = vbslq_f32(m.of[i], a.of[i], b.of[i]);
	return a;
}

LANES_INLINE vi vf_round(vf a)
{
	vi b;

	EACH_REGISTER b.of[i] = vcvtnq_s32_f32(a.of[i]);
	return b;
}

LANES_INLINE vi vf_round_small(vf a)
{
	return vf_round(a);
}

/* The sums of lanes 0 + 8 and so on, 0 + 4, 0 + 2; 0 + 1 is left. */
LANES_INLINE float32x2_t two_sums(vf a)
{
	float32x4_t four = vaddq_f32(vaddq_f32(a.of[0], a.of[2]), vaddq_f32(a.of[1], a.of[3]));

	return vadd_f32(vget_low_f32(four), vget_high_f32(four));
}

LANES_INLINE void vf_fold(vf a, vf b, float *sum_a, float *sum_b)
{
	float32x2_t both = vpadd_f32(two_sums(a), two_sums(b));

	*sum_a = vget_lane_f32(both, 0);
	*sum_b = vget_lane_f32(both, 1);
}

LANES_INLINE float vf_total(vf a)
{
	return vaddv_f32(two_sums(a));
}

/* The instructions for it treat zeros and NaNs differently. */
LANES_INLINE vf vf_larger(vf a, vf b)
{
	return vf_where(vf_above(a, b), a, b);
}

LANES_INLINE vf vf_smaller(vf a, vf b)
{
	return vf_where(vf_above(b, a), a, b);
}

LANES_INLINE float vf_largest(vf a)
{
	return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.of[0], a.of[1]), vmaxq_f32(a.of[2], a.of[3])));
}

LANES_INLINE vf vf_fma(vf a, vf b, vf c)
{
	EACH_REGISTER c.of[i] = vfmaq_f32(c.of[i], a.of[i], b.of[i]);
	return c;
}

LANES_INLINE vf vf_mul_add_halves(vf a, vf b, vf c)
{
	return vf_fma(a, b, c);
}

LANES_INLINE vf vf_from_bf16(const uint16_t *from)
{
	vf a;

	EACH_REGISTER a.of[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from + 4 * i), 16));
	return a;
}

/* Sixteen numbers of 16 bits without a sign. */
LANES_INLINE vi from_16_bits(uint16x8_t low, uint16x8_t high)
{
	return (vi){ { vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), vreinterpretq_s32_u32(vmovl_high_u16(low)),
		       vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
		       vreinterpretq_s32_u32(vmovl_high_u16(high)) } };
}

LANES_INLINE vi vi_load_bytes(const uint8_t *from)
{
	uint8x16_t bytes = vld1q_u8(from);

	return from_16_bits(vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
}

LANES_INLINE void vi_store_bytes(uint8_t *to, vi a)
{
	vst1q_u8(to, low_bytes(a));
}

LANES_INLINE vi vi_max(vi a, vi b)
{
	EACH_REGISTER a.of[i] = vmaxq_s32(a.of[i], b.of[i]);
	return a;
}

LANES_INLINE vi vi_min(vi a, vi b)
{
	EACH_REGISTER a.of[i] = vminq_s32(a.of[i], b.of[i]);
	return a;
}

LANES_INLINE int32_t vi_most(vi a)
{
	return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.of[0], a.of[1]), vmaxq_s32(a.of[2], a.of[3])));
}

LANES_INLINE void vi_halves(int level, vi a, vi b, vi *low, vi *high)
{
	if (level == 0) {
		*low = (vi){ { a.of[0], a.of[1], b.of[0], b.of[1] } };
		*high = (vi){ { a.of[2], a.of[3], b.of[2], b.of[3] } };
	} else if (level == 1) {
		*low = (vi){ { a.of[0], a.of[2], b.of[0], b.of[2] } };
		*high = (vi){ { a.of[1], a.of[3], b.of[1], b.of[3] } };
	} else if (level == 2) {
		EACH_REGISTER
		{
			int64x2_t x = vreinterpretq_s64_s32(a.of[i]), y = vreinterpretq_s64_s32(b.of[i]);

			low->of[i] = vreinterpretq_s32_s64(vzip1q_s64(x, y));
			high->of[i] = vreinterpretq_s32_s64(vzip2q_s64(x, y));
		}
	} else {
		EACH_REGISTER
		{
			low->of[i] = vuzp1q_s32(a.of[i], b.of[i]);
			high->of[i] = vuzp2q_s32(a.of[i], b.of[i]);
		}
	}
}

LANES_INLINE vi vi_where(vm m, vi a, vi b)
{
	EACH_REGISTER a.of[i] = vbslq_s32(m.of[i], a.of[i], b.of[i]);
	return a;
}

/* Lane i of a register: bit i of a register's four. */
LANES_INLINE uint32x4_t bit_of_lane(int reg)
{
	const uint32x4_t lanes = { 1, 2, 4, 8 };

	return lanes << 4 * reg;
}

LANES_INLINE vm vm_from_bits(uint32_t bits)
{
	vm m;

	EACH_REGISTER m.of[i] = vtstq_u32(vdupq_n_u32(bits), bit_of_lane(i));
	return m;
}

LANES_INLINE uint32_t vm_bits(vm m)
{
	EACH_REGISTER m.of[i] &= bit_of_lane(i);
	return vaddvq_u32((m.of[0] | m.of[1]) | (m.of[2] | m.of[3]));
}

/* No instruction looks up in a table of any size. */
LANES_INLINE vi vi_lookup(const int32_t *table, vi index)
{
	EACH_REGISTER
	{
		int32x4_t at = index.of[i], a = vdupq_n_s32(table[vgetq_lane_s32(at, 0)]);

		a = vld1q_lane_s32(table + vgetq_lane_s32(at, 1), a, 1);
		a = vld1q_lane_s32(table + vgetq_lane_s32(at, 2), a, 2);
		index.of[i] = vld1q_lane_s32(table + vgetq_lane_s32(at, 3), a, 3);
	}
	return index;
}

LANES_INLINE vf vf_gather(const float *table, vi index)
{
	vf b;

	EACH_REGISTER
	{
		int32x4_t at = index.of[i];
		float32x4_t a = vdupq_n_f32(table[vgetq_lane_s32(at, 0)]);

		a = vld1q_lane_f32(table + vgetq_lane_s32(at, 1), a, 1);
		a = vld1q_lane_f32(table + vgetq_lane_s32(at, 2), a, 2);
		b.of[i] = vld1q_lane_f32(table + vgetq_lane_s32(at, 3), a, 3);
	}
	return b;
}

/* Look up lanes in a table of 4, 8, 16, 32 or 64 entries of 32 bits. */
LANES_INLINE vi look_up(unsigned size, const void *table, vi index)
{
	if (size > 8) {
		struct planes planes = load_planes(size, table);

		return look_up_planes(size, &planes, low_bytes(index));
	}
	struct few few = load_few(size, table);

	return look_up_few(size, &few, index);
}

LANES_INLINE vf vf_lookup(const float *table, unsigned size, vi index)
{
	return vf_from_bits(look_up(size, table, index));
}

LANES_INLINE vi vi_lookup16(const int32_t *table, vi index)
{
	return look_up(16, table, index);
}

LANES_INLINE vi vi_lookup64(const int32_t *table, vi index)
{
	return look_up(64, table, index);
}

LANES_INLINE vi vi_running(vi a)
{
	const int32x4_t zero = vdupq_n_s32(0);

	EACH_REGISTER
	{
		a.of[i] += vextq_s32(zero, a.of[i], 3);
		a.of[i] += vextq_s32(zero, a.of[i], 2);
	}
	for (int i = 1; i < LANES_REGISTERS; i++)
		a.of[i] += vdupq_laneq_s32(a.of[i - 1], 3);
	return a;
}

/* ---- 64 bits ------------------------------------------------------------------------------------ */

/* Lanes 2 i and 2 i + 1, widened with their sign. */
LANES_INLINE int64x2_t pair(vi a, int i)
{
	return i % 2 ? vmovl_high_s32(a.of[i / 2]) : vmovl_s32(vget_low_s32(a.of[i / 2]));
}

LANES_INLINE vd vd_from_f(vf a)
{
	vd b;

	EACH_DOUBLE b.of[i] = i % 2 ? vcvt_high_f64_f32(a.of[i / 2]) : vcvt_f64_f32(vget_low_f32(a.of[i / 2]));
	return b;
}

LANES_INLINE vf vf_from_d(vd a)
{
	vf b;

	EACH_REGISTER b.of[i] = vcvt_high_f32_f64(vcvt_f32_f64(a.of[2 * i]), a.of[2 * i + 1]);
	return b;
}

LANES_INLINE vd vd_from_i(vi a)
{
	vd b;

	EACH_DOUBLE b.of[i] = vcvtq_f64_s64(pair(a, i));
	return b;
}

LANES_INLINE vd vd_where(vm m, vd a, vd b)
{
	vi wide;

	EACH_REGISTER wide.of[i] = vreinterpretq_s32_u32(m.of[i]);
	EACH_DOUBLE a.of[i] = vbslq_f64(vreinterpretq_u64_s64(pair(wide, i)), a.of[i], b.of[i]);
	return a;
}

LANES_INLINE vd vd_lookup(const double *table, vi index)
{
	vd a;

	EACH_DOUBLE
	{
		int64x2_t at = pair(index, i);

		a.of[i] = vld1q_lane_f64(table + at[1], vdupq_n_f64(table[at[0]]), 1);
	}
	return a;
}

LANES_INLINE vd vd_lookup16(const double *table, vi index)
{
	return vd_lookup(table, index);
}

LANES_INLINE vi vd_sign(vd a)
{
	vi b;

	EACH_REGISTER b.of[i] = vuzp2q_s32((int32x4_t)a.of[2 * i], (int32x4_t)a.of[2 * i + 1]);
	return vi_sign(b);
}

LANES_INLINE int32x2_t key_pair(float64x2_t a, int count)
{
	uint64x2_t bits = vreinterpretq_u64_f64(a);

	bits = vsubq_u64(vandq_u64(bits, vdupq_n_u64(INT64_MAX)), vshrq_n_u64(bits, 63));
	return vreinterpret_s32_u32(vmovn_u64(vshlq_u64(bits, vdupq_n_s64(-count))));
}

LANES_INLINE vi vd_key(vd a, int count)
{
	vi b;

	EACH_REGISTER b.of[i] = vcombine_s32(key_pair(a.of[2 * i], count), key_pair(a.of[2 * i + 1], count));
	return b;
}

LANES_INLINE vd vd_add_exact(vd a, vd b, vd c)
{
	EACH_DOUBLE a.of[i] = vfmaq_f64(a.of[i], b.of[i], c.of[i]);
	return a;
}

typedef struct {
	int64x2_t sum[2], square[2];
} vsum;

LANES_INLINE void vsum_clear(vsum *s)
{
	s->sum[0] = s->sum[1] = s->square[0] = s->square[1] = vdupq_n_s64(0);
}

LANES_INLINE void vsum_add(vsum *s, vi a)
{
	EACH_REGISTER
	{
		s->sum[i % 2] = vpadalq_s32(s->sum[i % 2], a.of[i]);
		s->square[0] = vmlal_s32(s->square[0], vget_low_s32(a.of[i]), vget_low_s32(a.of[i]));
		s->square[1] = vmlal_high_s32(s->square[1], a.of[i], a.of[i]);
	}
}

LANES_INLINE void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = vaddvq_s64(vaddq_s64(s->sum[0], s->sum[1]));
	*square = vaddvq_s64(vaddq_s64(s->square[0], s->square[1]));
}

typedef struct {
	uint16x8_t all[4], high[4]; /* sums of words, which overflow, and of their high bytes */
} vtally;

LANES_INLINE void vtally_clear(vtally *t)
{
	EACH_REGISTER t->all[i] = t->high[i] = vdupq_n_u16(0);
}

LANES_INLINE void vtally_add(vtally *t, const uint16_t *words)
{
	EACH_REGISTER
	{
		uint16x8_t eight = vld1q_u16(words + 8 * i);

		t->all[i] = vaddq_u16(t->all[i], eight);
		t->high[i] = vsraq_n_u16(t->high[i], eight, 8);
	}
}

LANES_INLINE uint16x8_t tally_words(const vtally *t, unsigned at, bool high)
{
	return high ? t->high[at] : vsubq_u16(t->all[at], vshlq_n_u16(t->high[at], 8));
}

LANES_INLINE vi vtally_sums(const vtally *t, unsigned part)
{
	unsigned at = part % 2 * 2;

	return from_16_bits(tally_words(t, at, part >= 2), tally_words(t, at + 1, part >= 2));
}

#endif
