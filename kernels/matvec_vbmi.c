/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_vbmi.c - the modes of matvec_bytes.h.
 */
#include "matvec_bytes.h"

/* ---- v2c --------------------------------------------------------------------------------------- */

/* Two groups of a slot in one table, of k up to 4: high and low bytes of the one, then of the other. */
#define OTHER_GROUP 0x20
#define LOW_BYTES 0x10

/* The columns of a slot of the last chunk that are of one group. */
struct part {
	size_t group;
	__mmask64 lanes;
};

/* Of the last chunk, the same for all rows. */
struct rest {
	unsigned lanes; /* 0: there is none */
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

INLINE void v2c_rest(unsigned k, unsigned tile, const uint8_t *tables, const struct rest *rest, const uint8_t *byte,
		     const uint8_t *packed, const int8_t *bytes, const float *step, struct sums *s)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i w[XFP_MAX_WORDS];

	load_words(k, packed, rest->lanes, w);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		__m512i index = _mm512_and_si512(slot(k, w, i), _mm512_set1_epi8(15));
		__m512i high = _mm512_setzero_si512(), low = high;

		for (const struct part *part = rest->part[i]; part->lanes; part++) {
			const __m128i *table = (const __m128i *)(tables + 32 * (size_t)byte[part->group]);

			high = _mm512_mask_permutexvar_epi8(high, part->lanes, index,
							    _mm512_castsi128_si512(_mm_loadu_si128(table)));
			low = _mm512_mask_permutexvar_epi8(low, part->lanes, index,
							   _mm512_castsi128_si512(_mm_loadu_si128(table + 1)));
		}
		if (i % BLOCK_SLOTS == 0)
			begin_block(tile, s);
		add_products(tile, high, low, bytes + (size_t)128 * tile * i, s);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			end_block(tile, step + (size_t)i / BLOCK_SLOTS * tile, s);
	}
}

INLINE void v2c_slot(unsigned tile, const uint8_t *tables, unsigned one, unsigned other, __m512i index,
		     const int8_t *bytes, struct sums *s)
{
	const __m512i groups = _mm512_set1_epi32(OTHER_GROUP << 16 | OTHER_GROUP << 24);
	__m256i first = _mm256_loadu_si256((const __m256i *)(tables + 32 * (size_t)one));
	__m512i table = _mm512_inserti64x4(_mm512_castsi256_si512(first),
					   _mm256_loadu_si256((const __m256i *)(tables + 32 * (size_t)other)), 1);

	/* index & 15 | groups */
	index = _mm512_ternarylogic_epi32(index, _mm512_set1_epi8(15), groups, 0xea);
	add_products(tile, _mm512_permutexvar_epi8(index, table),
		     _mm512_permutexvar_epi8(_mm512_or_si512(index, _mm512_set1_epi8(LOW_BYTES)), table), bytes, s);
}

/* Whole chunks, as many as make blocks; but the last of k = 4 may be half of one, which is scaled like the other.
 * `group` is 5, groups of 32 columns, or 0, longer ones. */
INLINE void v2c_chunks(unsigned k, unsigned tile, unsigned group, unsigned chunks, unsigned log2, const uint8_t *tables,
		       const uint8_t *byte, const uint8_t *packed, size_t column, const int8_t *bytes,
		       const float *step, struct sums *s)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	const uint8_t *of = byte + column / 32;
	__m512i word[XFP_MAX_WORDS];

	UNROLL
	for (unsigned i = 0; i < chunks * slots; i++) {
		size_t at = column + (size_t)64 * i;
		unsigned one = group ? of[2 * i] : byte[at >> log2];
		unsigned other = group ? of[2 * i + 1] : byte[(at + 32) >> log2];

		if (i % slots == 0)
			load_words(k, packed + (size_t)8 * k * i, 16, word);
		if (i % BLOCK_SLOTS == 0)
			begin_block(tile, s);
		v2c_slot(tile, tables, one, other, slot(k, word, i % slots), bytes + (size_t)128 * tile * i, s);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == chunks * slots)
			end_block(tile, step + (size_t)i / BLOCK_SLOTS * tile, s);
	}
}

INLINE void v2c_rows(unsigned k, unsigned tile, unsigned group, const struct xfp_matvec *w,
		     const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	size_t at_once = k == 4 ? 2 * chunk : chunk;
	const uint8_t *tables = xfp_tables_bytes(w->tables);
	struct rest rest;

	divide_rest(k, w->group, whole, w->cols, &rest);
	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *packed = w->index + r * w->row_bytes, *byte = w->byte + r * w->row_groups;
		struct sums s;
		size_t c = 0;

		UNROLL
		for (unsigned m = 0; m < tile; m++)
			s.all[m] = _mm512_setzero_ps();
		for (; c + at_once <= whole; c += at_once)
			v2c_chunks(k, tile, group, k == 4 ? 2 : 1, w->group, tables, byte, packed + c / 8 * k, c,
				   x->bytes + 2 * c * tile, x->step + c / 256 * tile, &s);
		if (k == 4 && c < whole)
			v2c_chunks(4, tile, group, 1, w->group, tables, byte, packed + c / 8 * k, c,
				   x->bytes + 2 * c * tile, x->step + c / 256 * tile, &s);
		if (rest.lanes)
			v2c_rest(k, tile, tables, &rest, byte, packed + whole / 8 * k, x->bytes + 2 * whole * tile,
				 x->step + whole / 256 * tile, &s);
		finish(tile, s.all, w->unit * xfp_tables_head(w->tables)->step * xfp_row_scale(w->row[r]), x, add,
		       y + (r - first), stride);
	}
}

/* ---- v2a --------------------------------------------------------------------------------------- */

/* Groups of 128 columns, and chunks that are whole. A group's weights are scale * entry + midpoint, so its share is
 * the scale times what the entries give, and the midpoint times the sum of x; sixteen groups' at a time. */
#define GROUP 128
#define SEGMENT 16

INLINE void v2a_rows(unsigned k, unsigned tile, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), groups = w->cols / GROUP;
	const uint8_t *tables = xfp_tables_bytes(w->tables);
	double entry_step = xfp_tables_head(w->tables)->step;
	unsigned slots = xfp_lane_columns(k) / 4;

	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *packed = w->index + r * w->row_bytes, *byte = w->byte + r * w->row_groups;
		const uint8_t *pair = (const uint8_t *)w->pair + r * w->row_groups * 4;
		const int8_t *bytes = x->bytes;
		__m512 offset[XFP_MAX_BATCH], middle[XFP_MAX_BATCH];
		struct sums s;

		UNROLL
		for (unsigned m = 0; m < tile; m++)
			s.all[m] = offset[m] = middle[m] = _mm512_setzero_ps();
		for (size_t from = 0; from < groups; from += SEGMENT) {
			size_t count = groups - from < SEGMENT ? groups - from : SEGMENT, end = (from + count) * GROUP;
			__m512i pairs = _mm512_maskz_loadu_epi32((__mmask16)((1u << count) - 1), pair + 4 * from);
			__m512 scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs));
			__m512 midpoint = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16)));
			float step[XFP_MAX_BATCH][SEGMENT];

			UNROLL
			for (unsigned m = 0; m < tile; m++) {
				size_t at = m * x->groups + from;

				_mm512_storeu_ps(step[m], _mm512_mul_ps(scale, _mm512_loadu_ps(x->group_step + at)));
				offset[m] = _mm512_fmadd_ps(scale, _mm512_loadu_ps(x->group_offset + at), offset[m]);
				middle[m] = _mm512_fmadd_ps(midpoint, _mm512_loadu_ps(x->group_sum + at), middle[m]);
			}
			for (size_t c = from * GROUP; c < end; c += chunk, packed += 4 * k * chunk / 32) {
				__m512i word[XFP_MAX_WORDS], high, low;

				load_words(k, packed, 16, word);
				UNROLL
				for (unsigned i = 0; i < slots; i++, bytes += 128 * tile) {
					size_t g = c / GROUP + i / 2;
					__m512i index = slot(k, word, i);

					if (i % 2 == 0) {
						const __m128i *table = (const __m128i *)(tables + 32 * (size_t)byte[g]);

						high = _mm512_broadcast_i32x4(_mm_loadu_si128(table));
						low = _mm512_broadcast_i32x4(_mm_loadu_si128(table + 1));
						begin_block(tile, &s);
					}
					add_products(tile, _mm512_permutexvar_epi8(index, high),
						     _mm512_permutexvar_epi8(index, low), bytes, &s);
					if (i % 2) {
						float at[XFP_MAX_BATCH];

						UNROLL
						for (unsigned m = 0; m < tile; m++)
							at[m] = step[m][g - from];
						end_block(tile, at, &s);
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

/* ---- a copy for each --------------------------------------------------------------------------- */

#define ARGUMENTS                                                                                                \
	const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, \
		size_t stride
#define PASSED w, x, first, rows, add, y, stride

#define COPY(k, tile)                          \
	static void v2_##k##_##tile(ARGUMENTS) \
	{                                      \
		v2_rows(k, tile, PASSED);      \
	}
#define COPY_V2C(k, tile)                             \
	static void v2c_##k##_##tile(ARGUMENTS)       \
	{                                             \
		if (w->group == 5)                    \
			v2c_rows(k, tile, 5, PASSED); \
		else                                  \
			v2c_rows(k, tile, 0, PASSED); \
	}
#define COPIES(k) COPY(k, 1) COPY(k, 2) COPY(k, 4) COPY(k, 8)
COPIES(2)
COPIES(3)
COPIES(4)
COPIES(5)
COPIES(6)
#define COPY_V2A(k, tile)                       \
	static void v2a_##k##_##tile(ARGUMENTS) \
	{                                       \
		v2a_rows(k, tile, PASSED);      \
	}
#define COPIES_V2A(k) COPY_V2A(k, 1) COPY_V2A(k, 2) COPY_V2A(k, 4) COPY_V2A(k, 8)
COPIES_V2A(2)
COPIES_V2A(3)
COPIES_V2A(4)
#define COPIES_V2C(k) COPY_V2C(k, 1) COPY_V2C(k, 2) COPY_V2C(k, 4) COPY_V2C(k, 8)
COPIES_V2C(2)
COPIES_V2C(3)
COPIES_V2C(4)

#define BY_TILE(name)                                  \
	{                                              \
		name##_1, name##_2, name##_4, name##_8 \
	}

static void multiply_rows(ARGUMENTS)
{
	static xfp_matvec_fn *const v2[5][4] = { BY_TILE(v2_2), BY_TILE(v2_3), BY_TILE(v2_4), BY_TILE(v2_5),
						 BY_TILE(v2_6) };
	static xfp_matvec_fn *const v2c[3][4] = { BY_TILE(v2c_2), BY_TILE(v2c_3), BY_TILE(v2c_4) };
	static xfp_matvec_fn *const v2a[3][4] = { BY_TILE(v2a_2), BY_TILE(v2a_3), BY_TILE(v2a_4) };
	int tile = __builtin_ctz(x->tile);

	if (w->mode == XFP_MATVEC_V2 && x->bytes_fit)
		v2[w->k - 2][tile](PASSED);
	else if (w->mode == XFP_MATVEC_V2C && x->bytes_fit && w->group >= 5 && xfp_tables_head(w->tables)->bytes_fit)
		v2c[w->k - 2][tile](PASSED);
	else if (w->mode == XFP_MATVEC_V2A && x->bytes_fit && x->groups && w->group == 7 &&
		 xfp_tables_head(w->tables)->bytes_fit)
		v2a[w->k - 2][tile](PASSED);
	else
		xfp_matvec_avx512.rows(PASSED);
}

const struct xfp_matvec_set xfp_matvec_vbmi = { "vbmi", multiply_rows, xfp_outlier_dot_avx512 };
