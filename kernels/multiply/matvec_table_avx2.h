/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_table_avx2.h - matvec_table_plain.h with AVX2, FMA and F16C: a table of up to 16 entries is in two registers.
 */
#ifndef XFP_MATVEC_TABLE_AVX2_H
#define XFP_MATVEC_TABLE_AVX2_H

#include <stddef.h>
#include <string.h>

#include "kernels/lanes/avx2.h"
#include "kernels/multiply/matvec.h"

/* Up to 16 entries are in two registers of eight; more are in memory. */
struct table {
	__m256 part[2];
	float entry[64];
};

#define PREFETCH_AHEAD 2048

/* A macro, because gcc 12 removes calls of a function that only prefetches. */
#define m_prefetch(at) _mm_prefetch((const char *)(at) + PREFETCH_AHEAD, _MM_HINT_T0)

LANES_INLINE __m256 look_up_eight(unsigned k, const struct table *t, __m256i index)
{
	if (k <= 3)
		return _mm256_permutevar8x32_ps(t->part[0], index);
	if (k == 4)
		return _mm256_blendv_ps(_mm256_permutevar8x32_ps(t->part[0], index),
					_mm256_permutevar8x32_ps(t->part[1], index),
					_mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
	return _mm256_i32gather_ps(t->entry, _mm256_and_si256(index, _mm256_set1_epi32((1 << k) - 1)), 4);
}

LANES_INLINE vf table_lookup(unsigned k, const struct table *t, vi index)
{
	return (vf){ { look_up_eight(k, t, index.of[0]), look_up_eight(k, t, index.of[1]) } };
}

LANES_INLINE void table_of_halves(unsigned k, const uint8_t *from, struct table *t)
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

LANES_INLINE void table_of_floats(unsigned k, const float *from, struct table *t)
{
	if (k == 2)
		t->part[0] = _mm256_broadcast_ps((const __m128 *)from);
	else if (k <= 4)
		for (unsigned i = 0; i < 1u << (k - 3); i++)
			t->part[i] = _mm256_load_ps(from + 8 * i);
	else
		memcpy(t->entry, from, sizeof(float) << k);
}

LANES_INLINE void table_scale(unsigned k, struct table *t, const uint8_t *pair)
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

LANES_INLINE __m256 numbers_eight(enum xfp_matvec_mode mode, const uint8_t *from)
{
	if (mode == XFP_MATVEC_F32)
		return _mm256_loadu_ps((const float *)(const void *)from);
	if (mode == XFP_MATVEC_F16)
		return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));

	/* Convert as fp16, which gives 1/256 of the value; the NaN code becomes NaN. */
	__m128i wide = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)from));
	__m128i size = _mm_and_si128(_mm_slli_epi16(wide, 7), _mm_set1_epi16(0x3f80));
	__m128i nan = _mm_cmpeq_epi16(size, _mm_set1_epi16(0x3f80));

	return _mm256_cvtph_ps(_mm_or_si128(_mm_or_si128(size, _mm_and_si128(nan, _mm_set1_epi16(0x7e00))),
					    _mm_and_si128(wide, _mm_set1_epi16((short)0x8000))));
}

LANES_INLINE vf stored_numbers(enum xfp_matvec_mode mode, const uint8_t *from)
{
	size_t eight = mode == XFP_MATVEC_F32 ? 32 : mode == XFP_MATVEC_FP8 ? 8 : 16;

	if (mode == XFP_MATVEC_BF16)
		return vf_from_bf16((const uint16_t *)(const void *)from);
	return (vf){ { numbers_eight(mode, from), numbers_eight(mode, from + eight) } };
}

#endif
