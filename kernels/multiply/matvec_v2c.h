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

/* Values that are the same for all rows. */
struct v2c_call {
	const uint8_t *tables;
	const struct xfp_matvec_x *x;
	struct rest rest;
	__m512i repeat; /* for groups of 32 columns, which of the bytes of longer groups is theirs */
};

/* Rows that are multiplied at once: pointers to the next column of the first row. Those of the other rows are at fixed
 * distances, so that the inner loop needs few registers for addresses. */
struct v2c_rows {
	const uint8_t *packed;
	size_t apart[MAX_ROWS]; /* bytes from `packed` to the indices of each row */
	const uint16_t *number; /* from set_numbers, TABLES apart */
	const int8_t *bytes;
	const float *step;
};

/* Set the numbers of the tables of columns [from, end), as if groups had 32 columns: bytes, or (narrow) 16-bit offsets.
 * `from` is a multiple of 2048. */
INLINE void set_numbers(bool narrow, unsigned log2, __m512i repeat, const uint8_t *byte, size_t from, size_t end,
			uint16_t *number)
{
	for (; from < end; from += 2048, number += narrow ? 64 : 32) {
		size_t count = (end - from + ((size_t)1 << log2) - 1) >> log2;
		__mmask64 here = count < 64 ? ((uint64_t)1 << count) - 1 : ~UINT64_C(0);
		__m512i some = _mm512_permutexvar_epi8(repeat, _mm512_maskz_loadu_epi8(here, byte + (from >> log2)));

		if (narrow) {
			__m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(some));
			__m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(some, 1));

			_mm512_storeu_si512(number, _mm512_slli_epi16(low, 4));
			_mm512_storeu_si512(number + 32, _mm512_slli_epi16(high, 4));
		} else {
			_mm512_storeu_si512(number, some);
		}
	}
}

INLINE __m128i table_at(const uint8_t *tables, size_t offset)
{
	return _mm_loadu_si128((const __m128i *)(tables + offset));
}

INLINE __m512i four_tables(const uint8_t *tables, const uint16_t *offset)
{
	__m512i all = _mm512_castsi128_si512(table_at(tables, offset[0]));

	all = _mm512_mask_broadcast_i32x4(all, 0x00f0, table_at(tables, offset[1]));
	all = _mm512_mask_broadcast_i32x4(all, 0x0f00, table_at(tables, offset[2]));
	return _mm512_mask_broadcast_i32x4(all, 0xf000, table_at(tables, offset[3]));
}

/* Look up slot i of two groups: the first two tables if i is even, the others if it is odd. */
INLINE __m512i look_up_narrow(unsigned i, __m512i index, __m512i tables)
{
	const __m512i first = _mm512_set1_epi32(0x10100000), others = _mm512_set1_epi32(0x30302020);

	/* (index & 15) | table */
	index = _mm512_ternarylogic_epi32(index, _mm512_set1_epi8(15), i % 2 ? others : first, 0xea);
	return _mm512_permutexvar_epi8(index, tables);
}

/* Process `chunks` whole chunks that form blocks; the last chunk of k = 4 may be half a block, which is scaled like the
 * others. */
INLINE void v2c_chunks(unsigned k, unsigned tile, bool narrow, unsigned at_once, unsigned chunks, const uint8_t *tables,
		       size_t ahead, struct v2c_rows *row, struct byte_sums *sums)
{
	unsigned slots = xfp_lane_columns(k) / 4, size = xfp_table_bytes(k);
	__m512i word[MAX_ROWS][XFP_MAX_WORDS], four[MAX_ROWS], high, low;
	uint64_t of[MAX_ROWS];

	UNROLL
	for (unsigned i = 0; i < chunks * slots; i++) {
		UNROLL
		for (unsigned r = 0; r < at_once; r++) {
			const uint16_t *number = row->number + (size_t)r * TABLES + (narrow ? 2 : 1) * i;
			const int8_t *bytes = row->bytes + (size_t)128 * tile * i;

			if (i % slots == 0)
				load_words(k, row->packed + row->apart[r] + (size_t)8 * k * i, 16, ahead, word[r]);
			if (i % BLOCK_SLOTS == 0)
				begin_block(tile, &sums[r]);
			if (narrow) {
				if (i % 2 == 0)
					four[r] = four_tables(tables, number);
				high = look_up_narrow(i, slot(k, word[r], i % slots), four[r]);
				add_narrow(tile, high, bytes, &sums[r]);
			} else {
				/* In a register, split by shifts, because loads are the bottleneck. */
				if (i % BLOCK_SLOTS == 0)
					memcpy(&of[r], number, sizeof of[r]);
				look_up_two(k, tables + size * (of[r] & 255), tables + size * (of[r] >> 8 & 255),
					    slot(k, word[r], i % slots), &high, &low);
				of[r] >>= 16;
				add_products(tile, high, low, bytes, &sums[r]);
			}
			if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == chunks * slots)
				end_block(tile, narrow, row->step + (size_t)i / BLOCK_SLOTS * tile, &sums[r]);
		}
	}
	row->packed += (size_t)8 * k * chunks * slots;
	row->number += (narrow ? 2 : 1) * chunks * slots;
	row->bytes += (size_t)128 * tile * chunks * slots;
	row->step += chunks * slots / BLOCK_SLOTS * tile;
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
		     const uint8_t *packed, const uint8_t *byte, struct byte_sums *sums)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	const int8_t *bytes = call->x->bytes + 2 * column * tile;
	const float *step = call->x->step + column / 256 * tile;
	__m512i word[XFP_MAX_WORDS], high, low;

	load_words(k, packed, call->rest.lanes, PREFETCH_AHEAD, word);
	UNROLL
	for (unsigned i = 0; i < slots; i++, bytes += 128 * tile) {
		const struct part *part = call->rest.part[i];
		__m512i index = slot(k, word, i);

		if (i % BLOCK_SLOTS == 0)
			begin_block(tile, sums);
		if (narrow) {
			add_narrow(tile, look_up_narrow_rest(k, call->tables, part, byte, index), bytes, sums);
		} else {
			look_up_rest(k, call->tables, part, byte, index, &high, &low);
			add_products(tile, high, low, bytes, sums);
		}
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			end_block(tile, narrow, step + (size_t)i / BLOCK_SLOTS * tile, sums);
	}
}

/* Process up to `at_once` rows; if there are fewer, the last one is repeated. */
INLINE void v2c_some(unsigned k, unsigned tile, bool narrow, unsigned at_once, const struct v2c_call *call, ARGUMENTS)
{
	const struct xfp_tables_head *head = xfp_tables_head(w->tables);
	const size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk, step = k == 4 ? 2 * chunk : chunk;
	struct v2c_rows row = { .packed = w->index + first * w->row_bytes, .bytes = x->bytes, .step = x->step };
	const uint8_t *byte[MAX_ROWS];
	struct byte_sums sums[MAX_ROWS];
	uint16_t number[MAX_ROWS][TABLES];

	UNROLL
	for (unsigned r = 0; r < at_once; r++) {
		size_t place = r < rows ? r : rows - 1;

		row.apart[r] = place * w->row_bytes;
		byte[r] = w->byte + (first + place) * w->row_groups;
		UNROLL
		for (unsigned m = 0; m < tile; m++)
			sums[r].all[m] = _mm512_setzero_ps();
		for (size_t i = 0; i < w->row_groups; i += 64)
			_mm_prefetch((const char *)byte[r] + i + GROUPS_AHEAD, _MM_HINT_T0);
	}
	for (size_t from = 0, end; from < whole; from = end) {
		/* After the end of a row come the other rows of the batch. */
		size_t others = from / 8 * k + PREFETCH_AHEAD < w->row_bytes ? 0 : (at_once - 1) * w->row_bytes;
		size_t ahead = PREFETCH_AHEAD + others, c = from;

		end = whole - from < (size_t)32 * TABLES ? whole : from + (size_t)32 * TABLES;
		UNROLL
		for (unsigned r = 0; r < at_once; r++)
			set_numbers(narrow, w->group, call->repeat, byte[r], from, end, number[r]);
		row.number = number[0];
		for (; c + step <= end; c += step)
			v2c_chunks(k, tile, narrow, at_once, k == 4 ? 2 : 1, call->tables, ahead, &row, sums);
		if (k == 4 && c < end)
			v2c_chunks(4, tile, narrow, at_once, 1, call->tables, ahead, &row, sums);
	}
	UNROLL
	for (unsigned r = 0; r < at_once; r++)
		if (r < rows) {
			double scale =
				(narrow ? head->narrow_step : (double)head->step) * xfp_row_scale(w->row[first + r]);

			if (call->rest.lanes)
				v2c_rest(k, tile, narrow, call, whole, row.packed + row.apart[r], byte[r], &sums[r]);
			finish(tile, sums[r].all, w->unit * scale, narrow ? x->narrow_offset : x->offset, x, add, y + r,
			       stride);
		}
}

INLINE void v2c_rows(unsigned k, unsigned tile, bool narrow, ARGUMENTS)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	unsigned at_once = tile == 1 ? MAX_ROWS : MAX_ROWS / 2;
	struct v2c_call call = { .x = x };

	call.tables = narrow ? xfp_tables_narrow(w->tables, k) : xfp_tables_bytes(w->tables, k);
	for (unsigned i = 0; i < 64; i++)
		((uint8_t *)&call.repeat)[i] = (uint8_t)(i >> (w->group - 5));
	divide_rest(k, w->group, whole, w->cols, &call.rest);
	for (size_t r = 0; r < rows; r += at_once)
		v2c_some(k, tile, narrow, at_once, &call, w, x, first + r, rows - r, add, y + r, stride);
}

#endif
