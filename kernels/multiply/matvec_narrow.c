/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_narrow.c - rows of v2a and v2c times one or two vectors with 8-bit entries, if the library allows it
 * (matvec_tables.h): 15 instructions for 64 weights of v2c instead of 21 with 16-bit entries.
 *
 * A register contains the tables of four groups of 32 columns. Their addresses are computed for many columns at once.
 */
#include "kernels/multiply/matvec_bytes.h"
#include "kernels/multiply/matvec_instances.h"

/* Rows that share the loads of the vectors. With a sanitizer, compiling that much unrolled code takes minutes. */
#ifdef __SANITIZE_ADDRESS__
#define MAX_ROWS 2
#else
#define MAX_ROWS 4
#endif
#define GROUPS_AHEAD 1024
#define TABLES 128 /* whose offsets are computed at once */

struct narrow_row {
	const uint8_t *packed, *byte; /* at the next column; at the first column */
	struct byte_sums sums;
	uint16_t table[TABLES]; /* offsets, as if groups had 32 columns */
};

/* Set the offsets of the tables of groups [first, first + count). */
INLINE void set_offsets(unsigned log2, size_t first, size_t count, struct narrow_row *row)
{
	if (log2 == 5)
		for (size_t i = 0; i < count; i += 32) {
			__mmask32 here = count - i < 32 ? (1u << (count - i)) - 1 : ~0u;
			__m512i number = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(here, row->byte + first + i));

			_mm512_storeu_si512(row->table + i, _mm512_slli_epi16(number, 4));
		}
	else
		for (size_t i = 0; i < count; i++)
			row->table[i] = (uint16_t)(row->byte[(first + i) >> (log2 - 5)] * XFP_NARROW_BYTES);
}

INLINE __m128i table_at(const uint8_t *tables, size_t offset)
{
	return _mm_loadu_si128((const __m128i *)(tables + offset));
}

INLINE __m512i four_tables(const uint8_t *tables, const uint16_t *offset)
{
	__m256i two = _mm256_inserti128_si256(_mm256_castsi128_si256(table_at(tables, offset[0])),
					      table_at(tables, offset[1]), 1);
	__m512i three = _mm512_inserti32x4(_mm512_castsi256_si512(two), table_at(tables, offset[2]), 2);

	return _mm512_inserti32x4(three, table_at(tables, offset[3]), 3);
}

/* Look up slot i of two groups: the first two tables if i is even, the others if it is odd. */
INLINE __m512i look_up_narrow(unsigned i, __m512i index, __m512i tables)
{
	const __m512i first = _mm512_set1_epi32(0x10100000), others = _mm512_set1_epi32(0x30302020);

	/* (index & 15) | table */
	index = _mm512_ternarylogic_epi32(index, _mm512_set1_epi8(15), i % 2 ? others : first, 0xea);
	return _mm512_permutexvar_epi8(index, tables);
}

/* Process whole chunks that form blocks; the last chunk of k = 4 may be half a block, which is scaled like the others.
 * The tables begin at that of the first column. */
INLINE void narrow_chunks(unsigned k, unsigned tile, unsigned at_once, unsigned chunks, const uint8_t *tables,
			  size_t table, const int8_t *bytes, const float *step, size_t ahead, struct narrow_row *row)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i word[MAX_ROWS][XFP_MAX_WORDS], four[MAX_ROWS];

	UNROLL
	for (unsigned i = 0; i < chunks * slots; i++) {
		UNROLL
		for (unsigned r = 0; r < at_once; r++) {
			if (i % slots == 0)
				load_words(k, row[r].packed + (size_t)8 * k * i, 16, ahead, word[r]);
			if (i % 2 == 0)
				four[r] = four_tables(tables, row[r].table + table + 2 * i);
			if (i % BLOCK_SLOTS == 0)
				begin_block(tile, &row[r].sums);
			add_narrow(tile, look_up_narrow(i, slot(k, word[r], i % slots), four[r]),
				   bytes + (size_t)128 * tile * i, &row[r].sums);
			if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == chunks * slots)
				end_block(tile, true, step + (size_t)i / BLOCK_SLOTS * tile, &row[r].sums);
		}
	}
	UNROLL
	for (unsigned r = 0; r < at_once; r++)
		row[r].packed += (size_t)8 * k * chunks * slots;
}

/* Process the last chunk, which has fewer lanes. */
INLINE void narrow_rest(unsigned k, unsigned tile, const uint8_t *tables, const struct rest *rest, const int8_t *bytes,
			const float *step, struct narrow_row *row)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i word[XFP_MAX_WORDS];

	load_words(k, row->packed, rest->lanes, PREFETCH_AHEAD, word);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		__m512i index = slot(k, word, i), weight = _mm512_setzero_si512();

		for (const struct part *part = rest->part[i]; part->lanes; part++)
			weight = _mm512_mask_permutexvar_epi8(
				weight, part->lanes, index,
				load_repeated(k, tables + XFP_NARROW_BYTES * row->byte[part->group]));
		if (i % BLOCK_SLOTS == 0)
			begin_block(tile, &row->sums);
		add_narrow(tile, weight, bytes + (size_t)128 * tile * i, &row->sums);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			end_block(tile, true, step + (size_t)i / BLOCK_SLOTS * tile, &row->sums);
	}
}

/* Process up to `at_once` rows; if there are fewer, the last one is repeated. */
INLINE void v2c_some(unsigned k, unsigned tile, unsigned at_once, const struct xfp_matvec *w,
		     const struct xfp_matvec_x *x, const struct rest *rest, size_t first, size_t rows, bool add,
		     float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	size_t step = k == 4 ? 2 * chunk : chunk, others = (at_once - 1) * w->row_bytes;
	const uint8_t *tables = xfp_tables_narrow(w->tables, k);
	struct narrow_row row[MAX_ROWS];

	UNROLL
	for (unsigned r = 0; r < at_once; r++) {
		size_t number = first + (r < rows ? r : rows - 1);

		row[r].packed = w->index + number * w->row_bytes;
		row[r].byte = w->byte + number * w->row_groups;
		UNROLL
		for (unsigned m = 0; m < tile; m++)
			row[r].sums.all[m] = _mm512_setzero_ps();
		for (size_t i = 0; i < w->row_groups; i += 64)
			_mm_prefetch((const char *)row[r].byte + i + GROUPS_AHEAD, _MM_HINT_T0);
	}
	for (size_t from = 0, end; from < whole; from = end) {
		size_t c = from;

		end = whole - from < (size_t)32 * TABLES ? whole : from + (size_t)32 * TABLES;
		UNROLL
		for (unsigned r = 0; r < at_once; r++)
			set_offsets(w->group, from / 32, (end - from) / 32, &row[r]);
		for (; c + step <= end; c += step) {
			/* After the end of a row come the other rows of the batch. */
			size_t ahead = PREFETCH_AHEAD + (c / 8 * k + PREFETCH_AHEAD < w->row_bytes ? 0 : others);

			narrow_chunks(k, tile, at_once, k == 4 ? 2 : 1, tables, (c - from) / 32,
				      x->bytes + 2 * c * tile, x->step + c / 256 * tile, ahead, row);
		}
		if (k == 4 && c < end)
			narrow_chunks(4, tile, at_once, 1, tables, (c - from) / 32, x->bytes + 2 * c * tile,
				      x->step + c / 256 * tile, PREFETCH_AHEAD + others, row);
	}
	UNROLL
	for (unsigned r = 0; r < at_once; r++)
		if (r < rows) {
			double scale =
				(double)xfp_tables_head(w->tables)->narrow_step * xfp_row_scale(w->row[first + r]);

			if (rest->lanes)
				narrow_rest(k, tile, tables, rest, x->bytes + 2 * whole * tile,
					    x->step + whole / 256 * tile, &row[r]);
			finish(tile, row[r].sums.all, w->unit * scale, x->narrow_offset, x, add, y + r, stride);
		}
}

INLINE void v2c_rows(unsigned k, unsigned tile, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	unsigned at_once = tile == 1 ? MAX_ROWS : MAX_ROWS / 2;
	struct rest rest;

	divide_rest(k, w->group, whole, w->cols, &rest);
	for (size_t r = 0; r < rows; r += at_once)
		v2c_some(k, tile, at_once, w, x, &rest, first + r, rows - r, add, y + r, stride);
}

/* ---- instances --------------------------------------------------------------------------------- */

#define COPY(k, tile)                            \
	static void v2a_##k##_##tile(ARGUMENTS)  \
	{                                        \
		v2a_rows(k, tile, true, PASSED); \
	}                                        \
	static void v2c_##k##_##tile(ARGUMENTS)  \
	{                                        \
		v2c_rows(k, tile, PASSED);       \
	}
#define COPIES(k) COPY(k, 1) COPY(k, 2)
COPIES(2)
COPIES(3)
COPIES(4)

#define BY_K(name)                                                      \
	{                                                               \
		{ name##_2_1, name##_2_2 }, { name##_3_1, name##_3_2 }, \
		{                                                       \
			name##_4_1, name##_4_2                          \
		}                                                       \
	}

void xfp_matvec_narrow(ARGUMENTS)
{
	static xfp_matvec_fn *const narrow[2][3][2] = { BY_K(v2a), BY_K(v2c) };

	narrow[w->mode - XFP_MATVEC_V2A][w->k - 2][x->tile - 1](PASSED);
}
