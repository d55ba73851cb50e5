/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes_avx2.h - the sixteen lanes of lanes_plain.h with AVX2 and FMA, in halves or quarters. What each does is
 * said there.
 */
#ifndef XFP_LANES_AVX2_H
#define XFP_LANES_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "kernels/encode/encode.h"
#include "kernels/encode/lanes_x86.h"

typedef struct {
	__m256 a, b; /* lanes 0-7, 8-15 */
} vf;
typedef struct {
	__m256i a, b;
} vi;
typedef struct {
	__m256d a, b, c, d; /* four lanes each */
} vd;
typedef struct {
	__m256i a, b; /* 0 or -1 in 32 bits */
} vm;

static inline vf vf_load(const float *from)
{
	return (vf){ _mm256_loadu_ps(from), _mm256_loadu_ps(from + 8) };
}

static inline void vf_store(float *to, vf a)
{
	_mm256_storeu_ps(to, a.a);
	_mm256_storeu_ps(to + 8, a.b);
}

static inline vf vf_all(float value)
{
	return (vf){ _mm256_set1_ps(value), _mm256_set1_ps(value) };
}

static inline vf vf_mul(vf a, vf b)
{
	return (vf){ _mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b) };
}

static inline vf vf_add(vf a, vf b)
{
	return (vf){ _mm256_add_ps(a.a, b.a), _mm256_add_ps(a.b, b.b) };
}

static inline vf vf_sub(vf a, vf b)
{
	return (vf){ _mm256_sub_ps(a.a, b.a), _mm256_sub_ps(a.b, b.b) };
}

static inline vf vf_div(vf a, vf b)
{
	return (vf){ _mm256_div_ps(a.a, b.a), _mm256_div_ps(a.b, b.b) };
}

static inline vm vf_above(vf a, vf b)
{
	return (vm){ _mm256_castps_si256(_mm256_cmp_ps(a.a, b.a, _CMP_GT_OQ)),
		     _mm256_castps_si256(_mm256_cmp_ps(a.b, b.b, _CMP_GT_OQ)) };
}

static inline vf vf_where(vm m, vf a, vf b)
{
	return (vf){ _mm256_blendv_ps(b.a, a.a, _mm256_castsi256_ps(m.a)),
		     _mm256_blendv_ps(b.b, a.b, _mm256_castsi256_ps(m.b)) };
}

static inline vi vf_bits(vf a)
{
	return (vi){ _mm256_castps_si256(a.a), _mm256_castps_si256(a.b) };
}

static inline vi vf_round(vf a)
{
	return (vi){ _mm256_cvtps_epi32(a.a), _mm256_cvtps_epi32(a.b) };
}

static inline void vf_fold(vf a, vf b, float *sum_a, float *sum_b)
{
	fold_halves(_mm256_add_ps(a.a, a.b), _mm256_add_ps(b.a, b.b), sum_a, sum_b);
}

static inline vf vf_from_bf16(const uint16_t *from)
{
	__m128i low = _mm_loadu_si128((const __m128i *)from), high = _mm_loadu_si128((const __m128i *)(from + 8));

	return (vf){ _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(low), 16)),
		     _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(high), 16)) };
}

static inline vi vi_load(const int32_t *from)
{
	return (vi){ _mm256_loadu_si256((const __m256i *)from), _mm256_loadu_si256((const __m256i *)(from + 8)) };
}

static inline void vi_store(int32_t *to, vi a)
{
	_mm256_storeu_si256((__m256i *)to, a.a);
	_mm256_storeu_si256((__m256i *)(to + 8), a.b);
}

static inline vi vi_load_bytes(const uint8_t *from)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)from);

	return (vi){ _mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)) };
}

static inline void vi_store_bytes(uint8_t *to, vi a)
{
	/* Packing works within 128-bit halves: 0-3 8-11 | 4-7 12-15, then dwords back in order. */
	__m256i words = _mm256_packus_epi32(_mm256_and_si256(a.a, _mm256_set1_epi32(255)),
					    _mm256_and_si256(a.b, _mm256_set1_epi32(255)));
	__m256i bytes = _mm256_packus_epi16(words, words);

	bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 0, 0, 0));
	_mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(bytes));
}

static inline vi vi_all(int32_t value)
{
	return (vi){ _mm256_set1_epi32(value), _mm256_set1_epi32(value) };
}

static inline vi vi_add(vi a, vi b)
{
	return (vi){ _mm256_add_epi32(a.a, b.a), _mm256_add_epi32(a.b, b.b) };
}

static inline vi vi_sub(vi a, vi b)
{
	return (vi){ _mm256_sub_epi32(a.a, b.a), _mm256_sub_epi32(a.b, b.b) };
}

static inline vi vi_and(vi a, vi b)
{
	return (vi){ _mm256_and_si256(a.a, b.a), _mm256_and_si256(a.b, b.b) };
}

static inline vi vi_or(vi a, vi b)
{
	return (vi){ _mm256_or_si256(a.a, b.a), _mm256_or_si256(a.b, b.b) };
}

static inline vi vi_xor(vi a, vi b)
{
	return (vi){ _mm256_xor_si256(a.a, b.a), _mm256_xor_si256(a.b, b.b) };
}

static inline vi vi_max(vi a, vi b)
{
	return (vi){ _mm256_max_epi32(a.a, b.a), _mm256_max_epi32(a.b, b.b) };
}

static inline vi vi_min(vi a, vi b)
{
	return (vi){ _mm256_min_epi32(a.a, b.a), _mm256_min_epi32(a.b, b.b) };
}

static inline int32_t vi_most(vi a)
{
	return most_of_half(_mm256_max_epi32(a.a, a.b));
}

static inline void vi_two_least(vi a, unsigned apart, int32_t *least, int32_t *second)
{
	two_least_of_halves(a.a, a.b, apart, least, second);
}

static inline vi vi_left(vi a, int count)
{
	__m128i by = _mm_cvtsi32_si128(count);

	return (vi){ _mm256_sll_epi32(a.a, by), _mm256_sll_epi32(a.b, by) };
}

static inline vi vi_right(vi a, int count)
{
	__m128i by = _mm_cvtsi32_si128(count);

	return (vi){ _mm256_srl_epi32(a.a, by), _mm256_srl_epi32(a.b, by) };
}

static inline vi vi_sign(vi a)
{
	return (vi){ _mm256_srai_epi32(a.a, 31), _mm256_srai_epi32(a.b, 31) };
}

static inline vm vi_above(vi a, vi b)
{
	return (vm){ _mm256_cmpgt_epi32(a.a, b.a), _mm256_cmpgt_epi32(a.b, b.b) };
}

static inline vi vi_add_where(vi a, vm m, vi b)
{
	return (vi){ _mm256_add_epi32(a.a, _mm256_and_si256(m.a, b.a)),
		     _mm256_add_epi32(a.b, _mm256_and_si256(m.b, b.b)) };
}

static inline vi vi_lookup(const int32_t *table, vi index)
{
	return (vi){ _mm256_i32gather_epi32(table, index.a, 4), _mm256_i32gather_epi32(table, index.b, 4) };
}

static inline vi vi_lookup16(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

static inline vi vi_where(vm m, vi a, vi b)
{
	return (vi){ _mm256_blendv_epi8(b.a, a.a, m.a), _mm256_blendv_epi8(b.b, a.b, m.b) };
}

static inline vm vm_from_bits(uint32_t bits)
{
	const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), high = _mm256_slli_epi32(low, 8);
	__m256i all = _mm256_set1_epi32((int32_t)bits);

	return (vm){ _mm256_cmpeq_epi32(_mm256_and_si256(all, low), low),
		     _mm256_cmpeq_epi32(_mm256_and_si256(all, high), high) };
}

static inline uint32_t vm_bits(vm m)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(m.a)) |
	       (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(m.b)) << 8;
}

static inline vm vm_or(vm a, vm b)
{
	return (vm){ _mm256_or_si256(a.a, b.a), _mm256_or_si256(a.b, b.b) };
}

static inline vm vm_and(vm a, vm b)
{
	return (vm){ _mm256_and_si256(a.a, b.a), _mm256_and_si256(a.b, b.b) };
}

/* Sixteen entries in two registers: bit 3 of the index chooses. */
static inline __m256 lookup16(__m256 low, __m256 high, __m256i index)
{
	return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index), _mm256_permutevar8x32_ps(high, index),
				_mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}

static inline vf vf_lookup(const float *table, unsigned size, vi index)
{
	__m256 low, high;

	if (size > 16)
		return (vf){ _mm256_i32gather_ps(table, index.a, 4), _mm256_i32gather_ps(table, index.b, 4) };
	low = size == 4 ? _mm256_castps128_ps256(_mm_loadu_ps(table)) : _mm256_loadu_ps(table);
	if (size < 16)
		return (vf){ _mm256_permutevar8x32_ps(low, index.a), _mm256_permutevar8x32_ps(low, index.b) };
	high = _mm256_loadu_ps(table + 8);
	return (vf){ lookup16(low, high, index.a), lookup16(low, high, index.b) };
}

static inline vf vf_gather(const float *table, vi index)
{
	return (vf){ _mm256_i32gather_ps(table, index.a, 4), _mm256_i32gather_ps(table, index.b, 4) };
}

static inline vd vd_zero(void)
{
	return (vd){ _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd() };
}

static inline vd vd_all(double value)
{
	return (vd){ _mm256_set1_pd(value), _mm256_set1_pd(value), _mm256_set1_pd(value), _mm256_set1_pd(value) };
}

static inline vd vd_load(const double *from)
{
	return (vd){ _mm256_loadu_pd(from), _mm256_loadu_pd(from + 4), _mm256_loadu_pd(from + 8),
		     _mm256_loadu_pd(from + 12) };
}

static inline void vd_store(double *to, vd a)
{
	_mm256_storeu_pd(to, a.a);
	_mm256_storeu_pd(to + 4, a.b);
	_mm256_storeu_pd(to + 8, a.c);
	_mm256_storeu_pd(to + 12, a.d);
}

static inline vd vd_from_f(vf a)
{
	return (vd){ _mm256_cvtps_pd(_mm256_castps256_ps128(a.a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.a, 1)),
		     _mm256_cvtps_pd(_mm256_castps256_ps128(a.b)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.b, 1)) };
}

static inline vd vd_from_i(vi a)
{
	return (vd){ _mm256_cvtepi32_pd(_mm256_castsi256_si128(a.a)),
		     _mm256_cvtepi32_pd(_mm256_extracti128_si256(a.a, 1)),
		     _mm256_cvtepi32_pd(_mm256_castsi256_si128(a.b)),
		     _mm256_cvtepi32_pd(_mm256_extracti128_si256(a.b, 1)) };
}

static inline vd vd_add(vd a, vd b)
{
	return (vd){ _mm256_add_pd(a.a, b.a), _mm256_add_pd(a.b, b.b), _mm256_add_pd(a.c, b.c),
		     _mm256_add_pd(a.d, b.d) };
}

static inline vd vd_sub(vd a, vd b)
{
	return (vd){ _mm256_sub_pd(a.a, b.a), _mm256_sub_pd(a.b, b.b), _mm256_sub_pd(a.c, b.c),
		     _mm256_sub_pd(a.d, b.d) };
}

static inline vd vd_mul(vd a, vd b)
{
	return (vd){ _mm256_mul_pd(a.a, b.a), _mm256_mul_pd(a.b, b.b), _mm256_mul_pd(a.c, b.c),
		     _mm256_mul_pd(a.d, b.d) };
}

static inline vd vd_div(vd a, vd b)
{
	return (vd){ _mm256_div_pd(a.a, b.a), _mm256_div_pd(a.b, b.b), _mm256_div_pd(a.c, b.c),
		     _mm256_div_pd(a.d, b.d) };
}

static inline __m256d where_quarter(__m128i m, __m256d a, __m256d b)
{
	return _mm256_blendv_pd(b, a, _mm256_castsi256_pd(_mm256_cvtepi32_epi64(m)));
}

static inline vd vd_where(vm m, vd a, vd b)
{
	return (vd){ where_quarter(_mm256_castsi256_si128(m.a), a.a, b.a),
		     where_quarter(_mm256_extracti128_si256(m.a, 1), a.b, b.b),
		     where_quarter(_mm256_castsi256_si128(m.b), a.c, b.c),
		     where_quarter(_mm256_extracti128_si256(m.b, 1), a.d, b.d) };
}

static inline vd vd_lookup(const double *table, vi index)
{
	return (vd){ _mm256_i32gather_pd(table, _mm256_castsi256_si128(index.a), 8),
		     _mm256_i32gather_pd(table, _mm256_extracti128_si256(index.a, 1), 8),
		     _mm256_i32gather_pd(table, _mm256_castsi256_si128(index.b), 8),
		     _mm256_i32gather_pd(table, _mm256_extracti128_si256(index.b, 1), 8) };
}

static inline vd vd_lookup16(const double *table, vi index)
{
	return vd_lookup(table, index);
}

/* One half of each of eight 64-bit lanes: the lower ones, or the upper ones. */
static inline __m256i halves(__m256i low, __m256i high, bool upper)
{
	__m256 a = _mm256_castsi256_ps(low), b = _mm256_castsi256_ps(high);
	__m256 mixed = upper ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88);

	return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xd8);
}

static inline vi vd_sign(vd a)
{
	__m256i low = halves(_mm256_castpd_si256(a.a), _mm256_castpd_si256(a.b), true);
	__m256i high = halves(_mm256_castpd_si256(a.c), _mm256_castpd_si256(a.d), true);

	return (vi){ _mm256_srai_epi32(low, 31), _mm256_srai_epi32(high, 31) };
}

static inline __m256i key_quarter(__m256d a, int count)
{
	__m256i bits = _mm256_castpd_si256(a), sign = _mm256_srli_epi64(bits, 63);

	bits = _mm256_sub_epi64(_mm256_and_si256(bits, _mm256_set1_epi64x(INT64_MAX)), sign);
	return _mm256_srl_epi64(bits, _mm_cvtsi32_si128(count));
}

static inline vi vd_key(vd a, int count)
{
	return (vi){ halves(key_quarter(a.a, count), key_quarter(a.b, count), false),
		     halves(key_quarter(a.c, count), key_quarter(a.d, count), false) };
}

static inline vd vd_add_exact(vd a, vd b, vd c)
{
	return (vd){ _mm256_fmadd_pd(b.a, c.a, a.a), _mm256_fmadd_pd(b.b, c.b, a.b), _mm256_fmadd_pd(b.c, c.c, a.c),
		     _mm256_fmadd_pd(b.d, c.d, a.d) };
}

typedef struct {
	__m256i sum[2], square[2];
} vsum;

static inline void vsum_clear(vsum *s)
{
	s->sum[0] = s->sum[1] = s->square[0] = s->square[1] = _mm256_setzero_si256();
}

static inline void vsum_add_half(vsum *s, __m256i a)
{
	__m256i odd = _mm256_srli_epi64(a, 32);

	s->sum[0] = _mm256_add_epi64(s->sum[0], _mm256_cvtepi32_epi64(_mm256_castsi256_si128(a)));
	s->sum[1] = _mm256_add_epi64(s->sum[1], _mm256_cvtepi32_epi64(_mm256_extracti128_si256(a, 1)));
	s->square[0] = _mm256_add_epi64(s->square[0], _mm256_mul_epi32(a, a));
	s->square[1] = _mm256_add_epi64(s->square[1], _mm256_mul_epi32(odd, odd));
}

static inline void vsum_add(vsum *s, vi a)
{
	vsum_add_half(s, a.a);
	vsum_add_half(s, a.b);
}

static inline int64_t lanes_total(__m256i a, __m256i b)
{
	int64_t lane[4];

	_mm256_storeu_si256((__m256i *)lane, _mm256_add_epi64(a, b));
	return lane[0] + lane[1] + lane[2] + lane[3];
}

static inline void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = lanes_total(s->sum[0], s->sum[1]);
	*square = lanes_total(s->square[0], s->square[1]);
}

/* What groups with scale and midpoint need besides, scaled_rows.h. */

static inline vf vf_larger(vf a, vf b)
{
	return (vf){ _mm256_max_ps(a.a, b.a), _mm256_max_ps(a.b, b.b) };
}

static inline vf vf_smaller(vf a, vf b)
{
	return (vf){ _mm256_min_ps(a.a, b.a), _mm256_min_ps(a.b, b.b) };
}

static inline float vf_largest(vf a)
{
	__m256 b = _mm256_max_ps(a.a, a.b);
	__m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

	c = _mm_max_ps(c, _mm_movehl_ps(c, c));
	return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

static inline float vf_total(vf a)
{
	__m256 b = _mm256_add_ps(a.a, a.b);
	__m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

	c = _mm_add_ps(c, _mm_movehl_ps(c, c));
	return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

static inline vi vf_round_small(vf a)
{
	return vf_round(a);
}

static inline vf vf_mul_add_halves(vf a, vf b, vf c)
{
	return (vf){ _mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b) };
}

static inline vf vf_from_i(vi a)
{
	return (vf){ _mm256_cvtepi32_ps(a.a), _mm256_cvtepi32_ps(a.b) };
}

static inline vf vf_from_bits(vi a)
{
	return (vf){ _mm256_castsi256_ps(a.a), _mm256_castsi256_ps(a.b) };
}

static inline vi vi_lookup64(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

static inline __m256i running_half(__m256i a)
{
	__m256i low;

	a = _mm256_add_epi32(a, _mm256_slli_si256(a, 4));
	a = _mm256_add_epi32(a, _mm256_slli_si256(a, 8));
	/* Both quarters hold their own sums; the lower one's last goes to all of the upper one. */
	low = _mm256_permute2x128_si256(a, a, 0x08);
	return _mm256_add_epi32(a, _mm256_shuffle_epi32(low, 0xff));
}

static inline vi vi_running(vi a)
{
	__m256i low = running_half(a.a);
	__m256i last = _mm256_permutevar8x32_epi32(low, _mm256_set1_epi32(7));

	return (vi){ low, _mm256_add_epi32(running_half(a.b), last) };
}

typedef struct {
	__m256i all[2], high[2]; /* sums of words, which overflow, and of their high bytes */
} vtally;

static inline void vtally_clear(vtally *t)
{
	t->all[0] = t->all[1] = t->high[0] = t->high[1] = _mm256_setzero_si256();
}

static inline void vtally_add(vtally *t, const uint16_t *words)
{
	__m256i a = _mm256_loadu_si256((const __m256i *)words);
	__m256i b = _mm256_loadu_si256((const __m256i *)(words + 16));

	t->all[0] = _mm256_add_epi16(t->all[0], a);
	t->all[1] = _mm256_add_epi16(t->all[1], b);
	t->high[0] = _mm256_add_epi16(t->high[0], _mm256_srli_epi16(a, 8));
	t->high[1] = _mm256_add_epi16(t->high[1], _mm256_srli_epi16(b, 8));
}

static inline vi vtally_sums(const vtally *t, unsigned part)
{
	__m256i high = t->high[part % 2], words;

	words = part < 2 ? _mm256_sub_epi16(t->all[part % 2], _mm256_slli_epi16(high, 8)) : high;
	return (vi){ _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)),
		     _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1)) };
}

#endif
