/* SPDX-License-Identifier: Apache-2.0 */
#include "index.h"

#include <string.h>

#define ROW_ALIGN 16u

const uint8_t xfp_index_slots[7] = { 0, 0, 16, 10, 8, 3, 5 };
const uint8_t xfp_index_word_bytes[7] = { 0, 0, 4, 4, 4, 2, 4 };

void xfp_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out)
{
	size_t slots = xfp_index_slots[k], bytes = xfp_index_word_bytes[k], used = 0;

	for (size_t c = 0; c < cols; c += slots, used += bytes) {
		size_t count = cols - c < slots ? cols - c : slots;
		uint32_t word = 0;

		for (size_t i = 0; i < count; i++)
			word |= (uint32_t)index[c + i] << (i * k);
		for (size_t i = 0; i < bytes; i++)
			out[used + i] = (uint8_t)(word >> (8 * i));
	}
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
