/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_integers_avx2.c - activations as 16-bit words, in AVX2.
 */
#include <immintrin.h>

#include "kernels/multiply/matvec_words_avx2.h"

static __m256i in_steps(const float *from, __m256 per_step)
{
	return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(from), per_step));
}

/* Convert 64 columns, four vectors `distance` floats apart. Returns false if they do not fit.
 *
 * The largest is converted exactly, so that a block's errors are at most (64 - 1) / 2 steps in total: less than with
 * XFP_WORD_LIMIT, which the bound in matvec.h assumes. */
static bool block_words(const float *lanes, size_t distance, int16_t *words, float *sums)
{
	const __m256 sign = _mm256_set1_ps(-0.0f);
	__m256 most = _mm256_set1_ps(XFP_X_SMALLEST), sum = _mm256_setzero_ps(), wrong = sum, per_step;
	__m128 four;
	float max;

	for (unsigned v = 0; v < 8; v++) {
		__m256 value = _mm256_load_ps(lanes + v / 2 * distance + v % 2 * 8),
		       size = _mm256_andnot_ps(sign, value);

		wrong = _mm256_or_ps(wrong, _mm256_cmp_ps(size, _mm256_set1_ps(XFP_X_TOO_LARGE), _CMP_NLT_UQ));
		most = _mm256_max_ps(most, size);
		sum = _mm256_add_ps(sum, value);
	}
	four = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
	four = _mm_max_ps(four, _mm_movehl_ps(four, four));
	max = _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
	if (_mm256_movemask_ps(wrong))
		return false;
	per_step = _mm256_set1_ps(MAX_X / max);
	for (unsigned h = 0; h < 2; h++, lanes += 2 * distance, words += 32) {
		/* The order of load_halves and look_up. */
		__m256i one = _mm256_packs_epi32(in_steps(lanes, per_step), in_steps(lanes + distance, per_step));
		__m256i other =
			_mm256_packs_epi32(in_steps(lanes + 8, per_step), in_steps(lanes + distance + 8, per_step));
		__m256i low = _mm256_unpacklo_epi16(one, other), high = _mm256_unpackhi_epi16(one, other);

		_mm256_store_si256((__m256i *)(void *)words, _mm256_unpacklo_epi16(low, high));
		_mm256_store_si256((__m256i *)(void *)(words + 16), _mm256_unpackhi_epi16(low, high));
	}
	_mm256_store_ps((float *)(void *)words, _mm256_set1_ps(max / MAX_X));
	_mm256_store_ps(sums, sum);
	return true;
}

bool xfp_matvec_integers_avx2(struct xfp_matvec_x *x)
{
	for (size_t i = 0; i < x->vectors / 4 * x->tile; i++) {
		size_t block = i / x->tile, m = i % x->tile;

		if (!block_words(x->lanes + (4 * block * x->tile + m) * 16, x->tile * (size_t)16,
				 x->words + i * BLOCK_WORDS, x->sums + 8 * i))
			return false;
	}
	return true;
}
