/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx512.h - sixteen lanes with AVX-512 F, BW, DQ and VL, in one register. plain.h describes each operation.
 */
#ifndef XFP_LANES_AVX512_H
#define XFP_LANES_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define LANES_WIDTH 16
typedef __m512 reg_f;
typedef __m512i reg_i;
typedef __m512d reg_d;
#include "kernels/lanes/registers.h"

typedef __mmask16 vm;

LANES_INLINE __m256 f_half(vf a, int which)
{
	return which ? _mm512_extractf32x8_ps(a.of[0], 1) : _mm512_castps512_ps256(a.of[0]);
}

LANES_INLINE __m256i i_half(vi a, int which)
{
	return which ? _mm512_extracti32x8_epi32(a.of[0], 1) : _mm512_castsi512_si256(a.of[0]);
}

LANES_INLINE vm vf_above(vf a, vf b)
{
	return _mm512_cmp_ps_mask(a.of[0], b.of[0], _CMP_GT_OQ);
}

LANES_INLINE vf vf_where(vm m, vf a, vf b)
{
	return (vf){ { _mm512_mask_mov_ps(b.of[0], m, a.of[0]) } };
}

LANES_INLINE vi vf_round(vf a)
{
	return (vi){ { _mm512_cvtps_epi32(a.of[0]) } };
}

LANES_INLINE vf vf_from_bf16(const uint16_t *from)
{
	__m256i half = _mm256_loadu_si256((const __m256i *)from);

	return (vf){ { _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16)) } };
}

LANES_INLINE vd vd_from_f(vf a)
{
	return (vd){ { _mm512_cvtps_pd(f_half(a, 0)), _mm512_cvtps_pd(f_half(a, 1)) } };
}

LANES_INLINE vf vf_from_d(vd a)
{
	__m512 low = _mm512_castps256_ps512(_mm512_cvtpd_ps(a.of[0]));

	return (vf){ { _mm512_insertf32x8(low, _mm512_cvtpd_ps(a.of[1]), 1) } };
}

LANES_INLINE vd vd_from_i(vi a)
{
	return (vd){ { _mm512_cvtepi32_pd(i_half(a, 0)), _mm512_cvtepi32_pd(i_half(a, 1)) } };
}

LANES_INLINE vi vi_load_bytes(const uint8_t *from)
{
	return (vi){ { _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from)) } };
}

LANES_INLINE void vi_store_bytes(uint8_t *to, vi a)
{
	_mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(a.of[0]));
}

LANES_INLINE vi vi_max(vi a, vi b)
{
	return (vi){ { _mm512_max_epi32(a.of[0], b.of[0]) } };
}

LANES_INLINE vi vi_min(vi a, vi b)
{
	return (vi){ { _mm512_min_epi32(a.of[0], b.of[0]) } };
}

LANES_INLINE vm vi_above(vi a, vi b)
{
	return _mm512_cmpgt_epi32_mask(a.of[0], b.of[0]);
}

LANES_INLINE vi vi_add_where(vi a, vm m, vi b)
{
	return (vi){ { _mm512_mask_add_epi32(a.of[0], m, a.of[0], b.of[0]) } };
}

LANES_INLINE vi vi_load_first(const void *from, unsigned count)
{
	return (vi){ { _mm512_maskz_loadu_epi32((__mmask16)((1u << count) - 1), from) } };
}

/* Return the bits of a where the mask is one, of b elsewhere. */
LANES_INLINE vi vi_merge(vi a, vi b, uint32_t mask)
{
	return (vi){ { _mm512_ternarylogic_epi32(a.of[0], b.of[0], _mm512_set1_epi32((int32_t)mask), 0xe4) } };
}

LANES_INLINE vi vi_lookup(const int32_t *table, vi index)
{
	return (vi){ { _mm512_i32gather_epi32(index.of[0], table, 4) } };
}

LANES_INLINE vi vi_lookup16(const int32_t *table, vi index)
{
	return (vi){ { _mm512_permutexvar_epi32(index.of[0], _mm512_loadu_si512(table)) } };
}

LANES_INLINE vi vi_where(vm m, vi a, vi b)
{
	return (vi){ { _mm512_mask_mov_epi32(b.of[0], m, a.of[0]) } };
}

LANES_INLINE vm vm_from_bits(uint32_t bits)
{
	return (vm)bits;
}

LANES_INLINE uint32_t vm_bits(vm m)
{
	return m;
}

LANES_INLINE vm vm_or(vm a, vm b)
{
	return (vm)(a | b);
}

LANES_INLINE vm vm_and(vm a, vm b)
{
	return (vm)(a & b);
}

LANES_INLINE vf vf_lookup(const float *table, unsigned size, vi index)
{
	switch (size) {
	case 4:
		return (vf){ { _mm512_permutexvar_ps(index.of[0], _mm512_castps128_ps512(_mm_loadu_ps(table))) } };
	case 8:
		return (vf){ { _mm512_permutexvar_ps(index.of[0], _mm512_castps256_ps512(_mm256_loadu_ps(table))) } };
	case 16:
		return (vf){ { _mm512_permutexvar_ps(index.of[0], _mm512_loadu_ps(table)) } };
	case 32:
		return (vf){ { _mm512_permutex2var_ps(_mm512_loadu_ps(table), index.of[0],
						      _mm512_loadu_ps(table + 16)) } };
	default:
		return (vf){ { _mm512_mask_blend_ps(
			_mm512_test_epi32_mask(index.of[0], _mm512_set1_epi32(32)),
			_mm512_permutex2var_ps(_mm512_loadu_ps(table), index.of[0], _mm512_loadu_ps(table + 16)),
			_mm512_permutex2var_ps(_mm512_loadu_ps(table + 32), index.of[0],
					       _mm512_loadu_ps(table + 48))) } };
	}
}

LANES_INLINE vf vf_gather(const float *table, vi index)
{
	return (vf){ { _mm512_i32gather_ps(index.of[0], table, 4) } };
}

LANES_INLINE vd vd_where(vm m, vd a, vd b)
{
	return (vd){ { _mm512_mask_mov_pd(b.of[0], (__mmask8)m, a.of[0]),
		       _mm512_mask_mov_pd(b.of[1], (__mmask8)(m >> 8), a.of[1]) } };
}

LANES_INLINE vd vd_lookup(const double *table, vi index)
{
	return (vd){ { _mm512_i32gather_pd(i_half(index, 0), table, 8),
		       _mm512_i32gather_pd(i_half(index, 1), table, 8) } };
}

LANES_INLINE vd vd_lookup16(const double *table, vi index)
{
	__m512d low = _mm512_loadu_pd(table), high = _mm512_loadu_pd(table + 8);
	__m512i a = _mm512_cvtepi32_epi64(i_half(index, 0));
	__m512i b = _mm512_cvtepi32_epi64(i_half(index, 1));

	return (vd){ { _mm512_permutex2var_pd(low, a, high), _mm512_permutex2var_pd(low, b, high) } };
}

LANES_INLINE vi vd_sign(vd a)
{
	uint32_t low = _mm512_movepi64_mask(_mm512_castpd_si512(a.of[0]));
	uint32_t high = _mm512_movepi64_mask(_mm512_castpd_si512(a.of[1]));

	return (vi){ { _mm512_movm_epi32((__mmask16)(low | high << 8)) } };
}

LANES_INLINE __m256i key_half(__m512d a, int count)
{
	__m512i bits = _mm512_castpd_si512(a), sign = _mm512_srli_epi64(bits, 63);

	bits = _mm512_sub_epi64(_mm512_and_si512(bits, _mm512_set1_epi64(INT64_MAX)), sign);
	return _mm512_cvtepi64_epi32(_mm512_srl_epi64(bits, _mm_cvtsi32_si128(count)));
}

LANES_INLINE vi vd_key(vd a, int count)
{
	return (vi){ { _mm512_inserti32x8(_mm512_castsi256_si512(key_half(a.of[0], count)), key_half(a.of[1], count),
					  1) } };
}

LANES_INLINE vd vd_add_exact(vd a, vd b, vd c)
{
	return (vd){ { _mm512_fmadd_pd(b.of[0], c.of[0], a.of[0]), _mm512_fmadd_pd(b.of[1], c.of[1], a.of[1]) } };
}

typedef struct {
	__m512i sum[2], square[2]; /* of even and odd lanes, int64 */
} vsum;

LANES_INLINE void vsum_clear(vsum *s)
{
	s->sum[0] = s->sum[1] = s->square[0] = s->square[1] = _mm512_setzero_si512();
}

LANES_INLINE void vsum_add(vsum *s, vi a)
{
	__m512i odd = _mm512_srai_epi64(a.of[0], 32);

	s->sum[0] = _mm512_add_epi64(s->sum[0], _mm512_srai_epi64(_mm512_slli_epi64(a.of[0], 32), 32));
	s->sum[1] = _mm512_add_epi64(s->sum[1], odd);
	s->square[0] = _mm512_add_epi64(s->square[0], _mm512_mul_epi32(a.of[0], a.of[0]));
	s->square[1] = _mm512_add_epi64(s->square[1], _mm512_mul_epi32(odd, odd));
}

LANES_INLINE void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = _mm512_reduce_add_epi64(_mm512_add_epi64(s->sum[0], s->sum[1]));
	*square = _mm512_reduce_add_epi64(_mm512_add_epi64(s->square[0], s->square[1]));
}

LANES_INLINE vf vf_larger(vf a, vf b)
{
	return (vf){ { _mm512_max_ps(a.of[0], b.of[0]) } };
}

LANES_INLINE vf vf_smaller(vf a, vf b)
{
	return (vf){ { _mm512_min_ps(a.of[0], b.of[0]) } };
}

LANES_INLINE float vf_largest(vf a)
{
	return _mm512_reduce_max_ps(a.of[0]);
}

LANES_INLINE vf vf_fma(vf a, vf b, vf c)
{
	return (vf){ { _mm512_fmadd_ps(a.of[0], b.of[0], c.of[0]) } };
}

LANES_INLINE vf vf_mul_add_halves(vf a, vf b, vf c)
{
	return vf_fma(a, b, c);
}

LANES_INLINE vi vi_lookup64(const int32_t *table, vi index)
{
	__m512i at = index.of[0];
	__m512i low = _mm512_permutex2var_epi32(_mm512_loadu_si512(table), at, _mm512_loadu_si512(table + 16));
	__m512i high = _mm512_permutex2var_epi32(_mm512_loadu_si512(table + 32), at, _mm512_loadu_si512(table + 48));

	return (vi){ { _mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(at, _mm512_set1_epi32(32)), high) } };
}

LANES_INLINE vi vi_running(vi a)
{
	const __m512i zero = _mm512_setzero_si512();

	a.of[0] = _mm512_add_epi32(a.of[0], _mm512_alignr_epi32(a.of[0], zero, 15));
	a.of[0] = _mm512_add_epi32(a.of[0], _mm512_alignr_epi32(a.of[0], zero, 14));
	a.of[0] = _mm512_add_epi32(a.of[0], _mm512_alignr_epi32(a.of[0], zero, 12));
	return (vi){ { _mm512_add_epi32(a.of[0], _mm512_alignr_epi32(a.of[0], zero, 8)) } };
}

typedef struct {
	__m512i all, high; /* sums of words, which overflow, and of their high bytes */
} vtally;

LANES_INLINE void vtally_clear(vtally *t)
{
	t->all = t->high = _mm512_setzero_si512();
}

LANES_INLINE void vtally_add(vtally *t, const uint16_t *words)
{
	__m512i w = _mm512_loadu_si512(words);

	t->all = _mm512_add_epi16(t->all, w);
	t->high = _mm512_add_epi16(t->high, _mm512_srli_epi16(w, 8));
}

LANES_INLINE vi vtally_sums(const vtally *t, unsigned part)
{
	__m512i words = part < 2 ? _mm512_sub_epi16(t->all, _mm512_slli_epi16(t->high, 8)) : t->high;

	return (vi){ { _mm512_cvtepu16_epi32(part % 2 ? _mm512_extracti32x8_epi32(words, 1)
						      : _mm512_castsi512_si256(words)) } };
}

LANES_INLINE void vi_halves(int level, vi a, vi b, vi *low, vi *high)
{
	const __m512 x = _mm512_castsi512_ps(a.of[0]), y = _mm512_castsi512_ps(b.of[0]);

	if (level == 0) {
		low->of[0] = _mm512_castps_si512(_mm512_shuffle_f32x4(x, y, 0x44));
		high->of[0] = _mm512_castps_si512(_mm512_shuffle_f32x4(x, y, 0xee));
	} else if (level == 1) {
		low->of[0] = _mm512_castps_si512(_mm512_shuffle_f32x4(x, y, 0x88));
		high->of[0] = _mm512_castps_si512(_mm512_shuffle_f32x4(x, y, 0xdd));
	} else if (level == 2) {
		low->of[0] = _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x44));
		high->of[0] = _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xee));
	} else {
		low->of[0] = _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0x88));
		high->of[0] = _mm512_castps_si512(_mm512_shuffle_ps(x, y, 0xdd));
	}
}

#include "kernels/lanes/x86.h"

#endif
