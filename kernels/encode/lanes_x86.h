/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes_x86.h - what lanes_avx2.h and lanes_avx512.h have in common: sixteen lanes, given as halves, become one.
 */
#ifndef XFP_LANES_X86_H
#define XFP_LANES_X86_H

#include <immintrin.h>
#include <stdint.h>

/* Functions that have a copy for every k. */
#define LANES_BY_K static inline __attribute__((always_inline))

/* Sums of two times eight lanes, pairwise: 0 + 4, then 0 + 2, then 0 + 1. */
static inline void fold_halves(__m256 a, __m256 b, float *sum_a, float *sum_b)
{
	__m256 s = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));

	s = _mm256_add_ps(s, _mm256_permute_ps(s, 0x4e));
	s = _mm256_add_ps(s, _mm256_permute_ps(s, 0xb1));
	*sum_a = _mm256_cvtss_f32(s);
	*sum_b = _mm_cvtss_f32(_mm256_extractf128_ps(s, 1));
}

static inline int32_t most_of_half(__m256i a)
{
	__m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));

	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
	return _mm_cvtsi128_si32(m);
}

/* The least and the second of two lots, each with its own. */
static inline void merge_two(__m128i *least, __m128i *second, __m128i other_least, __m128i other_second)
{
	__m128i middle = _mm_max_epi32(*least, other_least);

	*second = _mm_min_epi32(middle, _mm_min_epi32(*second, other_second));
	*least = _mm_min_epi32(*least, other_least);
}

static inline void two_least_of_halves(__m256i low, __m256i high, unsigned apart, int32_t *least, int32_t *second)
{
	const __m128i none = _mm_set1_epi32(INT32_MAX);
	__m256i l = _mm256_min_epi32(low, high);
	__m256i s = apart > 8 ? _mm256_max_epi32(low, high) : _mm256_set1_epi32(INT32_MAX);
	__m128i l0 = _mm256_castsi256_si128(l), l1 = _mm256_extracti128_si256(l, 1);
	__m128i s0 = _mm256_castsi256_si128(s), s1 = _mm256_extracti128_si256(s, 1);

	if (apart > 4) {
		merge_two(&l0, &s0, l1, s1);
	} else {
		l0 = _mm_min_epi32(l0, l1);
		s0 = none;
	}
	merge_two(&l0, &s0, _mm_shuffle_epi32(l0, 0x4e), _mm_shuffle_epi32(s0, 0x4e));
	merge_two(&l0, &s0, _mm_shuffle_epi32(l0, 0xb1), _mm_shuffle_epi32(s0, 0xb1));
	*least = _mm_cvtsi128_si32(l0);
	*second = _mm_cvtsi128_si32(s0);
}

#endif
