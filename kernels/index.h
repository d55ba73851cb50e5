/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - k-bit indices in the paper's words (schemas/bundle_layout.h: xfp_v2_row_bytes).
 *
 * Words are little-endian, the first index in the lowest bits; unused high bits and the row's
 * padding are zero.
 */
#ifndef XFP_INDEX_H
#define XFP_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* How many indices share a word, and the bytes of a word, by k = 2 ... 6. */
extern const uint8_t xfp_index_slots[7], xfp_index_word_bytes[7];

/* `out` receives xfp_v2_row_bytes(cols, k) bytes. Every index is below 2^k. */
void xfp_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out);
void xfp_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index);

#endif
