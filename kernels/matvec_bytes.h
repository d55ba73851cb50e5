/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_bytes.h - rows with codebooks in bytes, with AVX-512 VBMI and VNNI: 64 weights a look-up. What v2a and v2c
 * share with v2, and v2.
 *
 * A weight is step * (256 H + L - 32768), an activation step * (256 h + l); H and L are looked up in two tables of
 * bytes, and  65536 H h + 256 (H l + L h)  is added up in integers, a block of 256 columns at a time. L l is left
 * out; what it is on average, and the 32768, are in the activations' offset, which is the same for every row. Where
 * an instruction takes 16 lanes of f32, this takes 64 of bytes, seven instructions where f32 takes twelve.
 */
#ifndef XFP_MATVEC_BYTES_H
#define XFP_MATVEC_BYTES_H

#include <immintrin.h>
#include <string.h>

#include "lane_index.h"
#include "matvec.h"
#include "matvec_tables.h"

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define PREFETCH_AHEAD 2048

/* The shift is one of 16 bits: what comes in from the next byte is above the index. */
#define SHIFT(w, count) _mm512_srli_epi16(w, count)
#define MERGE(a, b, mask) _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8(mask), 0xe4)

/* Slot i of all bytes of a chunk, at their low end. */
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

INLINE void load_words(unsigned k, const uint8_t *packed, unsigned lanes, __m512i *w)
{
	UNROLL
	for (unsigned i = 0; i < xfp_lane_words(k); i++) {
		w[i] = lanes == 16 ? _mm512_loadu_si512(packed + 64 * i)
				   : _mm512_maskz_loadu_epi32((__mmask16)((1u << lanes) - 1),
							      packed + (size_t)4 * lanes * i);
		_mm_prefetch((const char *)packed + 64 * i + PREFETCH_AHEAD, _MM_HINT_T0);
	}
}

/* Of a block, and of the blocks before. */
struct sums {
	__m512i high[XFP_MAX_BATCH], middle[XFP_MAX_BATCH], other;
	__m512 all[XFP_MAX_BATCH];
};

INLINE void add_products(unsigned tile, __m512i high, __m512i low, const int8_t *bytes, struct sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		__m512i h = _mm512_load_si512(bytes + 128 * m), l = _mm512_load_si512(bytes + 128 * m + 64);

		s->high[m] = _mm512_dpbusd_epi32(s->high[m], high, h);
		s->middle[m] = _mm512_dpbusd_epi32(s->middle[m], high, l);
		if (tile == 1)
			s->other = _mm512_dpbusd_epi32(s->other, low, h);
		else
			s->middle[m] = _mm512_dpbusd_epi32(s->middle[m], low, h);
	}
}

INLINE void begin_block(unsigned tile, struct sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		s->high[m] = s->middle[m] = _mm512_setzero_si512();
	s->other = _mm512_setzero_si512();
}

/* At most 2^28: sixteen products of a byte each, 256 times. */
INLINE void end_block(unsigned tile, const float *step, struct sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		__m512i sum = _mm512_add_epi32(_mm512_slli_epi32(s->high[m], 8), s->middle[m]);

		if (tile == 1)
			sum = _mm512_add_epi32(sum, s->other);
		s->all[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(step[m]), s->all[m]);
	}
}

INLINE void finish(unsigned tile, const __m512 *all, double factor, const struct xfp_matvec_x *x, bool add, float *y,
		   size_t stride)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		if (m < x->count) {
			float value = (float)((_mm512_reduce_add_ps(all[m]) - x->offset[m]) * factor);

			y[m * stride] = add ? y[m * stride] + value : value;
		}
}

/* ---- v2 ---------------------------------------------------------------------------------------- */

struct byte_table {
	__m512i high, low;
	float step;
};

/* False when an entry is not finite. */
INLINE bool make_table(unsigned k, const uint8_t *code, struct byte_table *t)
{
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

	/* Of all lanes in every lane; those of a table that repeats are fewer. */
	if (k >= 4)
		most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0x4e));
	if (k >= 3)
		most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0xb1));
	most = _mm512_max_ps(most, _mm512_permute_ps(most, 0x4e));
	most = _mm512_max_ps(most, _mm512_permute_ps(most, 0xb1));
	t->step = _mm512_cvtss_f32(most) / 32767;
	/* The least half is 2^-24: no quotient is infinite but that of zeros. */
	per_step = _mm512_div_ps(_mm512_set1_ps(32767), _mm512_max_ps(most, _mm512_set1_ps(0x1p-24f)));
	UNROLL
	for (unsigned i = 0; i < parts; i++) {
		__m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(entry[i], per_step)),
					     _mm512_set1_epi32(32768));

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

/* A chunk of k = 4 is half a block, one of k = 3 and 5 two. */
#define BLOCK_SLOTS 4

INLINE void v2_chunk(unsigned k, unsigned tile, const struct byte_table *t, const uint8_t *packed, unsigned lanes,
		     const int8_t *bytes, const float *step, bool begins, bool ends, struct sums *s)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i w[XFP_MAX_WORDS];

	load_words(k, packed, lanes, w);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		__m512i index = slot(k, w, i);

		if (i % BLOCK_SLOTS == 0 && begins)
			begin_block(tile, s);
		add_products(tile, _mm512_permutexvar_epi8(index, t->high), _mm512_permutexvar_epi8(index, t->low),
			     bytes + (size_t)128 * tile * i, s);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			if (ends)
				end_block(tile, step + (size_t)i / BLOCK_SLOTS * tile, s);
	}
}

/* Columns of all vectors that stay in the first cache while a batch of rows is multiplied by them; whole chunks and
 * blocks of every k. */
#define SEGMENT_COLUMNS(tile) (12288 / (tile))
#define ROWS 8

/* Columns [from, end) of a row; `packed` and x begin with them. */
INLINE void v2_part(unsigned k, unsigned tile, const struct byte_table *t, const uint8_t *packed, size_t left,
		    const int8_t *bytes, const float *step, struct sums *s)
{
	size_t chunk = xfp_chunk_columns(k), chunk_bytes = 4 * k * chunk / 32;

	if (k == 4)
		for (; left >= 2 * chunk; left -= 2 * chunk, packed += 2 * chunk_bytes) {
			v2_chunk(k, tile, t, packed, 16, bytes, step, true, false, s);
			v2_chunk(k, tile, t, packed + chunk_bytes, 16, bytes + 2 * chunk * tile, step, false, true, s);
			bytes += 4 * chunk * tile;
			step += tile;
		}
	else
		for (; left >= chunk; left -= chunk, packed += chunk_bytes) {
			v2_chunk(k, tile, t, packed, 16, bytes, step, true, true, s);
			bytes += 2 * chunk * tile;
			step += chunk / 256 * tile;
		}
	if (k == 4 && left >= chunk) {
		v2_chunk(k, tile, t, packed, 16, bytes, step, true, left == chunk, s);
		left -= chunk;
		if (left)
			v2_chunk(k, tile, t, packed + chunk_bytes, xfp_chunk_lanes(k, left), bytes + 2 * chunk * tile,
				 step, false, true, s);
	} else if (left) {
		v2_chunk(k, tile, t, packed, xfp_chunk_lanes(k, left), bytes, step, true, true, s);
	}
}

INLINE void v2_rows(unsigned k, unsigned tile, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		    size_t rows, bool add, float *y, size_t stride)
{
	for (size_t r = first, batch; r < first + rows; r += batch) {
		struct byte_table table[ROWS];
		__m512 all[ROWS][XFP_MAX_BATCH];
		bool fit[ROWS];

		batch = first + rows - r < ROWS ? first + rows - r : ROWS;
		for (size_t i = 0; i < batch; i++) {
			fit[i] = make_table(k, (const uint8_t *)w->code + ((r + i) << (k + 1)), &table[i]);
			UNROLL
			for (unsigned m = 0; m < tile; m++)
				all[i][m] = _mm512_setzero_ps();
		}
		for (size_t c = 0; c < w->cols; c += SEGMENT_COLUMNS(tile)) {
			size_t left = w->cols - c < SEGMENT_COLUMNS(tile) ? w->cols - c : SEGMENT_COLUMNS(tile);

			for (size_t i = 0; i < batch; i++) {
				struct sums s;

				UNROLL
				for (unsigned m = 0; m < tile; m++)
					s.all[m] = all[i][m];
				if (fit[i])
					v2_part(k, tile, &table[i], w->index + (r + i) * w->row_bytes + c / 8 * k, left,
						x->bytes + c * 2 * tile, x->step + c / 256 * tile, &s);
				UNROLL
				for (unsigned m = 0; m < tile; m++)
					all[i][m] = s.all[m];
			}
		}
		for (size_t i = 0; i < batch; i++)
			if (fit[i])
				finish(tile, all[i], w->unit * table[i].step, x, add, y + (r + i - first), stride);
			else
				xfp_matvec_avx512.rows(w, x, r + i, 1, add, y + (r + i - first), stride);
	}
}

#endif
