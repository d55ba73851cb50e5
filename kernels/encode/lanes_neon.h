/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes_neon.h - the sixteen lanes of lanes_plain.h with the NEON that every AArch64 processor has, in quarters or
 * eighths. What each does is said there.
 */
#ifndef XFP_LANES_NEON_H
#define XFP_LANES_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/common/neon_lookup.h"
#include "kernels/encode/encode.h"

/* Functions that have a copy for every k. */
#define LANES_BY_K static inline __attribute__((always_inline))

typedef struct {
	float32x4_t a, b, c, d; /* lanes 0-3, 4-7, 8-11, 12-15 */
} vf;
typedef struct {
	int32x4_t a, b, c, d;
} vi;
typedef struct {
	uint32x4_t a, b, c, d; /* 0 or -1 */
} vm;

#define QUARTERS_1(f, x) f((x).a), f((x).b), f((x).c), f((x).d)
#define QUARTERS_2(f, x, y) f((x).a, (y).a), f((x).b, (y).b), f((x).c, (y).c), f((x).d, (y).d)
#define QUARTERS_3(f, x, y, z) \
	f((x).a, (y).a, (z).a), f((x).b, (y).b, (z).b), f((x).c, (y).c, (z).c), f((x).d, (y).d, (z).d)

ALWAYS vf vf_load(const float *from)
{
	return (vf){ vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12) };
}

ALWAYS void vf_store(float *to, vf a)
{
	vst1q_f32(to, a.a);
	vst1q_f32(to + 4, a.b);
	vst1q_f32(to + 8, a.c);
	vst1q_f32(to + 12, a.d);
}

ALWAYS vf vf_all(float value)
{
	return (vf){ vdupq_n_f32(value), vdupq_n_f32(value), vdupq_n_f32(value), vdupq_n_f32(value) };
}

ALWAYS vf vf_mul(vf a, vf b)
{
	return (vf){ QUARTERS_2(vmulq_f32, a, b) };
}

ALWAYS vf vf_add(vf a, vf b)
{
	return (vf){ QUARTERS_2(vaddq_f32, a, b) };
}

ALWAYS vf vf_sub(vf a, vf b)
{
	return (vf){ QUARTERS_2(vsubq_f32, a, b) };
}

ALWAYS vf vf_div(vf a, vf b)
{
	return (vf){ QUARTERS_2(vdivq_f32, a, b) };
}

ALWAYS vm vf_above(vf a, vf b)
{
	return (vm){ QUARTERS_2(vcgtq_f32, a, b) };
}

ALWAYS vf vf_where(vm m, vf a, vf b)
{
	return (vf){ QUARTERS_3(vbslq_f32, m, a, b) };
}

ALWAYS vi vf_bits(vf a)
{
	return (vi){ QUARTERS_1(vreinterpretq_s32_f32, a) };
}

ALWAYS vi vf_round(vf a)
{
	return (vi){ QUARTERS_1(vcvtnq_s32_f32, a) };
}

/* 0 + 8 and so on, 0 + 4, 0 + 2; what is left is 0 + 1. */
ALWAYS float32x2_t two_sums(vf a)
{
	float32x4_t four = vaddq_f32(vaddq_f32(a.a, a.c), vaddq_f32(a.b, a.d));

	return vadd_f32(vget_low_f32(four), vget_high_f32(four));
}

ALWAYS void vf_fold(vf a, vf b, float *sum_a, float *sum_b)
{
	float32x2_t both = vpadd_f32(two_sums(a), two_sums(b));

	*sum_a = vget_lane_f32(both, 0);
	*sum_b = vget_lane_f32(both, 1);
}

ALWAYS vf vf_from_bf16(const uint16_t *from)
{
	uint16x8_t low = vld1q_u16(from), high = vld1q_u16(from + 8);

	return (vf){ vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(low), 16)),
		     vreinterpretq_f32_u32(vshll_high_n_u16(low, 16)),
		     vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(high), 16)),
		     vreinterpretq_f32_u32(vshll_high_n_u16(high, 16)) };
}

ALWAYS vi vi_load(const int32_t *from)
{
	return (vi){ vld1q_s32(from), vld1q_s32(from + 4), vld1q_s32(from + 8), vld1q_s32(from + 12) };
}

ALWAYS void vi_store(int32_t *to, vi a)
{
	vst1q_s32(to, a.a);
	vst1q_s32(to + 4, a.b);
	vst1q_s32(to + 8, a.c);
	vst1q_s32(to + 12, a.d);
}

/* Sixteen words of 16 bits, as they are without a sign. */
ALWAYS vi from_16_bits(uint16x8_t low, uint16x8_t high)
{
	return (vi){ vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), vreinterpretq_s32_u32(vmovl_high_u16(low)),
		     vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
		     vreinterpretq_s32_u32(vmovl_high_u16(high)) };
}

ALWAYS vi vi_load_bytes(const uint8_t *from)
{
	uint8x16_t bytes = vld1q_u8(from);

	return from_16_bits(vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
}

ALWAYS struct words to_words(vi a)
{
	return (struct words){ QUARTERS_1(vreinterpretq_u32_s32, a) };
}

ALWAYS void vi_store_bytes(uint8_t *to, vi a)
{
	vst1q_u8(to, low_bytes(to_words(a)));
}

ALWAYS vi vi_all(int32_t value)
{
	return (vi){ vdupq_n_s32(value), vdupq_n_s32(value), vdupq_n_s32(value), vdupq_n_s32(value) };
}

ALWAYS vi vi_add(vi a, vi b)
{
	return (vi){ QUARTERS_2(vaddq_s32, a, b) };
}

ALWAYS vi vi_sub(vi a, vi b)
{
	return (vi){ QUARTERS_2(vsubq_s32, a, b) };
}

ALWAYS vi vi_and(vi a, vi b)
{
	return (vi){ QUARTERS_2(vandq_s32, a, b) };
}

ALWAYS vi vi_or(vi a, vi b)
{
	return (vi){ QUARTERS_2(vorrq_s32, a, b) };
}

ALWAYS vi vi_xor(vi a, vi b)
{
	return (vi){ QUARTERS_2(veorq_s32, a, b) };
}

ALWAYS vi vi_max(vi a, vi b)
{
	return (vi){ QUARTERS_2(vmaxq_s32, a, b) };
}

ALWAYS vi vi_min(vi a, vi b)
{
	return (vi){ QUARTERS_2(vminq_s32, a, b) };
}

ALWAYS int32_t vi_most(vi a)
{
	return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.a, a.b), vmaxq_s32(a.c, a.d)));
}

ALWAYS int32x4_t least_quarter(vi a)
{
	return vminq_s32(vminq_s32(a.a, a.b), vminq_s32(a.c, a.d));
}

/* Nothing else is equal to the least, so the second is the least of what is not. */
ALWAYS void vi_two_least(vi a, unsigned apart, int32_t *least, int32_t *second)
{
	const int32x4_t none = vdupq_n_s32(INT32_MAX);
	int32x4_t most;

	if (apart <= 8)
		a = (vi){ vminq_s32(a.a, a.c), vminq_s32(a.b, a.d), none, none };
	if (apart <= 4)
		a = (vi){ vminq_s32(a.a, a.b), none, none, none };
	*least = vminvq_s32(least_quarter(a));
	most = vdupq_n_s32(*least);
	a.a = vbslq_s32(vceqq_s32(a.a, most), none, a.a);
	a.b = vbslq_s32(vceqq_s32(a.b, most), none, a.b);
	a.c = vbslq_s32(vceqq_s32(a.c, most), none, a.c);
	a.d = vbslq_s32(vceqq_s32(a.d, most), none, a.d);
	*second = vminvq_s32(least_quarter(a));
}

ALWAYS vi vi_left(vi a, int count)
{
	const int32x4_t by = vdupq_n_s32(count);

	return (vi){ vshlq_s32(a.a, by), vshlq_s32(a.b, by), vshlq_s32(a.c, by), vshlq_s32(a.d, by) };
}

ALWAYS int32x4_t right_quarter(int32x4_t a, int count)
{
	return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-count)));
}

ALWAYS vi vi_right(vi a, int count)
{
	return (vi){ right_quarter(a.a, count), right_quarter(a.b, count), right_quarter(a.c, count),
		     right_quarter(a.d, count) };
}

ALWAYS vi vi_sign(vi a)
{
	return (vi){ vshrq_n_s32(a.a, 31), vshrq_n_s32(a.b, 31), vshrq_n_s32(a.c, 31), vshrq_n_s32(a.d, 31) };
}

ALWAYS vm vi_above(vi a, vi b)
{
	return (vm){ QUARTERS_2(vcgtq_s32, a, b) };
}

ALWAYS int32x4_t add_where_quarter(int32x4_t a, uint32x4_t m, int32x4_t b)
{
	return vaddq_s32(a, vandq_s32(vreinterpretq_s32_u32(m), b));
}

ALWAYS vi vi_add_where(vi a, vm m, vi b)
{
	return (vi){ QUARTERS_3(add_where_quarter, a, m, b) };
}

ALWAYS vi vi_where(vm m, vi a, vi b)
{
	return (vi){ QUARTERS_3(vbslq_s32, m, a, b) };
}

ALWAYS vm vm_from_bits(uint32_t bits)
{
	const uint32x4_t all = vdupq_n_u32(bits), lanes = { 1, 2, 4, 8 };

	return (vm){ vtstq_u32(all, lanes), vtstq_u32(all, vshlq_n_u32(lanes, 4)),
		     vtstq_u32(all, vshlq_n_u32(lanes, 8)), vtstq_u32(all, vshlq_n_u32(lanes, 12)) };
}

ALWAYS uint32_t vm_bits(vm m)
{
	const uint32x4_t lanes = { 1, 2, 4, 8 };
	uint32x4_t low = vorrq_u32(vandq_u32(m.a, lanes), vandq_u32(m.b, vshlq_n_u32(lanes, 4)));
	uint32x4_t high = vorrq_u32(vandq_u32(m.c, vshlq_n_u32(lanes, 8)), vandq_u32(m.d, vshlq_n_u32(lanes, 12)));

	return vaddvq_u32(vorrq_u32(low, high));
}

ALWAYS vm vm_or(vm a, vm b)
{
	return (vm){ QUARTERS_2(vorrq_u32, a, b) };
}

ALWAYS vm vm_and(vm a, vm b)
{
	return (vm){ QUARTERS_2(vandq_u32, a, b) };
}

/* ---- look-ups ---------------------------------------------------------------------------------- */

/* Of a table of any size: there is no instruction for it. */
ALWAYS int32x4_t gather_quarter(const int32_t *table, int32x4_t index)
{
	int32x4_t a = vdupq_n_s32(table[vgetq_lane_s32(index, 0)]);

	a = vld1q_lane_s32(table + vgetq_lane_s32(index, 1), a, 1);
	a = vld1q_lane_s32(table + vgetq_lane_s32(index, 2), a, 2);
	return vld1q_lane_s32(table + vgetq_lane_s32(index, 3), a, 3);
}

ALWAYS vi vi_lookup(const int32_t *table, vi index)
{
	return (vi){ gather_quarter(table, index.a), gather_quarter(table, index.b), gather_quarter(table, index.c),
		     gather_quarter(table, index.d) };
}

ALWAYS float32x4_t gather_floats(const float *table, int32x4_t index)
{
	float32x4_t a = vdupq_n_f32(table[vgetq_lane_s32(index, 0)]);

	a = vld1q_lane_f32(table + vgetq_lane_s32(index, 1), a, 1);
	a = vld1q_lane_f32(table + vgetq_lane_s32(index, 2), a, 2);
	return vld1q_lane_f32(table + vgetq_lane_s32(index, 3), a, 3);
}

ALWAYS vf vf_gather(const float *table, vi index)
{
	return (vf){ gather_floats(table, index.a), gather_floats(table, index.b), gather_floats(table, index.c),
		     gather_floats(table, index.d) };
}

/* Of 4, 8, 16, 32 or 64 entries of 32 bits. */
ALWAYS struct words look_up(unsigned size, const void *table, vi index)
{
	if (size > 8) {
		struct planes planes = load_planes(size, table);

		return look_up_planes(size, &planes, low_bytes(to_words(index)));
	}
	struct few few = load_few(size, table);

	return look_up_few(size, &few, to_words(index));
}

ALWAYS vf vf_lookup(const float *table, unsigned size, vi index)
{
	struct words a = look_up(size, table, index);

	return (vf){ QUARTERS_1(vreinterpretq_f32_u32, a) };
}

ALWAYS vi vi_lookup16(const int32_t *table, vi index)
{
	struct words a = look_up(16, table, index);

	return (vi){ QUARTERS_1(vreinterpretq_s32_u32, a) };
}

ALWAYS vi vi_lookup64(const int32_t *table, vi index)
{
	struct words a = look_up(64, table, index);

	return (vi){ QUARTERS_1(vreinterpretq_s32_u32, a) };
}

/* ---- what groups with scale and midpoint need besides, scaled_rows.h -------------------- */

/* The instructions for it have another view of zeros and NaNs. */
ALWAYS vf vf_larger(vf a, vf b)
{
	return vf_where(vf_above(a, b), a, b);
}

ALWAYS vf vf_smaller(vf a, vf b)
{
	return vf_where(vf_above(b, a), a, b);
}

ALWAYS float vf_largest(vf a)
{
	return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.a, a.b), vmaxq_f32(a.c, a.d)));
}

ALWAYS float vf_total(vf a)
{
	return vaddv_f32(two_sums(a));
}

ALWAYS vi vf_round_small(vf a)
{
	return vf_round(a);
}

ALWAYS vf vf_mul_add_halves(vf a, vf b, vf c)
{
	return (vf){ QUARTERS_3(vfmaq_f32, c, a, b) };
}

ALWAYS vf vf_from_bits(vi a)
{
	return (vf){ QUARTERS_1(vreinterpretq_f32_s32, a) };
}

ALWAYS vf vf_from_i(vi a)
{
	return (vf){ QUARTERS_1(vcvtq_f32_s32, a) };
}

ALWAYS int32x4_t running_quarter(int32x4_t a)
{
	const int32x4_t zero = vdupq_n_s32(0);

	a = vaddq_s32(a, vextq_s32(zero, a, 3));
	return vaddq_s32(a, vextq_s32(zero, a, 2));
}

ALWAYS vi vi_running(vi a)
{
	a = (vi){ QUARTERS_1(running_quarter, a) };
	a.b = vaddq_s32(a.b, vdupq_laneq_s32(a.a, 3));
	a.c = vaddq_s32(a.c, vdupq_laneq_s32(a.b, 3));
	a.d = vaddq_s32(a.d, vdupq_laneq_s32(a.c, 3));
	return a;
}

typedef struct {
	uint16x8_t all[4], high[4]; /* sums of words, which overflow, and of their high bytes */
} vtally;

ALWAYS void vtally_clear(vtally *t)
{
	for (int i = 0; i < 4; i++)
		t->all[i] = t->high[i] = vdupq_n_u16(0);
}

ALWAYS void vtally_add(vtally *t, const uint16_t *words)
{
	for (int i = 0; i < 4; i++) {
		uint16x8_t eight = vld1q_u16(words + 8 * i);

		t->all[i] = vaddq_u16(t->all[i], eight);
		t->high[i] = vsraq_n_u16(t->high[i], eight, 8);
	}
}

ALWAYS uint16x8_t tally_words(const vtally *t, unsigned at, bool high)
{
	return high ? t->high[at] : vsubq_u16(t->all[at], vshlq_n_u16(t->high[at], 8));
}

ALWAYS vi vtally_sums(const vtally *t, unsigned part)
{
	unsigned at = part % 2 * 2;

	return from_16_bits(tally_words(t, at, part >= 2), tally_words(t, at + 1, part >= 2));
}

#include "kernels/encode/lanes_neon_double.h"

#undef ALWAYS
#undef QUARTERS_1
#undef QUARTERS_2
#undef QUARTERS_3

#endif
