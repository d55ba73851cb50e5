/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_integers.c - activations as 16-bit integers, in AVX-512: bytes for one or two vectors (matvec_bytes.h), words
 * for more (matvec_words.c).
 */
#include <immintrin.h>

#include "kernels/multiply/matvec.h"

#define BLOCK_VECTORS (XFP_BYTES_BLOCK / 16)
#define PAIR_VECTORS (XFP_WORDS_BLOCK / 16)
#define GROUP_VECTORS (XFP_BYTES_GROUP / 16)

static __m512 load(const struct xfp_matvec_x *x, unsigned m, size_t vector)
{
	return _mm512_load_ps(x->lanes + (vector * x->tile + m) * 16);
}

/* Return the largest magnitude of some vectors, at least XFP_X_SMALLEST; XFP_X_TOO_LARGE if one is larger or NaN. */
static float largest(const struct xfp_matvec_x *x, unsigned m, size_t first, size_t end)
{
	__m512 most = _mm512_set1_ps(XFP_X_SMALLEST);
	__mmask16 wrong = 0;

	for (size_t v = first; v < end; v++) {
		__m512 size = _mm512_abs_ps(load(x, m, v));

		wrong |= _mm512_cmp_ps_mask(size, _mm512_set1_ps(XFP_X_TOO_LARGE), _CMP_NLT_UQ);
		most = _mm512_max_ps(most, size);
	}
	return wrong ? XFP_X_TOO_LARGE : _mm512_reduce_max_ps(most);
}

static __m512i in_steps(const struct xfp_matvec_x *x, unsigned m, size_t vector, __m512 per_step)
{
	return _mm512_cvtps_epi32(_mm512_mul_ps(load(x, m, vector), per_step));
}

static float sum_of_group(const struct xfp_matvec_x *x, unsigned m, size_t first)
{
	__m512d sum = _mm512_setzero_pd();

	for (size_t v = first; v < first + GROUP_VECTORS; v++) {
		__m512 lane = load(x, m, v);

		sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_castps512_ps256(lane)));
		sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_extractf32x8_ps(lane, 1)));
	}
	return (float)_mm512_reduce_add_pd(sum);
}

/* ---- bytes ------------------------------------------------------------------------------------- */

/* Extract byte `number` of every lane. */
static __m512i to_byte(__m512i value, unsigned number)
{
	return _mm512_slli_epi32(_mm512_and_si512(value, _mm512_set1_epi32(255)), 8 * number);
}

/* Sums of activations as integers, and of their low bytes. */
struct integer_sums {
	int64_t all, low;
};

/* Convert four vectors to bytes; the columns of one are every fourth. */
static void four_vectors(const struct xfp_matvec_x *x, unsigned m, size_t first, __m512 per_step,
			 struct integer_sums *sums)
{
	int8_t *to = x->bytes + (first / 4 * x->tile + m) * 128;
	__m512i high = _mm512_setzero_si512(), low = high, sum = high, low_sum = high;

	for (unsigned v = 0; v < 4; v++) {
		__m512i value = in_steps(x, m, first + v, per_step);
		__m512i above = _mm512_srai_epi32(_mm512_add_epi32(value, _mm512_set1_epi32(128)), 8);
		__m512i below = _mm512_sub_epi32(value, _mm512_slli_epi32(above, 8));

		high = _mm512_or_si512(high, to_byte(above, v));
		low = _mm512_or_si512(low, to_byte(below, v));
		sum = _mm512_add_epi32(sum, value);
		low_sum = _mm512_add_epi32(low_sum, below);
	}
	_mm512_store_si512(to, high);
	_mm512_store_si512(to + 64, low);
	sums->all += _mm512_reduce_add_epi32(sum);
	sums->low += _mm512_reduce_add_epi32(low_sum);
}

static bool make_bytes(struct xfp_matvec_x *x, unsigned m)
{
	for (size_t first = 0, end; first < x->vectors; first = end) {
		size_t block = first / BLOCK_VECTORS;
		float most, step;
		__m512 per_step;

		end = first + BLOCK_VECTORS < x->vectors ? first + BLOCK_VECTORS : x->vectors;
		most = largest(x, m, first, end);
		if (most >= XFP_X_TOO_LARGE)
			return false;
		step = most / XFP_BYTES_LIMIT;
		per_step = _mm512_set1_ps(XFP_BYTES_LIMIT / most);
		for (size_t half = first; half < end; half += GROUP_VECTORS) {
			size_t group = half / GROUP_VECTORS;
			struct integer_sums sums = { 0 };
			double offset, narrow;

			/* The weights' offset of 32768 times each activation; less 128 times its low byte for the
			 * products of low bytes, which kernels with 16-bit entries drop. */
			four_vectors(x, m, half, per_step, &sums);
			four_vectors(x, m, half + 4, per_step, &sums);
			narrow = (double)step * (double)(32768 * sums.all);
			offset = (double)step * (double)(32768 * sums.all - 128 * sums.low);
			x->narrow_offset[m] += narrow;
			x->offset[m] += offset;
			if (!x->groups)
				continue;
			x->group_step[m * x->groups + group] = step * 0x1p8f;
			x->group_offset[m * x->groups + group] = (float)offset;
			x->narrow_group_offset[m * x->groups + group] = (float)narrow;
			x->group_sum[m * x->groups + group] = sum_of_group(x, m, half);
		}
		x->step[block * x->tile + m] = step * 0x1p8f;
	}
	return true;
}

/* ---- words ------------------------------------------------------------------------------------- */

/* Convert four vectors to words. Each 16-byte part of 64 columns, in look-up order, becomes eight words of the first 32
 * columns and eight of the second 32. */
static void four_in_words(const struct xfp_matvec_x *x, unsigned m, size_t first, __m512 per_step)
{
	/* In the first 32: columns 0, 1, 4, 5, 8 ...; word 16 v + i is column i of vector v. */
	static const uint16_t order[32] = { 0, 16, 32, 48, 1, 17, 33, 49, 4,  20, 36, 52, 5,  21, 37, 53,
					    8, 24, 40, 56, 9, 25, 41, 57, 12, 28, 44, 60, 13, 29, 45, 61 };
	__m512i index = _mm512_loadu_si512(order), half[2];
	int16_t *to = x->words + (first / 4 * x->tile + m) * 64;

	for (unsigned i = 0; i < 2; i++)
		half[i] = _mm512_inserti64x4(
			_mm512_castsi256_si512(_mm512_cvtepi32_epi16(in_steps(x, m, first + 2 * i, per_step))),
			_mm512_cvtepi32_epi16(in_steps(x, m, first + 2 * i + 1, per_step)), 1);
	_mm512_store_si512(to, _mm512_permutex2var_epi16(half[0], index, half[1]));
	index = _mm512_add_epi16(index, _mm512_set1_epi16(2));
	_mm512_store_si512(to + 32, _mm512_permutex2var_epi16(half[0], index, half[1]));
}

static bool make_words(struct xfp_matvec_x *x, unsigned m)
{
	for (size_t first = 0; first < x->vectors; first += PAIR_VECTORS) {
		float most = largest(x, m, first, first + PAIR_VECTORS);
		__m512 per_step = _mm512_set1_ps(XFP_WORD_LIMIT / most);
		size_t pair = first / PAIR_VECTORS;

		if (most >= XFP_X_TOO_LARGE)
			return false;
		four_in_words(x, m, first, per_step);
		four_in_words(x, m, first + 4, per_step);
		x->step[pair * x->tile + m] = most / XFP_WORD_LIMIT;
		if (x->groups)
			x->group_sum[pair * x->tile + m] = sum_of_group(x, m, first);
	}
	return true;
}

bool xfp_matvec_integers(struct xfp_matvec_x *x)
{
	for (unsigned m = 0; m < x->tile; m++)
		if (!(x->tile >= XFP_WORDS_TILE ? make_words(x, m) : make_bytes(x, m)))
			return false;
	return true;
}
