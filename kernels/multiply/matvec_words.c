/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_words.c - rows with codebooks times three to eight vectors, with AVX-512 VBMI and VNNI: 16-bit words.
 *
 * Weights and activations are step * word, up to 2^14, so one instruction sums 32 products; f32 sums 16, and bytes,
 * which need three instructions, 21. The cost of combining bytes into words is shared by the vectors; with fewer
 * vectors bytes are faster. Eight products per 32-bit lane are summed before conversion to float: 128 columns.
 */
#include "kernels/multiply/matvec_lookup.h"
#include "kernels/multiply/matvec_whole.h"

/* Columns of all vectors that stay in the L1 cache while a batch of rows is multiplied by them; a multiple of the
 * chunks of every k. */
#define SEGMENT_COLUMNS(tile) (12288 / (tile))
#define PREFETCH_AHEAD 4096 /* far ahead, because rows of a batch take turns on short parts */
#define PAIR 128            /* columns of two slots, which have one step */

struct word_row {
	struct stored_row stored;
	struct byte_table table; /* v2 */
	double step;             /* value of a step */
	bool fit;
	__m512 all[XFP_MAX_BATCH];
	__m256 middle; /* v2a: contribution of the midpoints; otherwise 0 */
};

/* Parameters that are the same for all rows. */
struct word_call {
	const uint8_t *tables;
	struct rest rest;
	const struct xfp_matvec_x *x;
};

INLINE void add_words(unsigned tile, bool begins, __m512i high, __m512i low, const int16_t *x, __m512i *sum)
{
	__m512i one = _mm512_unpacklo_epi8(low, high), other = _mm512_unpackhi_epi8(low, high);

	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		__m512i before = begins ? _mm512_setzero_si512() : sum[m];

		before = _mm512_dpwssds_epi32(before, one, _mm512_load_si512(x + (size_t)64 * m));
		sum[m] = _mm512_dpwssds_epi32(before, other, _mm512_load_si512(x + (size_t)64 * m + 32));
	}
}

INLINE void end_pair(unsigned tile, const __m512i *sum, const float *step, __m512 *all)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		all[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[m]), _mm512_set1_ps(step[m]), all[m]);
}

/* Load one number per vector into eight lanes. */
INLINE __m256 by_vector(unsigned tile, const float *from)
{
	return tile == 4 ? _mm256_zextps128_ps256(_mm_load_ps(from)) : _mm256_load_ps(from);
}

/* Process `lanes` lanes of a chunk. */
INLINE void chunk_words(enum xfp_matvec_mode mode, unsigned k, unsigned tile, unsigned log2,
			const struct word_call *call, const struct word_row *row, size_t column, unsigned lanes,
			const float *step, __m512 *all)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	const int16_t *x = call->x->words + column * tile;
	__m512i word[XFP_MAX_WORDS], high, low, table_high, table_low, sum[XFP_MAX_BATCH];

	load_words(k, row->stored.packed + column / 8 * k, lanes, PREFETCH_AHEAD, word);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		size_t at = column + (size_t)64 * i;
		__m512i index = slot(k, word, i);

		if (mode == XFP_MATVEC_V2C && lanes < 16) {
			look_up_rest(k, call->tables, call->rest.part[i], row->stored.byte, index, &high, &low);
		} else if (mode == XFP_MATVEC_V2C) {
			unsigned one = row->stored.byte[at >> log2];
			unsigned other = row->stored.byte[(at + 32) >> log2];

			look_up_two(k, call->tables + xfp_table_bytes(k) * one,
				    call->tables + xfp_table_bytes(k) * other, index, &high, &low);
		} else {
			if (mode == XFP_MATVEC_V2A && i % 2 == 0) {
				const uint8_t *table = call->tables + xfp_table_bytes(k) * row->stored.byte[at / PAIR];

				table_high = load_repeated(k, table);
				table_low = load_repeated(k, table + xfp_table_half(k));
			}
			high = _mm512_permutexvar_epi8(index, mode == XFP_MATVEC_V2 ? row->table.high : table_high);
			low = _mm512_permutexvar_epi8(index, mode == XFP_MATVEC_V2 ? row->table.low : table_low);
		}
		add_words(tile, i % 2 == 0, high, low, x + (size_t)64 * tile * i, sum);
		if (i % 2)
			end_pair(tile, sum, step + i / 2 * tile, all);
	}
}

/* Compute the steps of groups [first, end) times their scales, and the contribution of their midpoints. */
INLINE void read_pairs(unsigned tile, const struct word_call *call, struct word_row *row, size_t first, size_t end,
		       float *step)
{
	const struct xfp_matvec_x *x = call->x;
	float scale[16], midpoint[16];
	__m256 middle = row->middle;

	for (size_t g = first, j = 0; g < end; g++, j = (j + 1) % 16) {
		if (j == 0) {
			__mmask16 here = end - g < 16 ? (__mmask16)((1u << (end - g)) - 1) : 0xffff;
			__m512i pairs = _mm512_maskz_loadu_epi32(here, row->stored.pair + 4 * g);

			_mm512_storeu_ps(scale, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs)));
			_mm512_storeu_ps(midpoint,
					 _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16))));
		}
		_mm256_storeu_ps(step + (g - first) * tile,
				 _mm256_mul_ps(_mm256_set1_ps(scale[j]), by_vector(tile, x->step + g * tile)));
		middle = _mm256_fmadd_ps(_mm256_set1_ps(midpoint[j]), by_vector(tile, x->group_sum + g * tile), middle);
	}
	row->middle = middle;
}

INLINE void multiply_part(enum xfp_matvec_mode mode, unsigned k, unsigned tile, unsigned log2,
			  const struct word_call *call, struct word_row *row, size_t column, size_t end)
{
	size_t chunk = xfp_chunk_columns(k), from = column;
	const float *step = call->x->step + column / PAIR * tile;
	float scaled[SEGMENT_COLUMNS(1) / PAIR + XFP_MAX_BATCH];
	__m512 all[XFP_MAX_BATCH];

	if (mode == XFP_MATVEC_V2A) {
		read_pairs(tile, call, row, column / PAIR, end / PAIR, scaled);
		step = scaled;
	}
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		all[m] = row->all[m];
	for (; column + chunk <= end; column += chunk)
		chunk_words(mode, k, tile, log2, call, row, column, 16, step + (column - from) / PAIR * tile, all);
	if (mode != XFP_MATVEC_V2A && column < end)
		chunk_words(mode, k, tile, log2, call, row, column, xfp_chunk_lanes(k, end - column),
			    step + (column - from) / PAIR * tile, all);
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		row->all[m] = all[m];
}

INLINE void begin_row(enum xfp_matvec_mode mode, unsigned k, unsigned tile, const struct xfp_matvec *w, size_t r,
		      struct word_row *row)
{
	row->fit = mode != XFP_MATVEC_V2 || make_table(k, true, (const uint8_t *)w->code + (r << (k + 1)), &row->table);
	row->step = mode == XFP_MATVEC_V2 ? row->table.step : xfp_tables_head(w->tables)->word_step;
	if (mode == XFP_MATVEC_V2C)
		row->step *= xfp_row_scale(w->row[r]);
	row->middle = _mm256_setzero_ps();
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		row->all[m] = _mm512_setzero_ps();
}

INLINE void finish(unsigned tile, const struct word_row *row, double unit, const struct xfp_matvec_x *x, bool add,
		   float *y, size_t stride)
{
	float middle[8];

	_mm256_storeu_ps(middle, row->middle);
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		if (m < x->count) {
			double sum = _mm512_reduce_add_ps(row->all[m]) * row->step;
			float value = (float)((sum + middle[m]) * unit);

			y[m * stride] = add ? y[m * stride] + value : value;
		}
}

INLINE void begin_call(enum xfp_matvec_mode mode, unsigned k, const struct xfp_matvec *w, struct word_call *call)
{
	size_t chunk = xfp_chunk_columns(k);

	if (mode != XFP_MATVEC_V2)
		call->tables = xfp_tables_words(w->tables, k);
	if (mode == XFP_MATVEC_V2C)
		divide_rest(k, w->group, w->cols / chunk * chunk, w->cols, &call->rest);
}

#define ROW struct word_row
#define CALL struct word_call
#define COLUMNS w->cols
#define IN_FLOATS xfp_matvec_avx512.rows
#include "kernels/multiply/matvec_batches.h"

/* ---- instances --------------------------------------------------------------------------------- */

#define WIDE_COPIES(k) COPY(multiply_batches, k, 4) COPY(multiply_batches, k, 8)
WIDE_COPIES(2)
WIDE_COPIES(3)
WIDE_COPIES(4)
WIDE_COPIES(5)
WIDE_COPIES(6)

#define WIDE(name)                                                                                  \
	{                                                                                           \
		{ name##_2_4, name##_2_8 }, { name##_3_4, name##_3_8 }, { name##_4_4, name##_4_8 }, \
			{ name##_5_4, name##_5_8 }, { name##_6_4, name##_6_8 },                     \
	}

void xfp_matvec_words(ARGUMENTS)
{
	static xfp_matvec_fn *const in_words[3][5][2] = { WIDE(v2), WIDE(v2a), WIDE(v2c) };

	in_words[w->mode - XFP_MATVEC_V2][w->k - 2][x->tile / 8](PASSED);
}
