/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes_avx512.h - the sixteen lanes of lanes_plain.h with AVX-512 F, BW, DQ and VL. What each does is said there.
 */
#ifndef XFP_LANES_AVX512_H
#define XFP_LANES_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "kernels/encode/encode.h"
#include "kernels/encode/lanes_x86.h"

typedef __m512 vf;
typedef __m512i vi;
typedef struct {
	__m512d a, b; /* lanes 0-7, 8-15 */
} vd;
typedef __mmask16 vm;

static inline vf vf_load(const float *from)
{
	return _mm512_loadu_ps(from);
}

static inline void vf_store(float *to, vf a)
{
	_mm512_storeu_ps(to, a);
}

static inline vf vf_all(float value)
{
	return _mm512_set1_ps(value);
}

static inline vf vf_mul(vf a, vf b)
{
	return _mm512_mul_ps(a, b);
}

static inline vf vf_add(vf a, vf b)
{
	return _mm512_add_ps(a, b);
}

static inline vf vf_sub(vf a, vf b)
{
	return _mm512_sub_ps(a, b);
}

static inline vf vf_div(vf a, vf b)
{
	return _mm512_div_ps(a, b);
}

static inline vm vf_above(vf a, vf b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

static inline vf vf_where(vm m, vf a, vf b)
{
	return _mm512_mask_mov_ps(b, m, a);
}

static inline vi vf_bits(vf a)
{
	return _mm512_castps_si512(a);
}

static inline vi vf_round(vf a)
{
	return _mm512_cvtps_epi32(a);
}

static inline void vf_fold(vf a, vf b, float *sum_a, float *sum_b)
{
	fold_halves(_mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)),
		    _mm256_add_ps(_mm512_castps512_ps256(b), _mm512_extractf32x8_ps(b, 1)), sum_a, sum_b);
}

static inline vf vf_from_bf16(const uint16_t *from)
{
	__m256i half = _mm256_loadu_si256((const __m256i *)from);

	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

static inline vi vi_load(const int32_t *from)
{
	return _mm512_loadu_si512(from);
}

static inline void vi_store(int32_t *to, vi a)
{
	_mm512_storeu_si512(to, a);
}

static inline vi vi_load_bytes(const uint8_t *from)
{
	return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
}

static inline void vi_store_bytes(uint8_t *to, vi a)
{
	_mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(a));
}

static inline vi vi_all(int32_t value)
{
	return _mm512_set1_epi32(value);
}

static inline vi vi_add(vi a, vi b)
{
	return _mm512_add_epi32(a, b);
}

static inline vi vi_sub(vi a, vi b)
{
	return _mm512_sub_epi32(a, b);
}

static inline vi vi_and(vi a, vi b)
{
	return _mm512_and_si512(a, b);
}

static inline vi vi_or(vi a, vi b)
{
	return _mm512_or_si512(a, b);
}

static inline vi vi_xor(vi a, vi b)
{
	return _mm512_xor_si512(a, b);
}

static inline vi vi_max(vi a, vi b)
{
	return _mm512_max_epi32(a, b);
}

static inline vi vi_min(vi a, vi b)
{
	return _mm512_min_epi32(a, b);
}

static inline int32_t vi_most(vi a)
{
	return most_of_half(_mm256_max_epi32(_mm512_castsi512_si256(a), _mm512_extracti32x8_epi32(a, 1)));
}

static inline void vi_two_least(vi a, unsigned apart, int32_t *least, int32_t *second)
{
	two_least_of_halves(_mm512_castsi512_si256(a), _mm512_extracti32x8_epi32(a, 1), apart, least, second);
}

static inline vi vi_left(vi a, int count)
{
	return _mm512_sll_epi32(a, _mm_cvtsi32_si128(count));
}

static inline vi vi_right(vi a, int count)
{
	return _mm512_srl_epi32(a, _mm_cvtsi32_si128(count));
}

static inline vi vi_sign(vi a)
{
	return _mm512_srai_epi32(a, 31);
}

static inline vm vi_above(vi a, vi b)
{
	return _mm512_cmpgt_epi32_mask(a, b);
}

static inline vi vi_add_where(vi a, vm m, vi b)
{
	return _mm512_mask_add_epi32(a, m, a, b);
}

static inline vi vi_lookup(const int32_t *table, vi index)
{
	return _mm512_i32gather_epi32(index, table, 4);
}

static inline vi vi_lookup16(const int32_t *table, vi index)
{
	return _mm512_permutexvar_epi32(index, _mm512_loadu_si512(table));
}

static inline vi vi_where(vm m, vi a, vi b)
{
	return _mm512_mask_mov_epi32(b, m, a);
}

static inline vm vm_from_bits(uint32_t bits)
{
	return (vm)bits;
}

static inline uint32_t vm_bits(vm m)
{
	return m;
}

static inline vm vm_or(vm a, vm b)
{
	return (vm)(a | b);
}

static inline vm vm_and(vm a, vm b)
{
	return (vm)(a & b);
}

static inline vf vf_lookup(const float *table, unsigned size, vi index)
{
	switch (size) {
	case 4:
		return _mm512_permutexvar_ps(index, _mm512_castps128_ps512(_mm_loadu_ps(table)));
	case 8:
		return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(table)));
	case 16:
		return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
	case 32:
		return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
	default:
		return _mm512_mask_blend_ps(
			_mm512_test_epi32_mask(index, _mm512_set1_epi32(32)),
			_mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16)),
			_mm512_permutex2var_ps(_mm512_loadu_ps(table + 32), index, _mm512_loadu_ps(table + 48)));
	}
}

static inline vf vf_gather(const float *table, vi index)
{
	return _mm512_i32gather_ps(index, table, 4);
}

static inline vd vd_zero(void)
{
	return (vd){ _mm512_setzero_pd(), _mm512_setzero_pd() };
}

static inline vd vd_all(double value)
{
	return (vd){ _mm512_set1_pd(value), _mm512_set1_pd(value) };
}

static inline vd vd_load(const double *from)
{
	return (vd){ _mm512_loadu_pd(from), _mm512_loadu_pd(from + 8) };
}

static inline void vd_store(double *to, vd a)
{
	_mm512_storeu_pd(to, a.a);
	_mm512_storeu_pd(to + 8, a.b);
}

static inline vd vd_from_f(vf a)
{
	return (vd){ _mm512_cvtps_pd(_mm512_castps512_ps256(a)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)) };
}

static inline vd vd_from_i(vi a)
{
	return (vd){ _mm512_cvtepi32_pd(_mm512_castsi512_si256(a)),
		     _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(a, 1)) };
}

static inline vd vd_add(vd a, vd b)
{
	return (vd){ _mm512_add_pd(a.a, b.a), _mm512_add_pd(a.b, b.b) };
}

static inline vd vd_sub(vd a, vd b)
{
	return (vd){ _mm512_sub_pd(a.a, b.a), _mm512_sub_pd(a.b, b.b) };
}

static inline vd vd_mul(vd a, vd b)
{
	return (vd){ _mm512_mul_pd(a.a, b.a), _mm512_mul_pd(a.b, b.b) };
}

static inline vd vd_div(vd a, vd b)
{
	return (vd){ _mm512_div_pd(a.a, b.a), _mm512_div_pd(a.b, b.b) };
}

static inline vd vd_where(vm m, vd a, vd b)
{
	return (vd){ _mm512_mask_mov_pd(b.a, (__mmask8)m, a.a), _mm512_mask_mov_pd(b.b, (__mmask8)(m >> 8), a.b) };
}

static inline vd vd_lookup(const double *table, vi index)
{
	return (vd){ _mm512_i32gather_pd(_mm512_castsi512_si256(index), table, 8),
		     _mm512_i32gather_pd(_mm512_extracti32x8_epi32(index, 1), table, 8) };
}

static inline vd vd_lookup16(const double *table, vi index)
{
	__m512d low = _mm512_loadu_pd(table), high = _mm512_loadu_pd(table + 8);
	__m512i a = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(index));
	__m512i b = _mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32(index, 1));

	return (vd){ _mm512_permutex2var_pd(low, a, high), _mm512_permutex2var_pd(low, b, high) };
}

static inline vi vd_sign(vd a)
{
	uint32_t low = _mm512_movepi64_mask(_mm512_castpd_si512(a.a));
	uint32_t high = _mm512_movepi64_mask(_mm512_castpd_si512(a.b));

	return _mm512_movm_epi32((__mmask16)(low | high << 8));
}

static inline __m256i key_half(__m512d a, int count)
{
	__m512i bits = _mm512_castpd_si512(a), sign = _mm512_srli_epi64(bits, 63);

	bits = _mm512_sub_epi64(_mm512_and_si512(bits, _mm512_set1_epi64(INT64_MAX)), sign);
	return _mm512_cvtepi64_epi32(_mm512_srl_epi64(bits, _mm_cvtsi32_si128(count)));
}

static inline vi vd_key(vd a, int count)
{
	return _mm512_inserti32x8(_mm512_castsi256_si512(key_half(a.a, count)), key_half(a.b, count), 1);
}

static inline vd vd_add_exact(vd a, vd b, vd c)
{
	return (vd){ _mm512_fmadd_pd(b.a, c.a, a.a), _mm512_fmadd_pd(b.b, c.b, a.b) };
}

typedef struct {
	__m512i sum[2], square[2]; /* of even and odd lanes, int64 */
} vsum;

static inline void vsum_clear(vsum *s)
{
	s->sum[0] = s->sum[1] = s->square[0] = s->square[1] = _mm512_setzero_si512();
}

static inline void vsum_add(vsum *s, vi a)
{
	__m512i odd = _mm512_srai_epi64(a, 32);

	s->sum[0] = _mm512_add_epi64(s->sum[0], _mm512_srai_epi64(_mm512_slli_epi64(a, 32), 32));
	s->sum[1] = _mm512_add_epi64(s->sum[1], odd);
	s->square[0] = _mm512_add_epi64(s->square[0], _mm512_mul_epi32(a, a));
	s->square[1] = _mm512_add_epi64(s->square[1], _mm512_mul_epi32(odd, odd));
}

static inline void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = _mm512_reduce_add_epi64(_mm512_add_epi64(s->sum[0], s->sum[1]));
	*square = _mm512_reduce_add_epi64(_mm512_add_epi64(s->square[0], s->square[1]));
}

/* What groups with scale and midpoint need besides, scaled_rows.h. */

static inline vf vf_larger(vf a, vf b)
{
	return _mm512_max_ps(a, b);
}

static inline vf vf_smaller(vf a, vf b)
{
	return _mm512_min_ps(a, b);
}

static inline float vf_largest(vf a)
{
	return _mm512_reduce_max_ps(a);
}

static inline float vf_total(vf a)
{
	__m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
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
	return _mm512_fmadd_ps(a, b, c);
}

static inline vf vf_from_i(vi a)
{
	return _mm512_cvtepi32_ps(a);
}

static inline vf vf_from_bits(vi a)
{
	return _mm512_castsi512_ps(a);
}

static inline vi vi_lookup64(const int32_t *table, vi index)
{
	vi low = _mm512_permutex2var_epi32(_mm512_loadu_si512(table), index, _mm512_loadu_si512(table + 16));
	vi high = _mm512_permutex2var_epi32(_mm512_loadu_si512(table + 32), index, _mm512_loadu_si512(table + 48));

	return _mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(index, _mm512_set1_epi32(32)), high);
}

static inline vi vi_running(vi a)
{
	const __m512i zero = _mm512_setzero_si512();

	a = _mm512_add_epi32(a, _mm512_alignr_epi32(a, zero, 15));
	a = _mm512_add_epi32(a, _mm512_alignr_epi32(a, zero, 14));
	a = _mm512_add_epi32(a, _mm512_alignr_epi32(a, zero, 12));
	return _mm512_add_epi32(a, _mm512_alignr_epi32(a, zero, 8));
}

typedef struct {
	__m512i all, high; /* sums of words, which overflow, and of their high bytes */
} vtally;

static inline void vtally_clear(vtally *t)
{
	t->all = t->high = _mm512_setzero_si512();
}

static inline void vtally_add(vtally *t, const uint16_t *words)
{
	__m512i w = _mm512_loadu_si512(words);

	t->all = _mm512_add_epi16(t->all, w);
	t->high = _mm512_add_epi16(t->high, _mm512_srli_epi16(w, 8));
}

static inline vi vtally_sums(const vtally *t, unsigned part)
{
	__m512i words = part < 2 ? _mm512_sub_epi16(t->all, _mm512_slli_epi16(t->high, 8)) : t->high;

	return _mm512_cvtepu16_epi32(part % 2 ? _mm512_extracti32x8_epi32(words, 1) : _mm512_castsi512_si256(words));
}

#endif
