/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_v2c.h - rows of v2c times one or two vectors, on the bytes of matvec_bytes.h: with 16-bit entries, or
 * (`narrow`) with 8-bit entries.
 *
 * A register contains the tables of two groups of 32 columns, or of four with 8-bit entries, whose addresses are
 * computed for many columns at once.
 */
#ifndef XFP_MATVEC_V2C_H
#define XFP_MATVEC_V2C_H

#include "kernels/multiply/matvec_bytes.h"
#include "kernels/multiply/matvec_instances.h"

/* Rows that share the loads of the vectors: as many as their sums leave registers for. With a sanitizer, compiling that
 * much unrolled code takes minutes. */
#ifdef __SANITIZE_ADDRESS__
#define MAX_ROWS 2
#else
#define MAX_ROWS 4
#endif
#define GROUPS_AHEAD 1024
#define TABLES 128 /* whose offsets are computed at once */

struct v2c_row {
	const uint8_t *packed, *byte; /* at the next column; at the first column */
	struct byte_sums sums;
	uint16_t table[TABLES]; /* narrow: offsets, as if groups had 32 columns */
};

/* Values that are the same for all rows. */
struct v2c_call {
	const uint8_t *tables;
	unsigned log2; /* of the columns per group */
	const struct xfp_matvec_x *x;
	struct rest rest;
};

/* Set the offsets of the tables of groups [first, first + count). */
INLINE void set_offsets(unsigned log2, size_t first, size_t count, struct v2c_row *row)
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

/* Return the bytes of the groups of some columns, as if groups had 32 columns. */
INLINE uint64_t groups_of(unsigned group, unsigned log2, const uint8_t *byte, size_t column, unsigned count)
{
	uint64_t of = 0;

	if (group)
		memcpy(&of, byte + column / 32, count);
	else
		for (unsigned i = 0; i < count; i++)
			of |= (uint64_t)byte[(column + (size_t)32 * i) >> log2] << 8 * i;
	return of;
}

/* Process whole chunks that form blocks; the last chunk of k = 4 may be half a block, which is scaled like the others.
 * `group` is 5 for groups of 32 columns, or 0 for longer ones. */
INLINE void v2c_chunks(unsigned k, unsigned tile, bool narrow, unsigned group, unsigned at_once, unsigned chunks,
		       const struct v2c_call *call, size_t column, size_t ahead, struct v2c_row *row)
{
	unsigned slots = xfp_lane_columns(k) / 4, size = xfp_table_bytes(k);
	const int8_t *bytes = call->x->bytes + 2 * column * tile;
	const float *step = call->x->step + column / 256 * tile;
	__m512i word[MAX_ROWS][XFP_MAX_WORDS], four[MAX_ROWS], high, low;
	uint64_t of[MAX_ROWS];

	UNROLL
	for (unsigned i = 0; i < chunks * slots; i++) {
		UNROLL
		for (unsigned r = 0; r < at_once; r++) {
			if (i % slots == 0)
				load_words(k, row[r].packed + (size_t)8 * k * i, 16, ahead, word[r]);
			if (i % BLOCK_SLOTS == 0)
				begin_block(tile, &row[r].sums);
			if (narrow) {
				if (i % 2 == 0)
					four[r] =
						four_tables(call->tables, row[r].table + column / 32 % TABLES + 2 * i);
				high = look_up_narrow(i, slot(k, word[r], i % slots), four[r]);
				add_narrow(tile, high, bytes + (size_t)128 * tile * i, &row[r].sums);
			} else {
				/* In a register, split by shifts, because loads are the bottleneck. */
				if (i % BLOCK_SLOTS == 0)
					of[r] = groups_of(group, call->log2, row[r].byte, column + (size_t)64 * i,
							  chunks * slots < BLOCK_SLOTS ? 4 : 8);
				look_up_two(k, call->tables + size * (of[r] & 255),
					    call->tables + size * (of[r] >> 8 & 255), slot(k, word[r], i % slots),
					    &high, &low);
				of[r] >>= 16;
				add_products(tile, high, low, bytes + (size_t)128 * tile * i, &row[r].sums);
			}
			if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == chunks * slots)
				end_block(tile, narrow, step + (size_t)i / BLOCK_SLOTS * tile, &row[r].sums);
		}
	}
	UNROLL
	for (unsigned r = 0; r < at_once; r++)
		row[r].packed += (size_t)8 * k * chunks * slots;
}

/* Look up a slot of the last chunk in 8-bit entries, in all its groups; zero past the last column. */
INLINE __m512i look_up_narrow_rest(unsigned k, const uint8_t *tables, const struct part *part, const uint8_t *byte,
				   __m512i index)
{
	__m512i weight = _mm512_setzero_si512();

	for (; part->lanes; part++)
		weight = _mm512_mask_permutexvar_epi8(weight, part->lanes, index,
						      load_repeated(k, tables + XFP_NARROW_BYTES * byte[part->group]));
	return weight;
}

/* Process the last chunk, which has fewer lanes, from `column` on. */
INLINE void v2c_rest(unsigned k, unsigned tile, bool narrow, const struct v2c_call *call, size_t column,
		     struct v2c_row *row)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	const int8_t *bytes = call->x->bytes + 2 * column * tile;
	const float *step = call->x->step + column / 256 * tile;
	__m512i word[XFP_MAX_WORDS], high, low;

	load_words(k, row->packed, call->rest.lanes, PREFETCH_AHEAD, word);
	UNROLL
	for (unsigned i = 0; i < slots; i++, bytes += 128 * tile) {
		const struct part *part = call->rest.part[i];
		__m512i index = slot(k, word, i);

		if (i % BLOCK_SLOTS == 0)
			begin_block(tile, &row->sums);
		if (narrow) {
			add_narrow(tile, look_up_narrow_rest(k, call->tables, part, row->byte, index), bytes,
				   &row->sums);
		} else {
			look_up_rest(k, call->tables, part, row->byte, index, &high, &low);
			add_products(tile, high, low, bytes, &row->sums);
		}
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			end_block(tile, narrow, step + (size_t)i / BLOCK_SLOTS * tile, &row->sums);
	}
}

/* Process the whole chunks of columns [from, end). */
INLINE void v2c_part(unsigned k, unsigned tile, bool narrow, unsigned group, unsigned at_once,
		     const struct v2c_call *call, const struct xfp_matvec *w, size_t from, size_t end,
		     struct v2c_row *row)
{
	size_t chunk = xfp_chunk_columns(k), step = k == 4 ? 2 * chunk : chunk, others = (at_once - 1) * w->row_bytes;
	size_t c = from;

	for (; c + step <= end; c += step) {
		/* After the end of a row come the other rows of the batch. */
		size_t ahead = PREFETCH_AHEAD + (c / 8 * k + PREFETCH_AHEAD < w->row_bytes ? 0 : others);

		v2c_chunks(k, tile, narrow, group, at_once, k == 4 ? 2 : 1, call, c, ahead, row);
	}
	if (k == 4 && c < end)
		v2c_chunks(4, tile, narrow, group, at_once, 1, call, c, PREFETCH_AHEAD + others, row);
}

/* Process up to `at_once` rows; if there are fewer, the last one is repeated. */
INLINE void v2c_some(unsigned k, unsigned tile, bool narrow, unsigned group, unsigned at_once,
		     const struct v2c_call *call, ARGUMENTS)
{
	const struct xfp_tables_head *head = xfp_tables_head(w->tables);
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	struct v2c_row row[MAX_ROWS];

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
	for (size_t from = 0, end; narrow && from < whole; from = end) {
		end = whole - from < (size_t)32 * TABLES ? whole : from + (size_t)32 * TABLES;
		UNROLL
		for (unsigned r = 0; r < at_once; r++)
			set_offsets(w->group, from / 32, (end - from) / 32, &row[r]);
		v2c_part(k, tile, narrow, group, at_once, call, w, from, end, row);
	}
	if (!narrow)
		v2c_part(k, tile, narrow, group, at_once, call, w, 0, whole, row);
	UNROLL
	for (unsigned r = 0; r < at_once; r++)
		if (r < rows) {
			double scale =
				(narrow ? head->narrow_step : (double)head->step) * xfp_row_scale(w->row[first + r]);

			if (call->rest.lanes)
				v2c_rest(k, tile, narrow, call, whole, &row[r]);
			finish(tile, row[r].sums.all, w->unit * scale, narrow ? x->narrow_offset : x->offset, x, add,
			       y + r, stride);
		}
}

INLINE void v2c_rows(unsigned k, unsigned tile, bool narrow, unsigned group, ARGUMENTS)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	unsigned at_once = !group ? 1 : tile == 1 ? MAX_ROWS : MAX_ROWS / 2;
	struct v2c_call call = { .x = x, .log2 = w->group };

	call.tables = narrow ? xfp_tables_narrow(w->tables, k) : xfp_tables_bytes(w->tables, k);
	divide_rest(k, w->group, whole, w->cols, &call.rest);
	for (size_t r = 0; r < rows; r += at_once)
		v2c_some(k, tile, narrow, group, at_once, &call, w, x, first + r, rows - r, add, y + r, stride);
}

#endif
