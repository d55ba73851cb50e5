/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_index.c - the layout as it is written down; what is fast is in matvec_rows.h.
 */
#include "lane_index.h"

#include <string.h>

#define ROW_ALIGN 16u

/* A piece of a slot: `bits` bits of byte `word`, from `shift` on; pieces go from the low end of the index up. */
struct piece {
	uint8_t word, shift, bits;
};

static const struct piece pieces[7][8][3] = {
	[2] = { { { 0, 0, 2 } }, { { 0, 2, 2 } }, { { 0, 4, 2 } }, { { 0, 6, 2 } } },
	[3] = { { { 0, 0, 3 } },
		{ { 0, 3, 3 } },
		{ { 1, 0, 3 } },
		{ { 1, 3, 3 } },
		{ { 2, 0, 3 } },
		{ { 2, 3, 3 } },
		{ { 0, 6, 2 }, { 2, 6, 1 } },
		{ { 1, 6, 2 }, { 2, 7, 1 } } },
	[4] = { { { 0, 0, 4 } }, { { 0, 4, 4 } } },
	[5] = { { { 0, 0, 5 } },
		{ { 1, 0, 5 } },
		{ { 2, 0, 5 } },
		{ { 3, 0, 5 } },
		{ { 4, 0, 5 } },
		{ { 0, 5, 3 }, { 3, 5, 2 } },
		{ { 1, 5, 3 }, { 4, 5, 2 } },
		{ { 2, 5, 3 }, { 3, 7, 1 }, { 4, 7, 1 } } },
	[6] = { { { 0, 0, 6 } }, { { 1, 0, 6 } }, { { 2, 0, 6 } }, { { 0, 6, 2 }, { 1, 6, 2 }, { 2, 6, 2 } } },
};

/* Byte `word` that column c of a chunk of `lanes` lanes has a piece in. */
static inline size_t place(unsigned lanes, size_t c, unsigned word)
{
	size_t vector = c / lanes, lane = c % lanes;

	return 4 * (word * lanes + lane) + vector % 4;
}

void xfp_lane_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	size_t used = (cols + 31) / 32 * 4 * k;

	memset(out, 0, (used + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN);
	while (cols) {
		unsigned lanes = xfp_chunk_lanes(k, cols);
		size_t count = cols < xfp_chunk_columns(k) ? cols : xfp_chunk_columns(k);

		for (size_t c = 0; c < count; c++) {
			unsigned value = index[c];

			for (const struct piece *p = pieces[k][c / lanes / 4]; value; value >>= p++->bits)
				out[place(lanes, c, p->word)] |= (uint8_t)((value & ((1u << p->bits) - 1)) << p->shift);
		}
		index += count;
		cols -= count;
		out += (size_t)4 * lanes * xfp_lane_words(k);
	}
}

void xfp_lane_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index)
{
	while (cols) {
		unsigned lanes = xfp_chunk_lanes(k, cols);
		size_t count = cols < xfp_chunk_columns(k) ? cols : xfp_chunk_columns(k);

		for (size_t c = 0; c < count; c++) {
			const struct piece *p = pieces[k][c / lanes / 4];
			unsigned value = 0;

			for (unsigned done = 0; done < k; done += p++->bits)
				value |= (packed[place(lanes, c, p->word)] >> p->shift & ((1u << p->bits) - 1)) << done;
			index[c] = (uint8_t)value;
		}
		index += count;
		cols -= count;
		packed += (size_t)4 * lanes * xfp_lane_words(k);
	}
}
