/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_bytes.h - rows with codebooks times one or two vectors as bytes, with AVX-512 VBMI and VNNI: 64 weights per
 * look-up. Contains v2 and v2a, and the code that v2c shares with them.
 *
 * A weight is step * (256 H + L - 32768), an activation step * (256 h + l). H and L are looked up in two tables of
 * bytes, and  65536 H h + 256 (H l + L h)  is summed in integers, per block of 256 columns. The term L l is dropped;
 * its average, and the 32768, are part of the activations' offset, which is the same for every row. An instruction
 * processes 64 byte lanes instead of 16 f32 lanes: seven instructions instead of twelve.
 *
 * With 8-bit entries (`narrow`) L is 0, nothing is dropped, and one look-up and two multiply-adds process 64 weights.
 */
#ifndef XFP_MATVEC_BYTES_H
#define XFP_MATVEC_BYTES_H

#include "kernels/multiply/matvec_lookup.h"

/* Sums of the current block, and of the blocks before. */
struct byte_sums {
	__m512i high[XFP_MAX_BATCH], middle[XFP_MAX_BATCH], other;
	__m512 all[XFP_MAX_BATCH];
};

INLINE void add_products(unsigned tile, __m512i high, __m512i low, const int8_t *bytes, struct byte_sums *s)
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

/* The same for 8-bit entries, which have no low bytes. */
INLINE void add_narrow(unsigned tile, __m512i weight, const int8_t *bytes, struct byte_sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		s->high[m] = _mm512_dpbusd_epi32(s->high[m], weight, _mm512_load_si512(bytes + 128 * m));
		s->middle[m] = _mm512_dpbusd_epi32(s->middle[m], weight, _mm512_load_si512(bytes + 128 * m + 64));
	}
}

INLINE void begin_block(unsigned tile, struct byte_sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		s->high[m] = s->middle[m] = _mm512_setzero_si512();
	s->other = _mm512_setzero_si512();
}

/* Sums are at most 2^28: sixteen products of bytes, 256 times. */
INLINE void end_block(unsigned tile, bool narrow, const float *step, struct byte_sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		__m512i sum = _mm512_add_epi32(_mm512_slli_epi32(s->high[m], 8), s->middle[m]);

		if (tile == 1 && !narrow)
			sum = _mm512_add_epi32(sum, s->other);
		s->all[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(step[m]), s->all[m]);
	}
}

INLINE void finish(unsigned tile, const __m512 *all, double factor, const double *offset, const struct xfp_matvec_x *x,
		   bool add, float *y, size_t stride)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		if (m < x->count) {
			float value = (float)((_mm512_reduce_add_ps(all[m]) - offset[m]) * factor);

			y[m * stride] = add ? y[m * stride] + value : value;
		}
}

/* ---- v2 ---------------------------------------------------------------------------------------- */

/* A chunk of k = 4 is half a block; one of k = 3 or 5 is two blocks. */
#define BLOCK_SLOTS 4
#define PREFETCH_AHEAD 8192

INLINE void v2_chunk(unsigned k, unsigned tile, const struct byte_table *t, const uint8_t *packed, unsigned lanes,
		     const int8_t *bytes, const float *step, bool begins, bool ends, struct byte_sums *s)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i w[XFP_MAX_WORDS];

	load_words(k, packed, lanes, PREFETCH_AHEAD, w);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		__m512i index = slot(k, w, i);

		if (i % BLOCK_SLOTS == 0 && begins)
			begin_block(tile, s);
		add_products(tile, _mm512_permutexvar_epi8(index, t->high), _mm512_permutexvar_epi8(index, t->low),
			     bytes + (size_t)128 * tile * i, s);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			if (ends)
				end_block(tile, false, step + (size_t)i / BLOCK_SLOTS * tile, s);
	}
}

/* Columns of all vectors that stay in the L1 cache while a batch of rows is multiplied by them; a multiple of the
 * chunks and blocks of every k. */
#define SEGMENT_COLUMNS(tile) (12288 / (tile))
#define ROWS 8

/* Multiply columns [from, end) of a row; `packed` and x begin at column `from`. */
INLINE void v2_part(unsigned k, unsigned tile, const struct byte_table *t, const uint8_t *packed, size_t left,
		    const int8_t *bytes, const float *step, struct byte_sums *s)
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
			fit[i] = make_table(k, false, (const uint8_t *)w->code + ((r + i) << (k + 1)), &table[i]);
			UNROLL
			for (unsigned m = 0; m < tile; m++)
				all[i][m] = _mm512_setzero_ps();
		}
		for (size_t c = 0; c < w->cols; c += SEGMENT_COLUMNS(tile)) {
			size_t left = w->cols - c < SEGMENT_COLUMNS(tile) ? w->cols - c : SEGMENT_COLUMNS(tile);

			for (size_t i = 0; i < batch; i++) {
				struct byte_sums s;

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
				finish(tile, all[i], w->unit * table[i].step, x->offset, x, add, y + (r + i - first),
				       stride);
			else
				xfp_matvec_avx512.rows(w, x, r + i, 1, add, y + (r + i - first), stride);
	}
}

/* ---- v2a --------------------------------------------------------------------------------------- */

/* Groups of 128 columns, and whole chunks. A weight is scale * entry + midpoint, so a group's share is the scale times
 * the sum over entries, plus the midpoint times the sum of x; sixteen groups at a time. */
#define SEGMENT 16

INLINE void v2a_rows(unsigned k, unsigned tile, bool narrow, const struct xfp_matvec *w, const struct xfp_matvec_x *x,
		     size_t first, size_t rows, bool add, float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), groups = w->cols / XFP_BYTES_GROUP;
	const struct xfp_tables_head *head = xfp_tables_head(w->tables);
	const uint8_t *tables = narrow ? xfp_tables_narrow(head, k) : xfp_tables_bytes(head, k);
	double entry_step = narrow ? head->narrow_step : head->step;
	const float *group_offset = narrow ? x->narrow_group_offset : x->group_offset;
	size_t table_bytes = narrow ? XFP_NARROW_BYTES : xfp_table_bytes(k);
	unsigned slots = xfp_lane_columns(k) / 4;

	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *packed = w->index + r * w->row_bytes, *byte = w->byte + r * w->row_groups;
		const uint8_t *pair = (const uint8_t *)w->pair + r * w->row_groups * 4;
		const int8_t *bytes = x->bytes;
		__m512 offset[XFP_MAX_BATCH], middle[XFP_MAX_BATCH];
		struct byte_sums s;

		UNROLL
		for (unsigned m = 0; m < tile; m++)
			s.all[m] = offset[m] = middle[m] = _mm512_setzero_ps();
		for (size_t from = 0; from < groups; from += SEGMENT) {
			size_t count = groups - from < SEGMENT ? groups - from : SEGMENT,
			       end = (from + count) * XFP_BYTES_GROUP;
			__m512i pairs = _mm512_maskz_loadu_epi32((__mmask16)((1u << count) - 1), pair + 4 * from);
			__m512 scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs));
			__m512 midpoint = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16)));
			float step[XFP_MAX_BATCH][SEGMENT];

			UNROLL
			for (unsigned m = 0; m < tile; m++) {
				size_t at = m * x->groups + from;

				_mm512_storeu_ps(step[m], _mm512_mul_ps(scale, _mm512_loadu_ps(x->group_step + at)));
				offset[m] = _mm512_fmadd_ps(scale, _mm512_loadu_ps(group_offset + at), offset[m]);
				middle[m] = _mm512_fmadd_ps(midpoint, _mm512_loadu_ps(x->group_sum + at), middle[m]);
			}
			for (size_t c = from * XFP_BYTES_GROUP; c < end; c += chunk, packed += 4 * k * chunk / 32) {
				__m512i word[XFP_MAX_WORDS], high, low;

				load_words(k, packed, 16, PREFETCH_AHEAD, word);
				UNROLL
				for (unsigned i = 0; i < slots; i++, bytes += 128 * tile) {
					size_t g = c / XFP_BYTES_GROUP + i / 2;
					__m512i index = slot(k, word, i);

					if (i % 2 == 0) {
						const uint8_t *table = tables + table_bytes * byte[g];

						high = load_repeated(k, table);
						if (!narrow)
							low = load_repeated(k, table + xfp_table_half(k));
						begin_block(tile, &s);
					}
					if (narrow)
						add_narrow(tile, _mm512_permutexvar_epi8(index, high), bytes, &s);
					else
						add_products(tile, _mm512_permutexvar_epi8(index, high),
							     _mm512_permutexvar_epi8(index, low), bytes, &s);
					if (i % 2) {
						float at[XFP_MAX_BATCH];

						UNROLL
						for (unsigned m = 0; m < tile; m++)
							at[m] = step[m][g - from];
						end_block(tile, narrow, at, &s);
					}
				}
			}
		}
		UNROLL
		for (unsigned m = 0; m < tile; m++)
			if (m < x->count) {
				double entries = _mm512_reduce_add_ps(_mm512_sub_ps(s.all[m], offset[m]));
				double value = entries * entry_step + _mm512_reduce_add_ps(middle[m]);
				float *to = y + m * stride + (r - first);

				*to = (float)(value * w->unit) + (add ? *to : 0);
			}
	}
}

#endif
