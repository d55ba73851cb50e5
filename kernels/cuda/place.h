/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - the position of a thread in a tile of sixteen rows.
 */
#ifndef XFP_CUDA_PLACE_H
#define XFP_CUDA_PLACE_H

#include "kernels/cuda/device.h"

/* Return the offset from the first index of a matrix to row `row` of a tile's first chunk; chunks of a row are
 * XFP_CUDA_TILE_ROWS * BYTES apart. */
template <uint32_t BYTES> XFP_DEVICE uint64_t tile_row(uint32_t row, uint32_t row_bytes)
{
	return static_cast<uint64_t>(row / XFP_CUDA_TILE_ROWS * XFP_CUDA_TILE_ROWS) * row_bytes +
	       row % XFP_CUDA_TILE_ROWS * BYTES;
}

/* Position of a thread: see struct fragment. */
struct place {
	unsigned warp, lane, t, g;
	uint32_t first_row;
	uint32_t row[2]; /* the thread's rows; past the end, the last row of the matrix */

	/* Position among sixteen rows, `tile` times sixteen from the first. */
	XFP_DEVICE place(uint32_t rows, uint32_t tile)
	{
		warp = threadIdx.x / 32;
		lane = threadIdx.x % 32;
		t = lane % 4;
		g = lane / 4;
		first_row = tile * XFP_CUDA_TILE_ROWS;
		row[0] = min(first_row + g, rows - 1);
		row[1] = min(first_row + g + 8, rows - 1);
	}
};

#endif
