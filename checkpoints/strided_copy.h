/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strided_copy.h - copy elements from a tile. Private to checkpoints/.
 */
#ifndef XFP_STRIDED_COPY_H
#define XFP_STRIDED_COPY_H

#include <stdint.h>
#include <string.h>

/* `size` is a constant in each call, so that copying is one move. */
static inline void xfp_strided_copy_sized(unsigned char *restrict dst, uint64_t dst_step,
					  const unsigned char *restrict src, uint64_t src_i, uint64_t src_j,
					  uint64_t rows, uint64_t cols, size_t size)
{
	for (uint64_t i = 0; i < rows; i++) {
		for (uint64_t j = 0; j < cols; j++)
			memcpy(dst + (i * dst_step + j) * size, src + (i * src_i + j * src_j) * size, size);
	}
}

/* dst[i * dst_step + j] = src[i * src_i + j * src_j], steps in elements of 1, 2, 4 or 8 bytes. */
static inline void xfp_strided_copy(unsigned char *dst, uint64_t dst_step, const unsigned char *src, uint64_t src_i,
				    uint64_t src_j, uint64_t rows, uint64_t cols, size_t size)
{
	switch (size) {
	case 1:
		xfp_strided_copy_sized(dst, dst_step, src, src_i, src_j, rows, cols, 1);
		break;
	case 2:
		xfp_strided_copy_sized(dst, dst_step, src, src_i, src_j, rows, cols, 2);
		break;
	case 4:
		xfp_strided_copy_sized(dst, dst_step, src, src_i, src_j, rows, cols, 4);
		break;
	default:
		xfp_strided_copy_sized(dst, dst_step, src, src_i, src_j, rows, cols, 8);
		break;
	}
}

#endif
