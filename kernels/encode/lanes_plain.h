/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes_plain.h - sixteen lanes in plain C, for any machine. lanes_avx2.h, lanes_avx512.h and lanes_neon.h define the
 * same names with the same results, bit for bit; encode_rows.h is written on top of one of them.
 *
 *   vf  16 f32      vi  16 int32      vd  16 f64      vm  16 truth values
 */
#ifndef XFP_LANES_PLAIN_H
#define XFP_LANES_PLAIN_H

#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/common/round.h"
#include "kernels/encode/encode.h"

/* Functions that are worth a copy for every k, but not here: there would be too much to compile. */
#define LANES_BY_K static __attribute__((noinline))

#define EACH for (int i = 0; i < XFP_LANES; i++)

typedef struct {
	float v[XFP_LANES];
} vf;
typedef struct {
	int32_t v[XFP_LANES];
} vi;
typedef struct {
	double v[XFP_LANES];
} vd;
typedef struct {
	int32_t v[XFP_LANES]; /* 0 or -1 */
} vm;

static inline vf vf_load(const float *from)
{
	vf a;

	memcpy(&a, from, sizeof a);
	return a;
}

static inline void vf_store(float *to, vf a)
{
	memcpy(to, &a, sizeof a);
}

static inline vf vf_all(float value)
{
	vf a;

	EACH a.v[i] = value;
	return a;
}

static inline vf vf_mul(vf a, vf b)
{
	EACH a.v[i] *= b.v[i];
	return a;
}

static inline vf vf_add(vf a, vf b)
{
	EACH a.v[i] += b.v[i];
	return a;
}

static inline vf vf_sub(vf a, vf b)
{
	EACH a.v[i] -= b.v[i];
	return a;
}

static inline vf vf_div(vf a, vf b)
{
	EACH a.v[i] /= b.v[i];
	return a;
}

static inline vm vf_above(vf a, vf b)
{
	vm m;

	EACH m.v[i] = -(a.v[i] > b.v[i]);
	return m;
}

static inline vf vf_where(vm m, vf a, vf b)
{
	EACH a.v[i] = m.v[i] ? a.v[i] : b.v[i];
	return a;
}

static inline vi vf_bits(vf a)
{
	vi b;

	memcpy(&b, &a, sizeof b);
	return b;
}

/* Nearest integers, ties to even; |a| < 2^31. */
static inline vi vf_round(vf a)
{
	vi b;

	EACH b.v[i] = (int32_t)xfp_round_even(a.v[i]);
	return b;
}

/* Sums of the lanes of a and of b: 0 + 8, 1 + 9, ..., then 0 + 4, ..., 0 + 2, 0 + 1. */
static inline void vf_fold(vf a, vf b, float *sum_a, float *sum_b)
{
	for (int half = XFP_LANES / 2; half; half /= 2) {
		for (int i = 0; i < half; i++) {
			a.v[i] += a.v[i + half];
			b.v[i] += b.v[i + half];
		}
	}
	*sum_a = a.v[0];
	*sum_b = b.v[0];
}

static inline vf vf_from_bf16(const uint16_t *from)
{
	uint32_t bits[XFP_LANES];
	vf a;

	EACH bits[i] = (uint32_t)from[i] << 16;
	memcpy(&a, bits, sizeof a);
	return a;
}

static inline vi vi_load(const int32_t *from)
{
	vi a;

	memcpy(&a, from, sizeof a);
	return a;
}

static inline void vi_store(int32_t *to, vi a)
{
	memcpy(to, &a, sizeof a);
}

static inline vi vi_load_bytes(const uint8_t *from)
{
	vi a;

	EACH a.v[i] = from[i];
	return a;
}

/* The low bytes of the lanes. */
static inline void vi_store_bytes(uint8_t *to, vi a)
{
	EACH to[i] = (uint8_t)a.v[i];
}

static inline vi vi_all(int32_t value)
{
	vi a;

	EACH a.v[i] = value;
	return a;
}

static inline vi vi_add(vi a, vi b)
{
	EACH a.v[i] += b.v[i];
	return a;
}

static inline vi vi_sub(vi a, vi b)
{
	EACH a.v[i] -= b.v[i];
	return a;
}

static inline vi vi_and(vi a, vi b)
{
	EACH a.v[i] &= b.v[i];
	return a;
}

static inline vi vi_or(vi a, vi b)
{
	EACH a.v[i] |= b.v[i];
	return a;
}

static inline vi vi_xor(vi a, vi b)
{
	EACH a.v[i] ^= b.v[i];
	return a;
}

static inline vi vi_max(vi a, vi b)
{
	EACH a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
	return a;
}

static inline vi vi_min(vi a, vi b)
{
	EACH a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
	return a;
}

/* The largest lane. */
static inline int32_t vi_most(vi a)
{
	int32_t most = a.v[0];

	EACH most = a.v[i] > most ? a.v[i] : most;
	return most;
}

/* Lanes that are 4, 8 or 16 `apart` belong together: the least lane, and the least of those that do not belong to
 * it. No two lanes are equal, but for INT32_MAX. */
static inline void vi_two_least(vi a, unsigned apart, int32_t *least, int32_t *second)
{
	*least = *second = INT32_MAX;
	for (unsigned i = 0; i < apart; i++) {
		int32_t own = a.v[i];

		for (unsigned j = i + apart; j < XFP_LANES; j += apart)
			own = a.v[j] < own ? a.v[j] : own;
		if (own < *least) {
			*second = *least;
			*least = own;
		} else if (own < *second) {
			*second = own;
		}
	}
}

/* Shifts by one count for all lanes: left, right with zeros, right with the sign. */
static inline vi vi_left(vi a, int count)
{
	EACH a.v[i] = (int32_t)((uint32_t)a.v[i] << count);
	return a;
}

static inline vi vi_right(vi a, int count)
{
	EACH a.v[i] = (int32_t)((uint32_t)a.v[i] >> count);
	return a;
}

static inline vi vi_sign(vi a)
{
	EACH a.v[i] = -(a.v[i] < 0);
	return a;
}

static inline vm vi_above(vi a, vi b)
{
	vm m;

	EACH m.v[i] = -(a.v[i] > b.v[i]);
	return m;
}

/* a where m is false, a + b where it is true. */
static inline vi vi_add_where(vi a, vm m, vi b)
{
	EACH a.v[i] += b.v[i] & m.v[i];
	return a;
}

/* table[index] */
static inline vi vi_lookup(const int32_t *table, vi index)
{
	EACH index.v[i] = table[index.v[i]];
	return index;
}

/* The same of tables of sixteen. */
static inline vi vi_lookup16(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

static inline vi vi_where(vm m, vi a, vi b)
{
	EACH a.v[i] = m.v[i] ? a.v[i] : b.v[i];
	return a;
}

/* True in the lanes whose bits are set. */
static inline vm vm_from_bits(uint32_t bits)
{
	vm m;

	EACH m.v[i] = -(int32_t)(bits >> i & 1);
	return m;
}

/* Bit i: lane i. */
static inline uint32_t vm_bits(vm m)
{
	uint32_t bits = 0;

	EACH bits |= (uint32_t)(m.v[i] & 1) << i;
	return bits;
}

static inline vm vm_or(vm a, vm b)
{
	EACH a.v[i] |= b.v[i];
	return a;
}

static inline vm vm_and(vm a, vm b)
{
	EACH a.v[i] &= b.v[i];
	return a;
}

/* table[index] of a table of 4, 8, 16, 32 or 64 entries. */
static inline vf vf_lookup(const float *table, unsigned size, vi index)
{
	vf a;

	(void)size;
	EACH a.v[i] = table[index.v[i]];
	return a;
}

/* table[index] of a table of any size. */
static inline vf vf_gather(const float *table, vi index)
{
	return vf_lookup(table, 0, index);
}

static inline vd vd_zero(void)
{
	vd a;

	EACH a.v[i] = 0;
	return a;
}

static inline vd vd_all(double value)
{
	vd a;

	EACH a.v[i] = value;
	return a;
}

static inline vd vd_load(const double *from)
{
	vd a;

	memcpy(&a, from, sizeof a);
	return a;
}

static inline void vd_store(double *to, vd a)
{
	memcpy(to, &a, sizeof a);
}

static inline vd vd_from_f(vf a)
{
	vd b;

	EACH b.v[i] = a.v[i];
	return b;
}

static inline vd vd_from_i(vi a)
{
	vd b;

	EACH b.v[i] = a.v[i];
	return b;
}

static inline vd vd_add(vd a, vd b)
{
	EACH a.v[i] += b.v[i];
	return a;
}

static inline vd vd_sub(vd a, vd b)
{
	EACH a.v[i] -= b.v[i];
	return a;
}

static inline vd vd_mul(vd a, vd b)
{
	EACH a.v[i] *= b.v[i];
	return a;
}

static inline vd vd_div(vd a, vd b)
{
	EACH a.v[i] /= b.v[i];
	return a;
}

static inline vd vd_where(vm m, vd a, vd b)
{
	EACH a.v[i] = m.v[i] ? a.v[i] : b.v[i];
	return a;
}

static inline vd vd_lookup(const double *table, vi index)
{
	vd a;

	EACH a.v[i] = table[index.v[i]];
	return a;
}

static inline vd vd_lookup16(const double *table, vi index)
{
	return vd_lookup(table, index);
}

/* -1 where a is negative (or -0), otherwise 0. */
static inline vi vd_sign(vd a)
{
	uint64_t bits[XFP_LANES];
	vi b;

	memcpy(bits, &a, sizeof bits);
	EACH b.v[i] = -(int32_t)(bits[i] >> 63);
	return b;
}

/* The bits of |a|, less one where a is negative, without the lowest `count` >= 32; |a| > 0 where a is negative. */
static inline vi vd_key(vd a, int count)
{
	uint64_t bits[XFP_LANES];
	vi b;

	memcpy(bits, &a, sizeof bits);
	EACH b.v[i] = (int32_t)(((bits[i] & INT64_MAX) - (bits[i] >> 63)) >> count);
	return b;
}

/* a + b * c where b * c is exact: with or without an intermediate rounding it is the same. */
static inline vd vd_add_exact(vd a, vd b, vd c)
{
	EACH a.v[i] += b.v[i] * c.v[i];
	return a;
}

/* Sums of integers, exactly: the lanes of a, and of their squares, |a| <= 2^24, as long as they fit. */
typedef struct {
	int64_t sum[XFP_LANES], square[XFP_LANES];
} vsum;

static inline void vsum_clear(vsum *s)
{
	memset(s, 0, sizeof *s);
}

static inline void vsum_add(vsum *s, vi a)
{
	EACH
	{
		s->sum[i] += a.v[i];
		s->square[i] += (int64_t)a.v[i] * a.v[i];
	}
}

static inline void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = *square = 0;
	EACH
	{
		*sum += s->sum[i];
		*square += s->square[i];
	}
}

/* What groups with scale and midpoint need besides, scaled_rows.h. */

/* a > b ? a : b, and the same of smaller ones. */
static inline vf vf_larger(vf a, vf b)
{
	EACH a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
	return a;
}

static inline vf vf_smaller(vf a, vf b)
{
	EACH a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
	return a;
}

/* Of numbers, none a NaN. */
static inline float vf_largest(vf a)
{
	float most = a.v[0];

	EACH most = a.v[i] > most ? a.v[i] : most;
	return most;
}

/* The sum of all lanes: 0 + 8, 1 + 9 ..., then 0 + 4 ..., 0 + 2 ..., 0 + 1. */
static inline float vf_total(vf a)
{
	for (int width = XFP_LANES / 2; width; width /= 2)
		for (int i = 0; i < width; i++)
			a.v[i] = a.v[i] + a.v[i + width];
	return a.v[0];
}

/* Nearest integers, ties to even; |a| < 2^22. */
static inline vi vf_round_small(vf a)
{
	vi b;

	EACH a.v[i] += 0x1.8p23f; /* its lowest bit is worth 1 */
	b = vf_bits(a);
	EACH b.v[i] -= 0x4b400000;
	return b;
}

/* a * b + c rounded once, of fp16 numbers. */
static inline vf vf_mul_add_halves(vf a, vf b, vf c)
{
	EACH a.v[i] = xfp_scaled_value(a.v[i], b.v[i], c.v[i]);
	return a;
}

static inline vf vf_from_i(vi a)
{
	vf b;

	EACH b.v[i] = (float)a.v[i];
	return b;
}

static inline vf vf_from_bits(vi a)
{
	vf b;

	memcpy(&b, &a, sizeof b);
	return b;
}

/* Lane i: bit i. */
/* table[index] of 64 entries */
static inline vi vi_lookup64(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

/* Lane i: the sum of lanes 0 to i. */
static inline vi vi_running(vi a)
{
	for (int i = 1; i < XFP_LANES; i++)
		a.v[i] += a.v[i - 1];
	return a;
}

/* 64 sums of bytes that come 64 at a time, in 32 words; up to 257 times, so that a sum fits in a word. */
typedef struct {
	uint64_t low[8], high[8]; /* four sums each */
} vtally;

static inline void vtally_clear(vtally *t)
{
	memset(t, 0, sizeof *t);
}

static inline void vtally_add(vtally *t, const uint16_t *words)
{
	const uint64_t bytes = 0x00ff00ff00ff00ff;

	for (int i = 0; i < 8; i++) {
		uint64_t four;

		memcpy(&four, words + 4 * i, sizeof four);
		t->low[i] += four & bytes;
		t->high[i] += four >> 8 & bytes;
	}
}

/* Sixteen sums: of the words' low bytes, words 0-15 and 16-31, then of their high bytes. */
static inline vi vtally_sums(const vtally *t, unsigned part)
{
	uint16_t sums[XFP_LANES];
	vi a;

	memcpy(sums, (part < 2 ? t->low : t->high) + part % 2 * 4, sizeof sums);
	EACH a.v[i] = sums[i];
	return a;
}

#endif
