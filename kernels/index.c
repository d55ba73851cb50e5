/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

#include <string.h>

#define ROW_ALIGN 16u

const uint8_t xfp_index_slots[7] = { 0, 0, 16, 10, 8, 3, 5 };
const uint8_t xfp_index_word_bytes[7] = { 0, 0, 4, 4, 4, 2, 4 };

/* Little-endian, as every host of xfp is (base/bytes.h). */
static inline void store_word(uint8_t *out, uint32_t word, size_t bytes)
{
	memcpy(out, &word, bytes);
}

/* Eight indices, a byte each, as 8 k bits: pairs, fours, then all move together. k is 2, 3 or 4. */
static inline uint32_t gather_eight(unsigned k, const uint8_t *index)
{
	uint64_t x;

	memcpy(&x, index, sizeof x);
	x = (x | x >> (8 - k)) & (0x0001000100010001 * ((1u << (2 * k)) - 1));
	x = (x | x >> (16 - 2 * k)) & (0x0000000100000001 * ((1ull << (4 * k)) - 1));
	return (uint32_t)(x | x >> (32 - 4 * k));
}

static inline uint32_t pack_word(unsigned k, const uint8_t *index, size_t count)
{
	uint32_t word = 0;

	for (size_t i = 0; i < count; i++)
		word |= (uint32_t)index[i] << (i * k);
	return word;
}

/* Whole words of 32 bits; returns how many indices they hold. */
static size_t pack_words(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	size_t c = 0;

	for (; k == 2 && c + 16 <= cols; c += 16, out += 4)
		store_word(out, gather_eight(2, index + c) | gather_eight(2, index + c + 8) << 16, 4);
	for (; k == 3 && c + 10 <= cols; c += 10, out += 4)
		store_word(out, gather_eight(3, index + c) | pack_word(3, index + c + 8, 2) << 24, 4);
	for (; k == 4 && c + 8 <= cols; c += 8, out += 4)
		store_word(out, gather_eight(4, index + c), 4);
	return c;
}

void xfp_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	size_t slots = xfp_index_slots[k], bytes = xfp_index_word_bytes[k];
	size_t c = pack_words(k, index, cols, out), used = c / slots * bytes;

	for (; c < cols; c += slots, used += bytes)
		store_word(out + used, pack_word(k, index + c, cols - c < slots ? cols - c : slots), bytes);
	memset(out + used, 0, (ROW_ALIGN - used % ROW_ALIGN) % ROW_ALIGN);
}

void xfp_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index)
{
	size_t slots = xfp_index_slots[k], bytes = xfp_index_word_bytes[k];
	uint32_t mask = (1u << k) - 1;

	for (size_t c = 0; c < cols; c += slots, packed += bytes) {
		size_t count = cols - c < slots ? cols - c : slots;
		uint32_t word = 0;

		for (size_t i = 0; i < bytes; i++)
			word |= (uint32_t)packed[i] << (8 * i);
		for (size_t i = 0; i < count; i++)
			index[c + i] = (uint8_t)(word >> (i * k) & mask);
	}
}
