/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_index.c - planes of indices, eight columns at a time, a byte each in a 64-bit word.
 */
#include "group_index.h"

#include <string.h>

#define BLOCK XFP_INDEX_BLOCK
#define ROW_ALIGN 16u
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Little-endian, as every host of xfp is (base/bytes.h). */
static inline uint64_t load(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof word);
	return word;
}

static inline void store(uint8_t *p, uint64_t word)
{
	memcpy(p, &word, sizeof word);
}

/* ---- a plane of 4 bits: 16 bytes ---------------------------------------------------------------- */

static inline uint8_t *pack_four(const uint8_t *index, uint8_t *out)
{
	for (int i = 0; i < 16; i += 8)
		store(out + i, (load(index + i) & EACH(15)) | (load(index + 16 + i) & EACH(15)) << 4);
	return out + 16;
}

static inline const uint8_t *unpack_four(const uint8_t *plane, uint8_t *index)
{
	for (int i = 0; i < 16; i += 8) {
		uint64_t both = load(plane + i);

		store(index + i, both & EACH(15));
		store(index + 16 + i, both >> 4 & EACH(15));
	}
	return plane + 16;
}

/* ---- a plane of 2 bits: 8 bytes ----------------------------------------------------------------- */

/* The nibbles in the even bytes of a word, one behind the other, and back. */
static inline uint64_t gather_nibbles(uint64_t x)
{
	x &= UINT64_C(0x000f000f000f000f);
	x = (x | x >> 12) & UINT64_C(0x000000ff000000ff);
	return (x | x >> 24) & 0xffff;
}

static inline uint64_t spread_nibbles(uint64_t x)
{
	x = (x | x << 24) & UINT64_C(0x000000ff000000ff);
	return (x | x << 12) & UINT64_C(0x000f000f000f000f);
}

static inline uint8_t *pack_two(const uint8_t *index, unsigned shift, uint8_t *out)
{
	uint64_t plane = 0;

	for (unsigned half = 0; half < 2; half++) {
		uint64_t pair = (load(index + 8 * half) >> shift & EACH(3)) |
				(load(index + 16 + 8 * half) >> shift & EACH(3)) << 2;

		plane |= (gather_nibbles(pair) | gather_nibbles(pair >> 8) << 32) << (16 * half);
	}
	store(out, plane);
	return out + 8;
}

static inline const uint8_t *unpack_two(const uint8_t *plane, unsigned shift, uint8_t *index)
{
	uint64_t words = load(plane);

	for (unsigned half = 0; half < 2; half++) {
		uint64_t even = spread_nibbles(words >> (16 * half) & 0xffff);
		uint64_t pair = even | spread_nibbles(words >> (32 + 16 * half) & 0xffff) << 8;
		uint64_t low = (pair & EACH(3)) << shift, high = (pair >> 2 & EACH(3)) << shift;

		store(index + 8 * half, shift ? load(index + 8 * half) | low : low);
		store(index + 16 + 8 * half, shift ? load(index + 16 + 8 * half) | high : high);
	}
	return plane + 8;
}

/* ---- a plane of 1 bit: 4 bytes ------------------------------------------------------------------ */

static inline void pack_one(const uint8_t *index, unsigned shift, uint8_t *out)
{
	/* The product moves the lowest bit of byte i to bit 56 + i; no two bits of it meet. */
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)((load(index + 8 * i) >> shift & EACH(1)) * UINT64_C(0x0102040810204080) >> 56);
}

static inline void unpack_one(const uint8_t *plane, unsigned shift, uint8_t *index)
{
	for (int i = 0; i < 4; i++) {
		uint64_t bits = EACH(plane[i]) & UINT64_C(0x8040201008040201);

		store(index + 8 * i, load(index + 8 * i) | ((bits + EACH(0x7f)) >> 7 & EACH(1)) << shift);
	}
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static inline void pack_block(unsigned k, const uint8_t *index, uint8_t *out)
{
	out = k >= 4 ? pack_four(index, out) : pack_two(index, 0, out);
	if (k == 6)
		pack_two(index, 4, out);
	else if (k & 1)
		pack_one(index, k - 1, out);
}

static inline void unpack_block(unsigned k, const uint8_t *packed, uint8_t *index)
{
	packed = k >= 4 ? unpack_four(packed, index) : unpack_two(packed, 0, index);
	if (k == 6)
		unpack_two(packed, 4, index);
	else if (k & 1)
		unpack_one(packed, k - 1, index);
}

static inline void pack_row(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	for (; cols >= BLOCK; cols -= BLOCK, index += BLOCK, out += (size_t)4 * k)
		pack_block(k, index, out);
	if (cols) {
		uint8_t last[BLOCK] = { 0 };

		memcpy(last, index, cols);
		pack_block(k, last, out);
	}
}

static inline void unpack_row(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index)
{
	for (; cols >= BLOCK; cols -= BLOCK, index += BLOCK, packed += (size_t)4 * k)
		unpack_block(k, packed, index);
	if (cols) {
		uint8_t last[BLOCK];

		unpack_block(k, packed, last);
		memcpy(index, last, cols);
	}
}

/* Once for each k, as a constant. */
#define FOR_EACH_K(row, ...)         \
	switch (k) {                 \
	case 2:                      \
		row(2, __VA_ARGS__); \
		break;               \
	case 3:                      \
		row(3, __VA_ARGS__); \
		break;               \
	case 4:                      \
		row(4, __VA_ARGS__); \
		break;               \
	case 5:                      \
		row(5, __VA_ARGS__); \
		break;               \
	default:                     \
		row(6, __VA_ARGS__); \
	}

void xfp_group_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	size_t used = (cols + BLOCK - 1) / BLOCK * 4 * k;

	FOR_EACH_K(pack_row, index, cols, out);
	memset(out + used, 0, (ROW_ALIGN - used % ROW_ALIGN) % ROW_ALIGN);
}

void xfp_group_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index)
{
	FOR_EACH_K(unpack_row, packed, cols, index);
}
