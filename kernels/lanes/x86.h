/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86.h - operations that avx2.h and avx512.h share: across lanes, by halves of eight (f_half, i_half), which each of
 * the two defines. Included at the end of both.
 */
#ifndef XFP_LANES_X86_H
#define XFP_LANES_X86_H

/* For functions specialized by k. */
#define LANES_BY_K LANES_INLINE

LANES_INLINE void vf_fold(vf a, vf b, float *sum_a, float *sum_b)
{
	__m256 x = _mm256_add_ps(f_half(a, 0), f_half(a, 1)), y = _mm256_add_ps(f_half(b, 0), f_half(b, 1));
	__m256 s = _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));

	s = _mm256_add_ps(s, _mm256_permute_ps(s, 0x4e));
	s = _mm256_add_ps(s, _mm256_permute_ps(s, 0xb1));
	*sum_a = _mm256_cvtss_f32(s);
	*sum_b = _mm_cvtss_f32(_mm256_extractf128_ps(s, 1));
}

LANES_INLINE float vf_total(vf a)
{
	__m256 b = _mm256_add_ps(f_half(a, 0), f_half(a, 1));
	__m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

	c = _mm_add_ps(c, _mm_movehl_ps(c, c));
	return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

LANES_INLINE vi vf_round_small(vf a)
{
	return vf_round(a);
}

LANES_INLINE int32_t vi_most(vi a)
{
	__m256i b = _mm256_max_epi32(i_half(a, 0), i_half(a, 1));
	__m128i m = _mm_max_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));

	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
	return _mm_cvtsi128_si32(m);
}

#endif
