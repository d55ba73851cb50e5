/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_index.c - convert rows of indices to and from lane order, 64 columns at a time: one slot of all bytes of sixteen
 * lanes.
 *
 * The intermediate form of a word of the lanes is 64 bytes, byte b of lane l at 16 b + l. All 64 indices of a slot then
 * need the same operations: eight at a time in 64-bit integers, or in vectors if the compiler supports them.
 */
#include "kernels/common/lane_index.h"

#include <string.h>

#define ROW_ALIGN 16u
#define SLOT 64 /* columns */
#define MAX_COLUMNS (32 * XFP_CHUNK_LANES)
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* A piece of a slot: `bits` bits of byte `word`, from bit `shift` on. Pieces fill the index from the low end. */
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

/* Words of the lanes in the intermediate form. */
struct lanes {
	uint64_t word[XFP_MAX_WORDS][SLOT / 8];
};

/* Functions that are inlined for each k, so that the table of pieces is constant in their loops. */
#define CONSTANT_K static inline __attribute__((always_inline))

/* ---- slots ------------------------------------------------------------------------------------- */

CONSTANT_K void join_slots(unsigned k, const uint8_t *index, struct lanes *lanes)
{
	memset(lanes, 0, xfp_lane_words(k) * sizeof *lanes->word);
#pragma GCC unroll 8
	for (unsigned i = 0; i < xfp_lane_columns(k) / 4; i++) {
		uint64_t slot[SLOT / 8];
		unsigned done = 0;

		memcpy(slot, index + (size_t)SLOT * i, SLOT);
#pragma GCC unroll 3
		for (const struct piece *p = pieces[k][i]; done < k; done += p++->bits) {
			uint64_t mask = EACH((1u << p->bits) - 1), *to = lanes->word[p->word];
			unsigned shift = p->shift;

			for (int j = 0; j < SLOT / 8; j++)
				to[j] |= (slot[j] >> done & mask) << shift;
		}
	}
}

static void split_slots(unsigned k, const struct lanes *lanes, uint8_t *index)
{
	for (unsigned i = 0; i < xfp_lane_columns(k) / 4; i++) {
		uint64_t slot[SLOT / 8] = { 0 };
		unsigned done = 0;

		for (const struct piece *p = pieces[k][i]; done < k; done += p++->bits) {
			uint64_t mask = EACH((1u << p->bits) - 1);
			const uint64_t *from = lanes->word[p->word];
			unsigned shift = p->shift;

			for (int j = 0; j < SLOT / 8; j++)
				slot[j] |= (from[j] >> shift & mask) << done;
		}
		memcpy(index + (size_t)SLOT * i, slot, SLOT);
	}
}

/* ---- bytes of words ---------------------------------------------------------------------------- */

static inline void store_words(const struct lanes *lanes, unsigned words, unsigned count, uint8_t *out)
{
	for (unsigned w = 0; w < words; w++, out += (size_t)4 * count) {
		const uint8_t *byte = (const uint8_t *)lanes->word[w];

		for (unsigned l = 0; l < count; l++) {
			uint32_t word = byte[l] | (uint32_t)byte[16 + l] << 8 | (uint32_t)byte[32 + l] << 16 |
					(uint32_t)byte[48 + l] << 24;

			memcpy(out + (size_t)4 * l, &word, sizeof word);
		}
	}
}

static inline void load_words(const uint8_t *packed, unsigned words, unsigned count, struct lanes *lanes)
{
	for (unsigned w = 0; w < words; w++, packed += (size_t)4 * count) {
		uint8_t *byte = (uint8_t *)lanes->word[w];

		for (unsigned l = 0; l < count; l++)
			for (unsigned b = 0; b < 4; b++)
				byte[16 * b + l] = packed[4 * l + b];
	}
}

/* ---- rows -------------------------------------------------------------------------------------- */

CONSTANT_K void pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	size_t chunk = xfp_chunk_columns(k), used = (cols + 31) / 32 * 4 * k;
	unsigned words = xfp_lane_words(k);
	struct lanes lanes;

	memset(out + used, 0, (ROW_ALIGN - used % ROW_ALIGN) % ROW_ALIGN);
	for (; cols >= chunk; cols -= chunk, index += chunk, out += chunk / 8 * k) {
		join_slots(k, index, &lanes);
		store_words(&lanes, words, XFP_CHUNK_LANES, out);
	}
	if (cols) {
		unsigned count = xfp_chunk_lanes(k, cols);
		uint8_t last[MAX_COLUMNS] = { 0 };

		for (size_t c = 0, v = 0; c < cols; c += count, v += XFP_CHUNK_LANES)
			memcpy(last + v, index + c, cols - c < count ? cols - c : count);
		join_slots(k, last, &lanes);
		store_words(&lanes, words, count, out);
	}
}

void xfp_lane_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	switch (k) {
	case 2:
		pack(2, index, cols, out);
		break;
	case 3:
		pack(3, index, cols, out);
		break;
	case 4:
		pack(4, index, cols, out);
		break;
	case 5:
		pack(5, index, cols, out);
		break;
	default:
		pack(6, index, cols, out);
	}
}

void xfp_lane_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index)
{
	size_t chunk = xfp_chunk_columns(k);
	unsigned words = xfp_lane_words(k);
	struct lanes lanes;

	for (; cols >= chunk; cols -= chunk, index += chunk, packed += chunk / 8 * k) {
		load_words(packed, words, XFP_CHUNK_LANES, &lanes);
		split_slots(k, &lanes, index);
	}
	if (cols) {
		unsigned count = xfp_chunk_lanes(k, cols);
		uint8_t last[MAX_COLUMNS];

		memset(&lanes, 0, sizeof lanes);
		load_words(packed, words, count, &lanes);
		split_slots(k, &lanes, last);
		for (size_t c = 0, v = 0; c < cols; c += count, v += XFP_CHUNK_LANES)
			memcpy(index + c, last + v, cols - c < count ? cols - c : count);
	}
}
