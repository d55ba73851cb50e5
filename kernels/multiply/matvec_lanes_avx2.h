/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_lanes_avx2.h - the lanes of matvec_rows.h as two halves, with AVX2, FMA and F16C. What each does is said in
 * matvec_lanes_plain.h.
 */
#ifndef XFP_MATVEC_LANES_AVX2_H
#define XFP_MATVEC_LANES_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/multiply/matvec.h"

typedef struct {
	__m256 a, b; /* lanes 0-7, 8-15 */
} mf;
typedef struct {
	__m256i a, b;
} mi;

/* Up to 16 entries in registers, eight each; more in memory. */
struct table {
	__m256 part[2];
	float entry[64];
};

#define PREFETCH_AHEAD 2048

/* No function: gcc 12 finds that it does nothing, and leaves the call out. */
#define m_prefetch(at) _mm_prefetch((const char *)(at) + PREFETCH_AHEAD, _MM_HINT_T0)

static inline mf mf_zero(void)
{
	return (mf){ _mm256_setzero_ps(), _mm256_setzero_ps() };
}

static inline mf mf_load(const float *from)
{
	return (mf){ _mm256_load_ps(from), _mm256_load_ps(from + 8) };
}

static inline void mf_store(float *to, mf a)
{
	_mm256_storeu_ps(to, a.a);
	_mm256_storeu_ps(to + 8, a.b);
}

static inline mf mf_mul(mf a, mf b)
{
	return (mf){ _mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b) };
}

static inline mf mf_fma(mf a, mf b, mf c)
{
	return (mf){ _mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b) };
}

static inline mf mf_add(mf a, mf b)
{
	return (mf){ _mm256_add_ps(a.a, b.a), _mm256_add_ps(a.b, b.b) };
}

static inline float mf_sum(mf a)
{
	__m256 eight = _mm256_add_ps(a.a, a.b);
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));

	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

static inline mf mf_from(mf a, mf b, unsigned lane)
{
	const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), first = _mm256_set1_epi32((int)lane);

	return (mf){ _mm256_blendv_ps(b.a, a.a, _mm256_castsi256_ps(_mm256_cmpgt_epi32(first, lanes))),
		     _mm256_blendv_ps(b.b, a.b,
				      _mm256_castsi256_ps(_mm256_cmpgt_epi32(
					      first, _mm256_add_epi32(lanes, _mm256_set1_epi32(8))))) };
}

static inline mi mi_load(const uint8_t *from)
{
	return (mi){ _mm256_loadu_si256((const __m256i *)from), _mm256_loadu_si256((const __m256i *)(from + 32)) };
}

static inline mi mi_load_part(const uint8_t *from, unsigned lanes)
{
	uint8_t all[64] = { 0 };

	memcpy(all, from, (size_t)4 * lanes);
	return mi_load(all);
}

static inline __attribute__((always_inline)) mi mi_shift(mi a, unsigned count)
{
	return (mi){ _mm256_srli_epi32(a.a, (int)count), _mm256_srli_epi32(a.b, (int)count) };
}

static inline __attribute__((always_inline)) mi mi_merge(mi a, mi b, uint32_t mask)
{
	const __m256i m = _mm256_set1_epi32((int)mask);

	return (mi){ _mm256_or_si256(_mm256_and_si256(a.a, m), _mm256_andnot_si256(m, b.a)),
		     _mm256_or_si256(_mm256_and_si256(a.b, m), _mm256_andnot_si256(m, b.b)) };
}

static inline __attribute__((always_inline)) __m256 look_up_eight(unsigned k, const struct table *t, __m256i index)
{
	if (k <= 3)
		return _mm256_permutevar8x32_ps(t->part[0], index);
	if (k == 4)
		return _mm256_blendv_ps(_mm256_permutevar8x32_ps(t->part[0], index),
					_mm256_permutevar8x32_ps(t->part[1], index),
					_mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
	return _mm256_i32gather_ps(t->entry, _mm256_and_si256(index, _mm256_set1_epi32((1 << k) - 1)), 4);
}

static inline __attribute__((always_inline)) mf mf_lookup(unsigned k, const struct table *t, mi index)
{
	return (mf){ look_up_eight(k, t, index.a), look_up_eight(k, t, index.b) };
}

static inline __attribute__((always_inline)) void table_of_halves(unsigned k, const uint8_t *from, struct table *t)
{
	if (k == 2) {
		t->part[0] = _mm256_cvtph_ps(_mm_shuffle_epi32(_mm_loadl_epi64((const __m128i *)from), 0x44));
	} else if (k <= 4) {
		for (unsigned i = 0; i < 1u << (k - 3); i++)
			t->part[i] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + 16 * i)));
	} else {
		for (unsigned i = 0; i < 1u << (k - 3); i++)
			_mm256_storeu_ps(t->entry + 8 * i,
					 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + 16 * i))));
	}
}

static inline __attribute__((always_inline)) void table_of_floats(unsigned k, const float *from, struct table *t)
{
	if (k == 2)
		t->part[0] = _mm256_broadcast_ps((const __m128 *)from);
	else if (k <= 4)
		for (unsigned i = 0; i < 1u << (k - 3); i++)
			t->part[i] = _mm256_load_ps(from + 8 * i);
	else
		memcpy(t->entry, from, sizeof(float) << k);
}

static inline __attribute__((always_inline)) void table_scale(unsigned k, struct table *t, const uint8_t *pair)
{
	int32_t both;
	__m128 numbers;
	__m256 scale, midpoint;

	memcpy(&both, pair, sizeof both);
	numbers = _mm_cvtph_ps(_mm_cvtsi32_si128(both));
	scale = _mm256_broadcastss_ps(numbers);
	midpoint = _mm256_broadcastss_ps(_mm_movehdup_ps(numbers));
	if (k <= 4)
		for (unsigned i = 0; i < (k == 4 ? 2u : 1u); i++)
			t->part[i] = _mm256_fmadd_ps(t->part[i], scale, midpoint);
	else
		for (unsigned i = 0; i < 1u << k; i += 8)
			_mm256_storeu_ps(t->entry + i, _mm256_fmadd_ps(_mm256_loadu_ps(t->entry + i), scale, midpoint));
}

static inline __m256 numbers_eight(enum xfp_matvec_mode mode, const uint8_t *from)
{
	if (mode == XFP_MATVEC_F32)
		return _mm256_loadu_ps((const float *)(const void *)from);
	if (mode == XFP_MATVEC_F16)
		return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
	if (mode == XFP_MATVEC_BF16)
		return _mm256_castsi256_ps(
			_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), 16));

	/* As fp16 of a 256th; the one NaN becomes one there. */
	__m128i wide = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)from));
	__m128i size = _mm_and_si128(_mm_slli_epi16(wide, 7), _mm_set1_epi16(0x3f80));
	__m128i nan = _mm_cmpeq_epi16(size, _mm_set1_epi16(0x3f80));

	return _mm256_cvtph_ps(_mm_or_si128(_mm_or_si128(size, _mm_and_si128(nan, _mm_set1_epi16(0x7e00))),
					    _mm_and_si128(wide, _mm_set1_epi16((short)0x8000))));
}

static inline __attribute__((always_inline)) mf mf_numbers(enum xfp_matvec_mode mode, const uint8_t *from)
{
	size_t eight = mode == XFP_MATVEC_F32 ? 32 : mode == XFP_MATVEC_FP8 ? 8 : 16;

	return (mf){ numbers_eight(mode, from), numbers_eight(mode, from + eight) };
}

#endif
