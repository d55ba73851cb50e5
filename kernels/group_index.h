/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_index.h - k-bit indices in the planes of the library modes (schemas/bundle_layout.h:
 * xfp_group_index_bytes).
 *
 * Blocks of 32 columns, each a plane of the low 4 or 2 bits and, where k is 3, 5 or 6, one of the bits above.
 * Columns past the end of a row and the row's padding are zero.
 */
#ifndef XFP_GROUP_INDEX_H
#define XFP_GROUP_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define XFP_INDEX_BLOCK 32 /* columns */

/* k = 2 ... 6. `out` receives xfp_group_index_bytes(cols, k) bytes. Every index is below 2^k. */
void xfp_group_index_pack(unsigned k, const uint8_t *index, size_t cols, uint8_t *out);
void xfp_group_index_unpack(unsigned k, const uint8_t *packed, size_t cols, uint8_t *index);

#endif
