/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_bits.h - the position of each bit of a row of indices: the table of kernels/common/lane_index.h bit by bit, and
 * that of kernels/cuda/abi.h, in device order.
 */
#ifndef XFP_LANE_BITS_H
#define XFP_LANE_BITS_H

#include <stddef.h>

/* By k and slot: the bits of an index, lowest first, each as the word of the lane and the position in a byte. */
static const char *const lane_slots[7][8] = {
	[2] = { "A0A1", "A2A3", "A4A5", "A6A7" },
	[3] = { "A0A1A2", "A3A4A5", "B0B1B2", "B3B4B5", "C0C1C2", "C3C4C5", "A6A7C6", "B6B7C7" },
	[4] = { "A0A1A2A3", "A4A5A6A7" },
	[5] = { "A0A1A2A3A4", "B0B1B2B3B4", "C0C1C2C3C4", "D0D1D2D3D4", "E0E1E2E3E4", "A5A6A7D5D6", "B5B6B7E5E6",
		"C5C6C7D7E7" },
	[6] = { "A0A1A2A3A4A5", "B0B1B2B3B4B5", "C0C1C2C3C4C5", "A6A7B6B7C6C7" },
};

/* The position of bit `bit` of column c in a row of `cols` indices, counted from the lowest bit of the first byte. */
static inline size_t lane_bit(unsigned k, size_t cols, size_t c, unsigned bit)
{
	static const size_t slots[] = { 0, 0, 4, 8, 2, 8, 4 };
	size_t columns = 4 * slots[k] * 16, chunk = c / columns, left = cols - chunk * columns, lanes = 16, byte;
	const char *place;

	if (left < columns)
		lanes = (left + 31) / 32 * 32 / (4 * slots[k]);
	c -= chunk * columns;
	place = lane_slots[k][c / lanes / 4] + (size_t)2 * bit;
	byte = 4 * ((size_t)(place[0] - 'A') * lanes + c % lanes) + c / lanes % 4;
	return (chunk * columns * k / 8 + byte) * 8 + (size_t)(place[1] - '0');
}

/* The same in device order, up to k = 4, for a row of complete chunks. */
static inline size_t device_bit(unsigned k, size_t c, unsigned bit)
{
	size_t columns = k == 4 ? 128 : k == 2 ? 256 : 512, share = columns / 128, chunk = c / columns;
	size_t group = c % columns / 32, j = group % share, line = 0, place = bit;

	if (k == 2)
		place = 2 * j + bit;
	if (k == 3) {
		line = j < 3 ? j : bit;
		place = j < 3 ? bit : 3;
	}
	return (chunk * columns / 8 * k + line * 64 + group / share * 16 + c % 16 / 4 * 4) * 8 + c % 32 / 16 * 16 +
	       c % 4 * 4 + place;
}

#endif
