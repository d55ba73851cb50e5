/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grouped.h - code that v2a and v2c share: a library in shared memory, and rows divided into groups with one codebook
 * of the library each.
 *
 * Entries of the library are multiplied unchanged, since they are fp16; a group's scale is applied to the sum of the
 * group, in f32.
 */
#ifndef XFP_CUDA_GROUPED_H
#define XFP_CUDA_GROUPED_H

#include "kernels/cuda/codebook.h"
#include "kernels/cuda/tile.h"

XFP_DEVICE void copy_to_shared(uint8_t *to, uint64_t from, uint32_t bytes)
{
	for (uint32_t i = threadIdx.x * 4; i < bytes; i += XFP_CUDA_THREADS * 4)
		*reinterpret_cast<uint32_t *>(to + i) = __ldg(at<uint32_t>(from + i));
}

XFP_DEVICE uint32_t aligned16(uint32_t bytes)
{
	return (bytes + 15) & ~15u;
}

/* Indices and codebooks of the thread's two rows; `row` points to the thread's first lane. */
template <int K> struct two_rows {
	const uint8_t *row[2];
	uint32_t steps; /* steps per row */
	lanes<K> words[2];
	uint32_t index[2][lanes<K>::INDICES];
	codebook<K> book[2];

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p)
	{
		steps = (w.cols + 15) / 16;
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint64_t from = tile_row<lanes<K>::BYTES>(p.row[i], w.row_bytes) + lanes<K>::THREAD * p.t;

			row[i] = in_register(at<uint8_t>(m.index) + from);
		}
	}

	XFP_DEVICE void load(uint32_t chunk)
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
			words[i].load(row[i] + static_cast<uint64_t>(chunk) * (XFP_CUDA_TILE_ROWS * lanes<K>::BYTES));
	}

	/* Return whether the row ends before step v of a chunk. Loads of later steps are not started before the result
	 * is known, which bounds the registers in use; the test has a cost, so it runs once per part. At k = 5 five
	 * words need registers, too. */
	XFP_DEVICE bool past(uint32_t chunk, int v) const
	{
		return v && v % (K == 5 ? 4 : 8) == 0 && chunk * lanes<K>::VECTORS + v >= steps;
	}

	/* Call with steps in order; v must be a compile-time constant. */
	XFP_DEVICE fragment step(int v)
	{
		constexpr int part = lanes<K>::PART;
		fragment a;

#pragma unroll
		for (int i = 0; i < 2; i++) {
			if (v % part == 0)
				words[i].indices(v / part, index[i]);
			book[i].look_up(index[i], v % part, a.first[i], a.second[i]);
		}
		return a;
	}
};

#endif
