/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_index.h - k-bit indices as a bundle has them and the kernels of matvec.h want them: dense, in lanes of 32 bits.
 *
 * A row is cut into chunks of sixteen lanes, a lane being a column of `words` little-endian uint32:
 *
 *   k   words   columns of a lane   of a chunk        The last chunk of a row has as many lanes L as the columns
 *   2     1            16              256            that are left need, rounded up to 32 columns; every other
 *   3     3            32              512            has L = 16. Word w of lane l is at byte 4 (w L + l) of the
 *   4     1             8              128            chunk.
 *   5     5            32              512
 *   6     3            16              256
 *
 * Byte b of a lane's words, the bytes A, B, C ... of its words one after the other, holds slots i = 0, 1 ...; slot i
 * of byte b is column L (4 i + b) + l of the chunk. Where the bits of a slot are, A3 meaning bit 3 and those above:
 *
 *   k   slots                         then, of what is left over
 *   2   A0 A2 A4 A6
 *   3   A0 A3 B0 B3 C0 C3             A6 A7 C6;  B6 B7 C7
 *   4   A0 A4
 *   5   A0 B0 C0 D0 E0                A5 A6 A7 D5 D6;  B5 B6 B7 E5 E6;  C5 C6 C7 D7 E7
 *   6   A0 B0 C0                      A6 A7 B6 B7 C6 C7
 *
 * So one shift, or two and a merge, has a slot at the low end of every lane, of 32 bits or of 8; what is above it
 * is for a table that repeats to ignore. Sixteen lanes of 32 bits are consecutive columns, and 64 of 8 bits are the
 * four times sixteen that a dot product of bytes adds up.
 *
 * Columns past the end of a row and the row's padding are zero. The row takes xfp_index_row_bytes(cols, k) bytes.
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

/* Lanes of a chunk that begins with `left` columns to go. */
static inline unsigned xfp_chunk_lanes(unsigned k, size_t left)
{
	return left >= xfp_chunk_columns(k) ? XFP_CHUNK_LANES : (unsigned)((left + 31) / 32 * 32 / xfp_lane_columns(k));
}

/* k = 2 ... 6. `out` receives the row, padding included. Every index is below 2^k. */
void xfp_lane_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out);
void xfp_lane_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index);

#endif
