/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_words_avx2.c - rows with codebooks times one to eight vectors, with AVX2: 16-bit words.
 *
 * Weights and activations are step * word, up to 2^14. The high and the low byte of a weight are looked up by byte
 * shuffles, 32 at a time, and interleaved into words; an instruction sums 16 products, f32 sums 8. Eight products per
 * 32-bit lane are summed before conversion to float: 64 columns.
 */
#include <immintrin.h>
#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"
#include "kernels/multiply/matvec_unroll.h"
#include "kernels/multiply/matvec_whole.h"
#include "kernels/multiply/matvec_words_avx2.h"

#define MAX_PARTS 4 /* registers of 16 entries of a table, maximum */
#define PREFETCH_AHEAD 2048
#define GROUPS_AHEAD 1024

/* ---- indices ----------------------------------------------------------------------------------- */

/* Load the words of a chunk so that those of columns 0 to 31 of every slot, and those of columns 32 to 63, are in a
 * register each. Byte 4 l + j of it is of column l + 16 (j % 2) + 8 (j / 2), l < 8. */
INLINE void load_halves(unsigned k, const uint8_t *packed, __m256i half[2][XFP_MAX_WORDS])
{
	UNROLL
	for (unsigned i = 0; i < xfp_lane_words(k); i++) {
		__m256i one = _mm256_loadu_si256((const __m256i *)(packed + 64 * i));
		__m256i other = _mm256_loadu_si256((const __m256i *)(packed + 64 * i + 32));

		half[0][i] = _mm256_blend_epi16(one, _mm256_slli_epi32(other, 16), 0xaa);
		half[1][i] = _mm256_blend_epi16(_mm256_srli_epi32(one, 16), other, 0xaa);
		_mm_prefetch((const char *)packed + 64 * i + PREFETCH_AHEAD, _MM_HINT_T0);
	}
}

INLINE __m256i bits(__m256i w, unsigned shift, int mask)
{
	return _mm256_and_si256(shift ? _mm256_srli_epi16(w, (int)shift) : w, _mm256_set1_epi8((char)mask));
}

/* Slot i of all bytes of a chunk. Tables of fewer than 16 entries repeat them. */
INLINE __m256i slot(unsigned k, const __m256i *w, unsigned i)
{
	switch (k) {
	case 2:
		return bits(w[0], 2 * i, 15);
	case 3:
		if (i < 6)
			return bits(w[i / 2], 3 * (i % 2), 15);
		return _mm256_or_si256(bits(w[i - 6], 6, 3), bits(w[2], i - 2, 4));
	case 4:
		return bits(w[0], 4 * i, 15);
	case 5:
		if (i < 5)
			return bits(w[i], 0, 31);
		if (i < 7)
			return _mm256_or_si256(bits(w[i - 5], 5, 7), bits(w[i - 2], 2, 24));
		return _mm256_or_si256(bits(w[2], 5, 7), _mm256_or_si256(bits(w[3], 4, 8), bits(w[4], 3, 16)));
	default:
		if (i < 3)
			return bits(w[i], 0, 63);
		return _mm256_or_si256(bits(w[0], 6, 3), _mm256_or_si256(bits(w[1], 4, 12), bits(w[2], 2, 48)));
	}
}

/* ---- tables ------------------------------------------------------------------------------------ */

/* High and low bytes of 2^k entries. Each part after the first is XORed with the one before, so that the XOR of parts
 * 0 to i is part i. */
struct shuffle_table {
	__m256i high[MAX_PARTS], low[MAX_PARTS];
};

INLINE unsigned parts(unsigned k)
{
	return k > 4 ? 1u << (k - 4) : 1;
}

INLINE __m256i repeated(const uint8_t *from)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)from));
}

INLINE void load_table(unsigned k, const uint8_t *from, struct shuffle_table *t)
{
	UNROLL
	for (unsigned i = 0; i < parts(k); i++) {
		t->high[i] = repeated(from + 16 * i);
		t->low[i] = repeated(from + xfp_table_half(k) + 16 * i);
	}
}

/* Look up 32 columns, as words in two registers. A shuffle gives zero for indices below 16 i, whose bit 7 is set. */
INLINE void look_up(unsigned k, const struct shuffle_table *t, __m256i index, __m256i *word)
{
	__m256i high = _mm256_shuffle_epi8(t->high[0], index), low = _mm256_shuffle_epi8(t->low[0], index);

	UNROLL
	for (unsigned i = 1; i < parts(k); i++) {
		__m256i within = _mm256_sub_epi8(index, _mm256_set1_epi8((char)(16 * i)));

		high = _mm256_xor_si256(high, _mm256_shuffle_epi8(t->high[i], within));
		low = _mm256_xor_si256(low, _mm256_shuffle_epi8(t->low[i], within));
	}
	word[0] = _mm256_unpacklo_epi8(low, high);
	word[1] = _mm256_unpackhi_epi8(low, high);
}

/* Convert eight entries of a row's codebook, v2; if there are only four, twice. */
INLINE __m256 entries(unsigned k, const uint8_t *code)
{
	__m128i half = k > 2 ? _mm_loadu_si128((const __m128i *)code) : _mm_loadl_epi64((const __m128i *)code);

	return _mm256_cvtph_ps(k > 2 ? half : _mm_unpacklo_epi64(half, half));
}

/* Make the table of a row of v2. Returns false if an entry is not finite. */
INLINE bool make_table(unsigned k, const uint8_t *code, struct shuffle_table *t, float *step)
{
	const __m256 sign = _mm256_set1_ps(-0.0f);
	__m256 entry[2 * MAX_PARTS], most = _mm256_setzero_ps(), wrong = most, per_step;
	__m128 four;

	UNROLL
	for (unsigned i = 0; i < 2 * parts(k); i++) {
		__m256 size;

		entry[i] = i && k < 4 ? entry[0] : entries(k, code + 16 * i);
		size = _mm256_andnot_ps(sign, entry[i]);
		wrong = _mm256_or_ps(wrong, _mm256_cmp_ps(size, _mm256_set1_ps(65504), _CMP_NLE_UQ));
		most = _mm256_max_ps(most, size);
	}
	if (_mm256_movemask_ps(wrong))
		return false;
	four = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
	four = _mm_max_ps(four, _mm_movehl_ps(four, four));
	four = _mm_max_ss(four, _mm_movehdup_ps(four));
	*step = _mm_cvtss_f32(four) / XFP_WORD_LIMIT;
	/* The smallest fp16 is 2^-24, so the quotient is infinite only for zeros. */
	per_step = _mm256_div_ps(_mm256_set1_ps(XFP_WORD_LIMIT),
				 _mm256_max_ps(_mm256_broadcastss_ps(four), _mm256_set1_ps(0x1p-24f)));
	UNROLL
	for (unsigned i = 0; i < parts(k); i++) {
		__m256i one = _mm256_cvtps_epi32(_mm256_mul_ps(entry[2 * i], per_step));
		__m256i other = _mm256_cvtps_epi32(_mm256_mul_ps(entry[2 * i + 1], per_step));
		__m256i word = _mm256_permute4x64_epi64(_mm256_packs_epi32(one, other), 0xd8);
		__m256i low = _mm256_and_si256(word, _mm256_set1_epi16(255)), high = _mm256_srli_epi16(word, 8);

		t->low[i] = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, low), 0x88);
		t->high[i] = _mm256_permute4x64_epi64(_mm256_packus_epi16(high, high), 0x88);
	}
	UNROLL
	for (unsigned i = parts(k) - 1; i > 0; i--) {
		t->low[i] = _mm256_xor_si256(t->low[i], t->low[i - 1]);
		t->high[i] = _mm256_xor_si256(t->high[i], t->high[i - 1]);
	}
	return true;
}

/* ---- products ---------------------------------------------------------------------------------- */

struct shuffle_row {
	struct stored_row stored;
	struct shuffle_table table; /* v2 */
	float step;                 /* v2: value of a step */
	bool fit;
	__m256 all[XFP_MAX_BATCH];
};

/* Parameters that are the same for all rows. */
struct shuffle_call {
	const uint8_t *tables;
	__m128 pair; /* v2a: factors of a group's scale and midpoint */
	const struct xfp_matvec_x *x;
};

/* The next columns of a row. */
struct words_place {
	const uint8_t *packed, *byte; /* v2c with groups of 32: the first group of the chunk; otherwise, of the row */
	const int16_t *x;
	const float *sum;
	size_t column;
};

/* Scale and midpoint of a group, v2a. */
struct words_scale {
	__m256 scale, midpoint;
};

INLINE struct words_scale load_pair(const struct shuffle_call *call, const uint8_t *from)
{
	int32_t both;
	__m128 numbers;

	memcpy(&both, from, sizeof both);
	numbers = _mm_mul_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(both)), call->pair);
	return (struct words_scale){ _mm256_broadcastss_ps(numbers), _mm256_broadcastss_ps(_mm_movehdup_ps(numbers)) };
}

/* Add 64 columns; v2a: times a group's scale, and the sum of x times its midpoint. */
INLINE void add_words(unsigned tile, const __m256i *word, const int16_t *x, const struct words_scale *pair,
		      const float *sum, __m256 *all)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		const __m256i *at = (const __m256i *)(const void *)(x + (size_t)BLOCK_WORDS * m);
		__m256 step = _mm256_load_ps((const float *)(const void *)(at + 4));
		__m256 value = _mm256_cvtepi32_ps(_mm256_add_epi32(
			_mm256_add_epi32(_mm256_madd_epi16(word[0], at[0]), _mm256_madd_epi16(word[1], at[1])),
			_mm256_add_epi32(_mm256_madd_epi16(word[2], at[2]), _mm256_madd_epi16(word[3], at[3]))));

		if (pair) {
			all[m] = _mm256_fmadd_ps(pair->midpoint, _mm256_load_ps(sum + (size_t)8 * m), all[m]);
			value = _mm256_mul_ps(value, pair->scale);
		}
		all[m] = _mm256_fmadd_ps(value, step, all[m]);
	}
}

INLINE void chunk_words(enum xfp_matvec_mode mode, unsigned k, unsigned tile, unsigned log2,
			const struct shuffle_call *call, const struct shuffle_row *row, struct words_place *at,
			__m256 *all)
{
	const bool run = log2 == 5; /* groups are in the order of halves */
	unsigned columns = xfp_chunk_columns(k);
	__m256i half[2][XFP_MAX_WORDS];
	struct shuffle_table table;
	struct words_scale pair;

	load_halves(k, at->packed, half);
	UNROLL
	for (unsigned i = 0; i < columns / BLOCK; i++) {
		__m256i word[4];

		UNROLL
		for (unsigned h = 0; h < 2; h++) {
			size_t group = run ? 2 * i + h : (at->column + (size_t)BLOCK * i + 32 * h) >> log2;

			if (mode == XFP_MATVEC_V2C || (mode == XFP_MATVEC_V2A && i % 2 == 0 && h == 0))
				load_table(k, call->tables + xfp_table_bytes(k) * at->byte[group], &table);
			if (mode == XFP_MATVEC_V2A && i % 2 == 0 && h == 0)
				pair = load_pair(call, row->stored.pair + 4 * group);
			look_up(k, mode == XFP_MATVEC_V2 ? &row->table : &table, slot(k, half[h], i), word + 2 * h);
		}
		add_words(tile, word, at->x + (size_t)BLOCK_WORDS * tile * i, mode == XFP_MATVEC_V2A ? &pair : NULL,
			  at->sum + (size_t)8 * tile * i, all);
	}
	at->packed += columns / 8 * k;
	at->byte += run ? columns / 32 : 0;
	at->x += columns / BLOCK * BLOCK_WORDS * tile;
	at->sum += columns / BLOCK * 8 * tile;
	at->column += columns;
}

/* Columns of all vectors that stay in the L1 cache while a batch of rows is multiplied by them; a multiple of the
 * chunks of every k. */
#define SEGMENT_COLUMNS(tile) (8192 / (tile))

INLINE void multiply_part(enum xfp_matvec_mode mode, unsigned k, unsigned tile, unsigned log2,
			  const struct shuffle_call *call, struct shuffle_row *row, size_t column, size_t end)
{
	struct words_place at = {
		.packed = row->stored.packed + column / 8 * k,
		.byte = row->stored.byte + (log2 == 5 ? column / 32 : 0),
		.x = call->x->words + column / BLOCK * BLOCK_WORDS * tile,
		.sum = call->x->sums + column / BLOCK * 8 * tile,
		.column = column,
	};
	__m256 all[XFP_MAX_BATCH];

	UNROLL
	for (unsigned m = 0; m < tile; m++)
		all[m] = row->all[m];
	while (at.column < end)
		chunk_words(mode, k, tile, log2, call, row, &at, all);
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		row->all[m] = all[m];
}

INLINE float total(__m256 a)
{
	__m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

	four = _mm_add_ps(four, _mm_movehl_ps(four, four));
	return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

INLINE void begin_row(enum xfp_matvec_mode mode, unsigned k, unsigned tile, const struct xfp_matvec *w, size_t r,
		      struct shuffle_row *row)
{
	row->step = mode == XFP_MATVEC_V2C ? xfp_tables_head(w->tables)->word_step * xfp_row_scale(w->row[r]) : 1;
	row->fit = mode != XFP_MATVEC_V2 ||
		   make_table(k, (const uint8_t *)w->code + (r << (k + 1)), &row->table, &row->step);
	for (size_t i = 0; mode != XFP_MATVEC_V2 && i < w->row_groups; i += 64)
		_mm_prefetch((const char *)row->stored.byte + i + GROUPS_AHEAD, _MM_HINT_T0);
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		row->all[m] = _mm256_setzero_ps();
}

INLINE void finish(unsigned tile, const struct shuffle_row *row, double factor, const struct xfp_matvec_x *x, bool add,
		   float *y, size_t stride)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		if (m < x->count) {
			float value = (float)(total(row->all[m]) * (factor * row->step));

			y[m * stride] = add ? y[m * stride] + value : value;
		}
}

static size_t columns_in_words(const struct xfp_matvec *w)
{
	bool too_small = w->group < (w->mode == XFP_MATVEC_V2C ? 5 : 7);

	return w->mode > XFP_MATVEC_V2 && too_small ? 0 : whole_columns(w);
}

INLINE void begin_call(enum xfp_matvec_mode mode, unsigned k, const struct xfp_matvec *w, struct shuffle_call *call)
{
	if (mode != XFP_MATVEC_V2) {
		call->tables = xfp_tables_shuffled(w->tables, k);
		call->pair = _mm_setr_ps(xfp_tables_head(w->tables)->word_step, 1, 0, 0);
	}
}

#define ROW struct shuffle_row
#define CALL struct shuffle_call
#define COLUMNS columns_in_words(w)
#define IN_FLOATS xfp_matvec_floats_avx2
#include "kernels/multiply/matvec_batches.h"

/* ---- instances --------------------------------------------------------------------------------- */

COPIES(multiply_batches)

static void multiply_rows(ARGUMENTS)
{
	static xfp_matvec_fn *const in_words[3][5][4] = { BY_K(v2), BY_K(v2a), BY_K(v2c) };
	size_t columns = columns_in_words(w);
	/* f32 is nearly as fast, and a row in two parts costs more than that. */
	bool in_floats = x->tile == 1 && w->k < 4 && (w->cols - columns) * 16 > w->cols;

	if (x->bytes_fit && columns && !in_floats)
		in_words[w->mode - XFP_MATVEC_V2][w->k - 2][__builtin_ctz(x->tile)](PASSED);
	else
		xfp_matvec_floats_avx2(PASSED);
}

const struct xfp_matvec_set xfp_matvec_avx2 = { multiply_rows, xfp_matvec_outliers_avx2, xfp_matvec_integers_avx2,
						xfp_panel_avx2, XFP_AVX2_PANEL_WIDTH };
