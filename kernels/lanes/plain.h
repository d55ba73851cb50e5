/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.h - sixteen lanes in plain C, for any machine, in vectors of four if the compiler supports them. It describes
 * the operations that registers.h leaves to each instruction set.
 */
#ifndef XFP_LANES_PLAIN_H
#define XFP_LANES_PLAIN_H

#include <stdint.h>
#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/common/round.h"

#define LANES_WIDTH 4
typedef float reg_f __attribute__((vector_size(16)));
typedef int32_t reg_i __attribute__((vector_size(16)));
typedef int32_t reg_m __attribute__((vector_size(16)));
typedef double reg_d __attribute__((vector_size(16)));
#include "kernels/lanes/masks.h"

/* For functions specialized by k in other sets; here the specialization would only add to compile time. */
#define LANES_BY_K static __attribute__((noinline))

#define EACH for (int i = 0; i < XFP_LANES; i++)

/* One lane of 32 bits, one of 64. */
#define LANE(a, i) (a).of[(i) / 4][(i) % 4]
#define LANE_D(a, i) (a).of[(i) / 2][(i) % 2]

LANES_INLINE vf vf_where(vm m, vf a, vf b)
{
	EACH_REGISTER a.of[i] = (reg_f)((m.of[i] & (reg_i)a.of[i]) | (~m.of[i] & (reg_i)b.of[i]));
	return a;
}

/* Round to nearest, ties to even; |a| < 2^31. */
LANES_INLINE vi vf_round(vf a)
{
	vi b;

	EACH LANE(b, i) = (int32_t)xfp_round_even(LANE(a, i));
	return b;
}

/* Return the sum of all lanes: 0 + 8, 1 + 9 ..., then 0 + 4 ..., 0 + 2 ..., 0 + 1. */
LANES_INLINE float vf_total(vf a)
{
	a.of[0] = (a.of[0] + a.of[2]) + (a.of[1] + a.of[3]);
	return (LANE(a, 0) + LANE(a, 2)) + (LANE(a, 1) + LANE(a, 3));
}

/* vf_total of a and of b. */
LANES_INLINE void vf_fold(vf a, vf b, float *sum_a, float *sum_b)
{
	*sum_a = vf_total(a);
	*sum_b = vf_total(b);
}

LANES_INLINE vf vf_from_bf16(const uint16_t *from)
{
	vi a;

	EACH LANE(a, i) = (int32_t)((uint32_t)from[i] << 16);
	return vf_from_bits(a);
}

LANES_INLINE vd vd_from_f(vf a)
{
	vd b;

	EACH LANE_D(b, i) = LANE(a, i);
	return b;
}

/* Round to f32. */
LANES_INLINE vf vf_from_d(vd a)
{
	vf b;

	EACH LANE(b, i) = (float)LANE_D(a, i);
	return b;
}

LANES_INLINE vd vd_from_i(vi a)
{
	vd b;

	EACH LANE_D(b, i) = LANE(a, i);
	return b;
}

LANES_INLINE vi vi_load_bytes(const uint8_t *from)
{
	vi a;

	EACH LANE(a, i) = from[i];
	return a;
}

/* Store the low bytes of the lanes. */
LANES_INLINE void vi_store_bytes(uint8_t *to, vi a)
{
	EACH to[i] = (uint8_t)LANE(a, i);
}

LANES_INLINE vi vi_where(vm m, vi a, vi b)
{
	EACH_REGISTER a.of[i] = (m.of[i] & a.of[i]) | (~m.of[i] & b.of[i]);
	return a;
}

LANES_INLINE vi vi_max(vi a, vi b)
{
	return vi_where(vi_above(a, b), a, b);
}

LANES_INLINE vi vi_min(vi a, vi b)
{
	return vi_where(vi_above(b, a), a, b);
}

/* The largest lane. */
LANES_INLINE int32_t vi_most(vi a)
{
	int32_t most = LANE(a, 0);

	EACH most = LANE(a, i) > most ? LANE(a, i) : most;
	return most;
}

/* Pair the lanes of a and b for an operation on lanes that are 8 (level 0), 4, 2 or 1 (level 3) apart. Among blocks of
 * four lanes (levels 0 and 1), or lanes of every block: low has 0 and 1 of a, then of b, and high 2 and 3; at odd
 * levels, low has 0 and 2, and high 1 and 3. */
LANES_INLINE void vi_halves(int level, vi a, vi b, vi *low, vi *high)
{
	const int step = level % 2 ? 1 : 2;

	EACH
	{
		int j = level < 2 ? i / 4 : i % 4, at = j % 2 * (3 - step);
		int from = level < 2 ? 4 * at + i % 4 : i / 4 * 4 + at, next = level < 2 ? 4 * step : step;

		LANE(*low, i) = j < 2 ? LANE(a, from) : LANE(b, from);
		LANE(*high, i) = j < 2 ? LANE(a, from + next) : LANE(b, from + next);
	}
}

/* table[index] */
LANES_INLINE vi vi_lookup(const int32_t *table, vi index)
{
	EACH LANE(index, i) = table[LANE(index, i)];
	return index;
}

/* Return table[index] of a table of sixteen. */
LANES_INLINE vi vi_lookup16(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

/* Set the lanes whose bits are set. */
LANES_INLINE vm vm_from_bits(uint32_t bits)
{
	vm m;

	EACH LANE(m, i) = -(int32_t)(bits >> i & 1);
	return m;
}

/* Bit i: lane i. */
LANES_INLINE uint32_t vm_bits(vm m)
{
	uint32_t bits = 0;

	EACH bits |= (uint32_t)(LANE(m, i) & 1) << i;
	return bits;
}

/* Return table[index] of a table of 4, 8, 16, 32 or 64 entries. */
LANES_INLINE vf vf_lookup(const float *table, unsigned size, vi index)
{
	vf a;

	(void)size;
	EACH LANE(a, i) = table[LANE(index, i)];
	return a;
}

/* Return table[index] of a table of any size. */
LANES_INLINE vf vf_gather(const float *table, vi index)
{
	return vf_lookup(table, 0, index);
}

LANES_INLINE vd vd_where(vm m, vd a, vd b)
{
	EACH LANE_D(a, i) = LANE(m, i) ? LANE_D(a, i) : LANE_D(b, i);
	return a;
}

LANES_INLINE vd vd_lookup(const double *table, vi index)
{
	vd a;

	EACH LANE_D(a, i) = table[LANE(index, i)];
	return a;
}

LANES_INLINE vd vd_lookup16(const double *table, vi index)
{
	return vd_lookup(table, index);
}

/* Return -1 if a is negative (or -0), otherwise 0. */
LANES_INLINE vi vd_sign(vd a)
{
	uint64_t bits[XFP_LANES];
	vi b;

	memcpy(bits, &a, sizeof bits);
	EACH LANE(b, i) = -(int32_t)(bits[i] >> 63);
	return b;
}

/* Return the bits of |a|, minus one if a < 0, without the lowest `count` >= 32 bits; |a| > 0 if a is negative. */
LANES_INLINE vi vd_key(vd a, int count)
{
	uint64_t bits[XFP_LANES];
	vi b;

	memcpy(bits, &a, sizeof bits);
	EACH LANE(b, i) = (int32_t)(((bits[i] & INT64_MAX) - (bits[i] >> 63)) >> count);
	return b;
}

/* Return a + b * c, where b * c is exact, so that an intermediate rounding makes no difference. */
LANES_INLINE vd vd_add_exact(vd a, vd b, vd c)
{
	return vd_add(a, vd_mul(b, c));
}

/* Exact integer sums of the lanes of a, |a| <= 2^24, and of their squares, while they fit in 64 bits. */
typedef struct {
	int64_t sum[XFP_LANES], square[XFP_LANES];
} vsum;

LANES_INLINE void vsum_clear(vsum *s)
{
	memset(s, 0, sizeof *s);
}

LANES_INLINE void vsum_add(vsum *s, vi a)
{
	EACH
	{
		s->sum[i] += LANE(a, i);
		s->square[i] += (int64_t)LANE(a, i) * LANE(a, i);
	}
}

LANES_INLINE void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = *square = 0;
	EACH
	{
		*sum += s->sum[i];
		*square += s->square[i];
	}
}

/* Return a > b ? a : b; the second function, a < b ? a : b. */
LANES_INLINE vf vf_larger(vf a, vf b)
{
	return vf_where(vf_above(a, b), a, b);
}

LANES_INLINE vf vf_smaller(vf a, vf b)
{
	return vf_where(vf_above(b, a), a, b);
}

/* Return the maximum of lanes that are not NaN. */
LANES_INLINE float vf_largest(vf a)
{
	float most = LANE(a, 0);

	EACH most = LANE(a, i) > most ? LANE(a, i) : most;
	return most;
}

/* Round to nearest, ties to even; |a| < 2^22. */
LANES_INLINE vi vf_round_small(vf a)
{
	return vi_sub(vf_bits(vf_add(a, vf_all(0x1.8p23f))),
		      vi_all(0x4b400000)); /* an integer step is the lowest bit */
}

/* Return a * b + c, rounded once or twice. */
LANES_INLINE vf vf_fma(vf a, vf b, vf c)
{
	return vf_add(vf_mul(a, b), c);
}

/* Return a * b + c rounded once, for fp16 values. */
LANES_INLINE vf vf_mul_add_halves(vf a, vf b, vf c)
{
	EACH LANE(a, i) = xfp_scaled_value(LANE(a, i), LANE(b, i), LANE(c, i));
	return a;
}

/* table[index] of 64 entries */
LANES_INLINE vi vi_lookup64(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

/* Return prefix sums: lane i is the sum of lanes 0 to i. */
LANES_INLINE vi vi_running(vi a)
{
	for (int i = 1; i < XFP_LANES; i++)
		LANE(a, i) += LANE(a, i - 1);
	return a;
}

/* 64 sums of bytes, added 64 at a time, in 32 words. At most 257 additions fit in a word. */
typedef struct {
	uint64_t low[8], high[8]; /* four sums each */
} vtally;

LANES_INLINE void vtally_clear(vtally *t)
{
	memset(t, 0, sizeof *t);
}

LANES_INLINE void vtally_add(vtally *t, const uint16_t *words)
{
	const uint64_t bytes = 0x00ff00ff00ff00ff;

	for (int i = 0; i < 8; i++) {
		uint64_t four;

		memcpy(&four, words + 4 * i, sizeof four);
		t->low[i] += four & bytes;
		t->high[i] += four >> 8 & bytes;
	}
}

/* Return sixteen sums: of the words' low bytes, words 0-15 and 16-31, then of their high bytes. */
LANES_INLINE vi vtally_sums(const vtally *t, unsigned part)
{
	uint16_t sums[XFP_LANES];
	vi a;

	memcpy(sums, (part < 2 ? t->low : t->high) + part % 2 * 4, sizeof sums);
	EACH LANE(a, i) = sums[i];
	return a;
}

#endif
