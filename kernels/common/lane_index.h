/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_index.h - the order of k-bit indices in a bundle, for the kernels of matvec.h: dense, in 32-bit lanes.
 *
 * A row is divided into chunks of sixteen lanes. A lane is a column of `words` little-endian uint32:
 *
 *   k   words   columns per lane   per chunk          The last chunk of a row has as many lanes L as the remaining
 *   2     1            16              256            columns need, rounded up to 32 columns; every other chunk
 *   3     3            32              512            has L = 16. Word w of lane l is at byte 4 (w L + l) of the
 *   4     1             8              128            chunk.
 *   5     5            32              512
 *   6     3            16              256
 *
 * Byte b of a lane's words, taken as the bytes A, B, C ... in order, contains slots i = 0, 1 ...; slot i of byte b is
 * column L (4 i + b) + l of the chunk. The table shows the bits of each slot; A3 means bit 3 and the bits above it:
 *
 *   k   slots                         and from the remaining bits
 *   2   A0 A2 A4 A6
 *   3   A0 A3 B0 B3 C0 C3             A6 A7 C6;  B6 B7 C7
 *   4   A0 A4
 *   5   A0 B0 C0 D0 E0                A5 A6 A7 D5 D6;  B5 B6 B7 E5 E6;  C5 C6 C7 D7 E7
 *   6   A0 B0 C0                      A6 A7 B6 B7 C6 C7
 *
 * So one shift, or two and a merge, moves a slot to the low end of every 32-bit or 8-bit lane. The bits above it are
 * ignored by a look-up table that repeats its entries. Sixteen 32-bit lanes are consecutive columns; 64 8-bit lanes are
 * the four times sixteen columns that a dot product of bytes sums.
 *
 * Columns past the end of a row and the row's padding are zero. A row needs xfp_index_row_bytes(cols, k) bytes.
 */
#ifndef XFP_LANE_INDEX_H
#define XFP_LANE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define XFP_CHUNK_LANES 16
#define XFP_MAX_WORDS 5

static inline unsigned xfp_lane_words(unsigned k)
{
	return k == 5 ? 5 : k % 3 ? 1 : 3;
}

static inline unsigned xfp_lane_columns(unsigned k)
{
	return xfp_lane_words(k) * 32 / k;
}

static inline unsigned xfp_chunk_columns(unsigned k)
{
	return XFP_CHUNK_LANES * xfp_lane_columns(k);
}

/* Return the lanes of a chunk that begins `left` columns before the end of the row. */
static inline unsigned xfp_chunk_lanes(unsigned k, size_t left)
{
	return left >= xfp_chunk_columns(k) ? XFP_CHUNK_LANES : (unsigned)((left + 31) / 32 * 32 / xfp_lane_columns(k));
}

/* Pack a row of indices, each below 2^k, k = 2 ... 6, into `out`, including padding. */
void xfp_lane_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out);
void xfp_lane_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index);

#endif
