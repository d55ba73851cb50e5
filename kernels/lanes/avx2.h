/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avx2.h - sixteen lanes with AVX2 and FMA, in two registers. plain.h describes each operation.
 */
#ifndef XFP_LANES_AVX2_H
#define XFP_LANES_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define LANES_WIDTH 8
typedef __m256 reg_f;
typedef __m256i reg_i, reg_m;
typedef __m256d reg_d;
#include "kernels/lanes/masks.h"

LANES_INLINE __m256 f_half(vf a, int which)
{
	return a.of[which];
}

LANES_INLINE __m256i i_half(vi a, int which)
{
	return a.of[which];
}

LANES_INLINE vf vf_where(vm m, vf a, vf b)
{
	EACH_REGISTER a.of[i] = _mm256_blendv_ps(b.of[i], a.of[i], _mm256_castsi256_ps(m.of[i]));
	return a;
}

LANES_INLINE vi vf_round(vf a)
{
	vi b;

	EACH_REGISTER b.of[i] = _mm256_cvtps_epi32(a.of[i]);
	return b;
}

LANES_INLINE vf vf_from_bf16(const uint16_t *from)
{
	vf a;

	EACH_REGISTER
	{
		__m128i upper = _mm_loadu_si128((const __m128i *)(from + 8 * i));

		a.of[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(upper), 16));
	}
	return a;
}

/* Four lanes, for operations on f64. */
LANES_INLINE __m128i quarter(__m256i a, int which)
{
	return which ? _mm256_extracti128_si256(a, 1) : _mm256_castsi256_si128(a);
}

LANES_INLINE vf vf_from_d(vd a)
{
	vf b;

	EACH_REGISTER b.of[i] = _mm256_set_m128(_mm256_cvtpd_ps(a.of[2 * i + 1]), _mm256_cvtpd_ps(a.of[2 * i]));
	return b;
}

LANES_INLINE vd vd_from_i(vi a)
{
	vd b;

	EACH_DOUBLE b.of[i] = _mm256_cvtepi32_pd(quarter(a.of[i / 2], i % 2));
	return b;
}

LANES_INLINE vd vd_from_f(vf a)
{
	vd b;

	EACH_DOUBLE
	{
		__m256 eight = a.of[i / 2];

		b.of[i] = _mm256_cvtps_pd(i % 2 ? _mm256_extractf128_ps(eight, 1) : _mm256_castps256_ps128(eight));
	}
	return b;
}

LANES_INLINE vi vi_load_bytes(const uint8_t *from)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)from);

	return (vi){ { _mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)) } };
}

LANES_INLINE void vi_store_bytes(uint8_t *to, vi a)
{
	/* Packing works within 128-bit halves: 0-3 8-11 | 4-7 12-15; then restore the order. */
	__m256i words = _mm256_packus_epi32(_mm256_and_si256(a.of[0], _mm256_set1_epi32(255)),
					    _mm256_and_si256(a.of[1], _mm256_set1_epi32(255)));
	__m256i bytes = _mm256_packus_epi16(words, words);

	bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 0, 0, 0));
	_mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(bytes));
}

LANES_INLINE vi vi_max(vi a, vi b)
{
	EACH_REGISTER a.of[i] = _mm256_max_epi32(a.of[i], b.of[i]);
	return a;
}

LANES_INLINE vi vi_min(vi a, vi b)
{
	EACH_REGISTER a.of[i] = _mm256_min_epi32(a.of[i], b.of[i]);
	return a;
}

LANES_INLINE vi vi_lookup(const int32_t *table, vi index)
{
	EACH_REGISTER index.of[i] = _mm256_i32gather_epi32(table, index.of[i], 4);
	return index;
}

LANES_INLINE vi vi_lookup16(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

LANES_INLINE vi vi_where(vm m, vi a, vi b)
{
	EACH_REGISTER a.of[i] = _mm256_blendv_epi8(b.of[i], a.of[i], m.of[i]);
	return a;
}

LANES_INLINE vm vm_from_bits(uint32_t bits)
{
	const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), high = _mm256_slli_epi32(low, 8);
	__m256i all = _mm256_set1_epi32((int32_t)bits);

	return (vm){ { _mm256_cmpeq_epi32(_mm256_and_si256(all, low), low),
		       _mm256_cmpeq_epi32(_mm256_and_si256(all, high), high) } };
}

LANES_INLINE uint32_t vm_bits(vm m)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(m.of[0])) |
	       (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(m.of[1])) << 8;
}

LANES_INLINE vf vf_gather(const float *table, vi index)
{
	vf a;

	EACH_REGISTER a.of[i] = _mm256_i32gather_ps(table, index.of[i], 4);
	return a;
}

/* Sixteen entries in two registers: bit 3 of the index selects one. */
LANES_INLINE __m256 lookup16(__m256 low, __m256 high, __m256i index)
{
	return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index), _mm256_permutevar8x32_ps(high, index),
				_mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}

LANES_INLINE vf vf_lookup(const float *table, unsigned size, vi index)
{
	__m256 low, high;

	if (size > 16)
		return vf_gather(table, index);
	low = size == 4 ? _mm256_castps128_ps256(_mm_loadu_ps(table)) : _mm256_loadu_ps(table);
	if (size < 16)
		return (vf){ { _mm256_permutevar8x32_ps(low, index.of[0]),
			       _mm256_permutevar8x32_ps(low, index.of[1]) } };
	high = _mm256_loadu_ps(table + 8);
	return (vf){ { lookup16(low, high, index.of[0]), lookup16(low, high, index.of[1]) } };
}

LANES_INLINE vd vd_where(vm m, vd a, vd b)
{
	EACH_DOUBLE
	{
		__m256i wide = _mm256_cvtepi32_epi64(quarter(m.of[i / 2], i % 2));

		a.of[i] = _mm256_blendv_pd(b.of[i], a.of[i], _mm256_castsi256_pd(wide));
	}
	return a;
}

LANES_INLINE vd vd_lookup(const double *table, vi index)
{
	vd a;

	EACH_DOUBLE a.of[i] = _mm256_i32gather_pd(table, quarter(index.of[i / 2], i % 2), 8);
	return a;
}

LANES_INLINE vd vd_lookup16(const double *table, vi index)
{
	return vd_lookup(table, index);
}

/* Extract the lower, or the upper, half of each of eight 64-bit lanes. */
LANES_INLINE __m256i halves(__m256i low, __m256i high, bool upper)
{
	__m256 a = _mm256_castsi256_ps(low), b = _mm256_castsi256_ps(high);
	__m256 mixed = upper ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88);

	return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xd8);
}

LANES_INLINE vi vd_sign(vd a)
{
	__m256i low = halves(_mm256_castpd_si256(a.of[0]), _mm256_castpd_si256(a.of[1]), true);
	__m256i high = halves(_mm256_castpd_si256(a.of[2]), _mm256_castpd_si256(a.of[3]), true);

	return (vi){ { _mm256_srai_epi32(low, 31), _mm256_srai_epi32(high, 31) } };
}

LANES_INLINE __m256i key_quarter(__m256d a, int count)
{
	__m256i bits = _mm256_castpd_si256(a), sign = _mm256_srli_epi64(bits, 63);

	bits = _mm256_sub_epi64(_mm256_and_si256(bits, _mm256_set1_epi64x(INT64_MAX)), sign);
	return _mm256_srl_epi64(bits, _mm_cvtsi32_si128(count));
}

LANES_INLINE vi vd_key(vd a, int count)
{
	return (vi){ { halves(key_quarter(a.of[0], count), key_quarter(a.of[1], count), false),
		       halves(key_quarter(a.of[2], count), key_quarter(a.of[3], count), false) } };
}

LANES_INLINE vd vd_add_exact(vd a, vd b, vd c)
{
	EACH_DOUBLE a.of[i] = _mm256_fmadd_pd(b.of[i], c.of[i], a.of[i]);
	return a;
}

typedef struct {
	__m256i sum[2], square[2];
} vsum;

LANES_INLINE void vsum_clear(vsum *s)
{
	s->sum[0] = s->sum[1] = s->square[0] = s->square[1] = _mm256_setzero_si256();
}

LANES_INLINE void vsum_add_half(vsum *s, __m256i a)
{
	__m256i odd = _mm256_srli_epi64(a, 32);

	s->sum[0] = _mm256_add_epi64(s->sum[0], _mm256_cvtepi32_epi64(_mm256_castsi256_si128(a)));
	s->sum[1] = _mm256_add_epi64(s->sum[1], _mm256_cvtepi32_epi64(_mm256_extracti128_si256(a, 1)));
	s->square[0] = _mm256_add_epi64(s->square[0], _mm256_mul_epi32(a, a));
	s->square[1] = _mm256_add_epi64(s->square[1], _mm256_mul_epi32(odd, odd));
}

LANES_INLINE void vsum_add(vsum *s, vi a)
{
	vsum_add_half(s, a.of[0]);
	vsum_add_half(s, a.of[1]);
}

LANES_INLINE int64_t lanes_total(__m256i a, __m256i b)
{
	int64_t lane[4];

	_mm256_storeu_si256((__m256i *)lane, _mm256_add_epi64(a, b));
	return lane[0] + lane[1] + lane[2] + lane[3];
}

LANES_INLINE void vsum_total(const vsum *s, int64_t *sum, int64_t *square)
{
	*sum = lanes_total(s->sum[0], s->sum[1]);
	*square = lanes_total(s->square[0], s->square[1]);
}

LANES_INLINE vf vf_larger(vf a, vf b)
{
	EACH_REGISTER a.of[i] = _mm256_max_ps(a.of[i], b.of[i]);
	return a;
}

LANES_INLINE vf vf_smaller(vf a, vf b)
{
	EACH_REGISTER a.of[i] = _mm256_min_ps(a.of[i], b.of[i]);
	return a;
}

LANES_INLINE float vf_largest(vf a)
{
	__m256 b = _mm256_max_ps(a.of[0], a.of[1]);
	__m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));

	c = _mm_max_ps(c, _mm_movehl_ps(c, c));
	return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

LANES_INLINE vf vf_fma(vf a, vf b, vf c)
{
	EACH_REGISTER a.of[i] = _mm256_fmadd_ps(a.of[i], b.of[i], c.of[i]);
	return a;
}

LANES_INLINE vf vf_mul_add_halves(vf a, vf b, vf c)
{
	return vf_fma(a, b, c);
}

LANES_INLINE vi vi_lookup64(const int32_t *table, vi index)
{
	return vi_lookup(table, index);
}

LANES_INLINE __m256i running_half(__m256i a)
{
	__m256i low;

	a = _mm256_add_epi32(a, _mm256_slli_si256(a, 4));
	a = _mm256_add_epi32(a, _mm256_slli_si256(a, 8));
	/* Each quarter contains its own sums; the last of the lower one is added to all of the upper one. */
	low = _mm256_permute2x128_si256(a, a, 0x08);
	return _mm256_add_epi32(a, _mm256_shuffle_epi32(low, 0xff));
}

LANES_INLINE vi vi_running(vi a)
{
	__m256i low = running_half(a.of[0]);
	__m256i last = _mm256_permutevar8x32_epi32(low, _mm256_set1_epi32(7));

	return (vi){ { low, _mm256_add_epi32(running_half(a.of[1]), last) } };
}

typedef struct {
	__m256i all[2], high[2]; /* sums of words, which overflow, and of their high bytes */
} vtally;

LANES_INLINE void vtally_clear(vtally *t)
{
	t->all[0] = t->all[1] = t->high[0] = t->high[1] = _mm256_setzero_si256();
}

LANES_INLINE void vtally_add(vtally *t, const uint16_t *words)
{
	__m256i a = _mm256_loadu_si256((const __m256i *)words);
	__m256i b = _mm256_loadu_si256((const __m256i *)(words + 16));

	t->all[0] = _mm256_add_epi16(t->all[0], a);
	t->all[1] = _mm256_add_epi16(t->all[1], b);
	t->high[0] = _mm256_add_epi16(t->high[0], _mm256_srli_epi16(a, 8));
	t->high[1] = _mm256_add_epi16(t->high[1], _mm256_srli_epi16(b, 8));
}

LANES_INLINE vi vtally_sums(const vtally *t, unsigned part)
{
	__m256i high = t->high[part % 2], words;

	words = part < 2 ? _mm256_sub_epi16(t->all[part % 2], _mm256_slli_epi16(high, 8)) : high;
	return (vi){ { _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)),
		       _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1)) } };
}

LANES_INLINE void vi_halves(int level, vi a, vi b, vi *low, vi *high)
{
	if (level == 0) {
		*low = (vi){ { a.of[0], b.of[0] } };
		*high = (vi){ { a.of[1], b.of[1] } };
		return;
	}
	if (level == 1) {
		*low = (vi){ { _mm256_permute2x128_si256(a.of[0], a.of[1], 0x20),
			       _mm256_permute2x128_si256(b.of[0], b.of[1], 0x20) } };
		*high = (vi){ { _mm256_permute2x128_si256(a.of[0], a.of[1], 0x31),
				_mm256_permute2x128_si256(b.of[0], b.of[1], 0x31) } };
		return;
	}
	EACH_REGISTER
	{
		const __m256 x = _mm256_castsi256_ps(a.of[i]), y = _mm256_castsi256_ps(b.of[i]);

		low->of[i] =
			_mm256_castps_si256(level == 2 ? _mm256_shuffle_ps(x, y, 0x44) : _mm256_shuffle_ps(x, y, 0x88));
		high->of[i] =
			_mm256_castps_si256(level == 2 ? _mm256_shuffle_ps(x, y, 0xee) : _mm256_shuffle_ps(x, y, 0xdd));
	}
}

#include "kernels/lanes/x86.h"

#endif
