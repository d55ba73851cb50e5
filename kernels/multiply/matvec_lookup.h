/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_lookup.h - look up 64 weights at once with AVX-512 VBMI, as high bytes and low bytes. Shared by matvec_bytes.h
 * (one or two vectors) and matvec_words.c (more).
 */
#ifndef XFP_MATVEC_LOOKUP_H
#define XFP_MATVEC_LOOKUP_H

#include <immintrin.h>
#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"
#include "kernels/multiply/matvec_unroll.h"

/* A 16-bit shift: bits that enter from the next byte are above the index. */
#define SHIFT(w, count) _mm512_srli_epi16(w, count)
#define MERGE(a, b, mask) _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8(mask), 0xe4)

/* Move slot i of all bytes of a chunk to the low end. */
INLINE __m512i slot(unsigned k, const __m512i *w, unsigned i)
{
	switch (k) {
	case 2:
		return SHIFT(w[0], 2 * i);
	case 3:
		if (i < 6)
			return SHIFT(w[i / 2], 3 * (i % 2));
		return MERGE(SHIFT(w[i - 6], 6), SHIFT(w[2], i - 2), 3);
	case 4:
		return SHIFT(w[0], 4 * i);
	case 5:
		if (i < 5)
			return w[i];
		if (i < 7)
			return MERGE(SHIFT(w[i - 5], 5), SHIFT(w[i - 2], 2), 7);
		return MERGE(MERGE(SHIFT(w[2], 5), SHIFT(w[3], 4), 7), SHIFT(w[4], 3), 15);
	default:
		if (i < 3)
			return w[i];
		return MERGE(MERGE(SHIFT(w[0], 6), SHIFT(w[1], 4), 3), SHIFT(w[2], 2), 15);
	}
}

/* Load the words of a chunk, and prefetch `ahead` bytes further, to the L2 cache, which can wait for more lines. */
INLINE void load_words(unsigned k, const uint8_t *packed, unsigned lanes, size_t ahead, __m512i *w)
{
	UNROLL
	for (unsigned i = 0; i < xfp_lane_words(k); i++) {
		w[i] = lanes == 16 ? _mm512_loadu_si512(packed + 64 * i)
				   : _mm512_maskz_loadu_epi32((__mmask16)((1u << lanes) - 1),
							      packed + (size_t)4 * lanes * i);
		_mm_prefetch((const char *)packed + 64 * i + ahead, _MM_HINT_T1);
	}
}

/* ---- the table of a row, v2 ---------------------------------------------------------------------- */

struct byte_table {
	__m512i high, low;
	float step;
};

/* Convert the entries to bytes, or to the high and low bytes of words. Returns false if one is not finite. */
INLINE bool make_table(unsigned k, bool words, const uint8_t *code, struct byte_table *t)
{
	const float steps = words ? XFP_WORD_LIMIT : XFP_ENTRY_LIMIT;
	const __m512 most_finite = _mm512_set1_ps(65504);
	unsigned parts = k > 4 ? 1u << (k - 4) : 1;
	__m512 entry[4], most = _mm512_setzero_ps(), per_step;
	__mmask16 wrong = 0;
	__m128i high[4], low[4];
	int64_t four;

	memcpy(&four, code, sizeof four);
	entry[0] = _mm512_cvtph_ps(k == 2   ? _mm256_set1_epi64x(four)
				   : k == 3 ? _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)code))
					    : _mm256_loadu_si256((const __m256i *)code));
	UNROLL
	for (unsigned i = 1; i < parts; i++)
		entry[i] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(code + 32 * i)));
	UNROLL
	for (unsigned i = 0; i < parts; i++) {
		__m512 size = _mm512_abs_ps(entry[i]);

		wrong |= _mm512_cmp_ps_mask(size, most_finite, _CMP_NLE_UQ);
		most = _mm512_max_ps(most, size);
	}
	if (wrong)
		return false;

	/* Broadcast the maximum of all lanes; tables that repeat have fewer distinct lanes. */
	if (k >= 4)
		most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0x4e));
	if (k >= 3)
		most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0xb1));
	most = _mm512_max_ps(most, _mm512_permute_ps(most, 0x4e));
	most = _mm512_max_ps(most, _mm512_permute_ps(most, 0xb1));
	t->step = _mm512_cvtss_f32(most) / steps;
	/* The smallest fp16 is 2^-24, so the quotient is infinite only for zeros. */
	per_step = _mm512_div_ps(_mm512_set1_ps(steps), _mm512_max_ps(most, _mm512_set1_ps(0x1p-24f)));
	UNROLL
	for (unsigned i = 0; i < parts; i++) {
		__m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(entry[i], per_step)),
					     _mm512_set1_epi32(words ? 0 : 32768));

		low[i] = _mm512_cvtepi32_epi8(q);
		high[i] = _mm512_cvtepi32_epi8(_mm512_srli_epi32(q, 8));
	}
	if (k <= 4) {
		t->high = _mm512_broadcast_i32x4(high[0]);
		t->low = _mm512_broadcast_i32x4(low[0]);
	} else {
		__m256i h = _mm256_set_m128i(high[1], high[0]), l = _mm256_set_m128i(low[1], low[0]);

		t->high = k == 5 ? _mm512_broadcast_i64x4(h)
				 : _mm512_inserti64x4(_mm512_castsi256_si512(h), _mm256_set_m128i(high[3], high[2]), 1);
		t->low = k == 5 ? _mm512_broadcast_i64x4(l)
				: _mm512_inserti64x4(_mm512_castsi256_si512(l), _mm256_set_m128i(low[3], low[2]), 1);
	}
	return true;
}

/* ---- tables of a library, v2a and v2c ------------------------------------------------------------- */

INLINE __m512i load_repeated(unsigned k, const uint8_t *half)
{
	return k <= 4   ? _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)half))
	       : k == 5 ? _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)half))
			: _mm512_loadu_si512(half);
}

INLINE __m512i both(const uint8_t *one, const uint8_t *other)
{
	return _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)one)), 0xf0,
					   _mm256_loadu_si256((const __m256i *)other));
}

/* Look up a slot of two groups, 32 columns each. Up to k = 4 one register contains both tables, high and low bytes; for
 * k = 5 the high bytes of both; for k = 6 those of one. */
INLINE void look_up_two(unsigned k, const uint8_t *one, const uint8_t *other, __m512i index, __m512i *high,
			__m512i *low)
{
	const __m512i others = _mm512_set1_epi32(0x20 << 16 | 0x20 << 24);

	if (k <= 4) {
		__m512i table = both(one, other);

		/* (index & 15) | others */
		index = _mm512_ternarylogic_epi32(index, _mm512_set1_epi8(15), others, 0xea);
		*high = _mm512_permutexvar_epi8(index, table);
		*low = _mm512_permutexvar_epi8(_mm512_or_si512(index, _mm512_set1_epi8(16)), table);
	} else if (k == 5) {
		index = _mm512_ternarylogic_epi32(index, _mm512_set1_epi8(31), others, 0xea);
		*high = _mm512_permutexvar_epi8(index, both(one, other));
		*low = _mm512_permutexvar_epi8(index, both(one + 32, other + 32));
	} else {
		const __mmask64 second = 0xcccccccccccccccc;

		*high = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(index, _mm512_loadu_si512(one)), second,
						     index, _mm512_loadu_si512(other));
		*low = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(index, _mm512_loadu_si512(one + 64)),
						    second, index, _mm512_loadu_si512(other + 64));
	}
}

/* The columns of a slot of the last chunk that belong to one group. */
struct part {
	size_t group;
	__mmask64 lanes;
};

/* Layout of the last chunk, the same for all rows. */
struct rest {
	unsigned lanes; /* 0 if all chunks are complete */
	struct part part[8][5];
};

static void divide_rest(unsigned k, unsigned group, size_t column, size_t cols, struct rest *rest)
{
	memset(rest, 0, sizeof *rest);
	rest->lanes = column < cols ? xfp_chunk_lanes(k, cols - column) : 0;
	for (unsigned v = 0; rest->lanes && v < xfp_lane_columns(k); v++)
		for (unsigned l = 0; l < rest->lanes && column < cols; l++, column++) {
			struct part *part = rest->part[v / 4];

			while (part->lanes && part->group != column >> group)
				part++;
			part->group = column >> group;
			part->lanes |= (__mmask64)1 << (4 * l + v % 4);
		}
}

/* Look up a slot of the last chunk, in all its groups; zero past the last column. */
INLINE void look_up_rest(unsigned k, const uint8_t *tables, const struct part *part, const uint8_t *byte, __m512i index,
			 __m512i *high, __m512i *low)
{
	*high = *low = _mm512_setzero_si512();
	for (; part->lanes; part++) {
		const uint8_t *table = tables + xfp_table_bytes(k) * byte[part->group];

		*high = _mm512_mask_permutexvar_epi8(*high, part->lanes, index, load_repeated(k, table));
		*low = _mm512_mask_permutexvar_epi8(*low, part->lanes, index,
						    load_repeated(k, table + xfp_table_half(k)));
	}
}

/* Multiply rows of any mode with codebooks by more than two vectors, if bytes_fit (matvec_words.c). */
xfp_matvec_fn xfp_matvec_words;

/* Multiply rows of v2a or v2c by one or two vectors, if the library has 8-bit entries (matvec_narrow.c). */
xfp_matvec_fn xfp_matvec_narrow;

#endif
