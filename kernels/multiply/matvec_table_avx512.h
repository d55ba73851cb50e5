/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_table_avx512.h - matvec_table_plain.h with AVX-512 F, BW, DQ and VL: a table is in one, two or four registers.
 */
#ifndef XFP_MATVEC_TABLE_AVX512_H
#define XFP_MATVEC_TABLE_AVX512_H

#include <stddef.h>
#include <string.h>

#include "kernels/lanes/avx512.h"
#include "kernels/multiply/matvec.h"

struct table {
	__m512 part[4];
};

#define ROWS_AT_ONCE 3 /* times eight vectors: 24 of the 32 registers */
#define PANEL_WIDTH XFP_AVX512_PANEL_WIDTH
#define PANEL_ROWS(width) (24 / (width))
#define PREFETCH_AHEAD 2048

/* A macro, because gcc 12 removes calls of a function that only prefetches. */
#define m_prefetch(at) _mm_prefetch((const char *)(at) + PREFETCH_AHEAD, _MM_HINT_T0)

/* Keep the value in a register, so that it is not loaded for each use. */
#define m_hold(a) __asm__("" : "+v"((a).of[0]))

LANES_INLINE vf table_lookup(unsigned k, const struct table *t, vi index)
{
	__m512i at = index.of[0];

	if (k <= 4)
		return (vf){ { _mm512_permutexvar_ps(at, t->part[0]) } };
	if (k == 5)
		return (vf){ { _mm512_permutex2var_ps(t->part[0], at, t->part[1]) } };
	return (vf){ { _mm512_mask_mov_ps(_mm512_permutex2var_ps(t->part[0], at, t->part[1]),
					  _mm512_test_epi32_mask(at, _mm512_set1_epi32(32)),
					  _mm512_permutex2var_ps(t->part[2], at, t->part[3])) } };
}

LANES_INLINE void table_of_halves(unsigned k, const uint8_t *from, struct table *t)
{
	int64_t four;

	if (k == 2) {
		memcpy(&four, from, sizeof four);
		t->part[0] = _mm512_cvtph_ps(_mm256_set1_epi64x(four));
	} else if (k == 3) {
		t->part[0] = _mm512_cvtph_ps(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)from)));
	} else {
		for (unsigned i = 0; i < 1u << (k - 4); i++)
			t->part[i] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + 32 * i)));
	}
}

LANES_INLINE void table_of_floats(unsigned k, const float *from, struct table *t)
{
	if (k == 2)
		t->part[0] = _mm512_broadcast_f32x4(_mm_load_ps(from));
	else if (k == 3)
		t->part[0] = _mm512_broadcast_f32x8(_mm256_load_ps(from));
	else
		for (unsigned i = 0; i < 1u << (k - 4); i++)
			t->part[i] = _mm512_load_ps(from + 16 * i);
}

LANES_INLINE void table_scale(unsigned k, struct table *t, const uint8_t *pair)
{
	int32_t both;
	__m128 numbers;
	__m512 scale, midpoint;

	memcpy(&both, pair, sizeof both);
	numbers = _mm_cvtph_ps(_mm_cvtsi32_si128(both));
	scale = _mm512_broadcastss_ps(numbers);
	midpoint = _mm512_broadcastss_ps(_mm_movehdup_ps(numbers));
	for (unsigned i = 0; i < (k > 4 ? 1u << (k - 4) : 1); i++)
		t->part[i] = _mm512_fmadd_ps(t->part[i], scale, midpoint);
}

LANES_INLINE vf stored_numbers(enum xfp_matvec_mode mode, const uint8_t *from)
{
	if (mode == XFP_MATVEC_F32)
		return (vf){ { _mm512_loadu_ps(from) } };
	if (mode == XFP_MATVEC_F16)
		return (vf){ { _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)) } };
	if (mode == XFP_MATVEC_BF16)
		return vf_from_bf16((const uint16_t *)(const void *)from);

	/* Convert as fp16, which gives 1/256 of the value; the NaN code would become a number. */
	__m128i code = _mm_loadu_si128((const __m128i *)from);
	__m256i wide = _mm256_cvtepi8_epi16(code);
	__m256i half = _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(0x3f80)),
				       _mm256_and_si256(wide, _mm256_set1_epi16((short)0x8000)));
	__mmask16 nan = _mm_cmpeq_epi8_mask(_mm_or_si128(code, _mm_set1_epi8((char)0x80)), _mm_set1_epi8(-1));

	return (vf){ { _mm512_mask_mov_ps(_mm512_cvtph_ps(half), nan, vf_from_bits(vi_all(0x7fc00000)).of[0]) } };
}

#endif
