/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_rows.h - two_rows of grouped.h for wide.h: indices of a thread's two rows, a stage of four steps at a time.
 *
 * The stage within a chunk is a run-time value, so that the code of a stage exists once. The next chunk is loaded while
 * this one is multiplied.
 */
#ifndef XFP_CUDA_WIDE_ROWS_H
#define XFP_CUDA_WIDE_ROWS_H

#include "kernels/cuda/grouped.h"
#include "kernels/cuda/wide.h"

template <int K> struct stage_rows {
	static constexpr int STEPS = XFP_WIDE_STEPS;
	static constexpr uint32_t STAGES = lanes<K>::VECTORS / STEPS; /* stages per chunk */
	static constexpr uint32_t PART = lanes<K>::PART / STEPS;      /* stages per part */
	static constexpr int INDICES = lanes<K>::INDICES;
	static constexpr int WORDS = INDICES / static_cast<int>(PART); /* words of a stage's indices */

	const uint8_t *row[2];
	lanes<K> now[2], next[2];
	uint32_t index[2][INDICES];
	codebook<K> book[2];

	static XFP_DEVICE uint32_t stages(const xfp_cuda_weights &w)
	{
		return w.chunks * STAGES;
	}

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p)
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			row[i] = at<uint8_t>(m.index) + tile_row<lanes<K>::BYTES>(p.row[i], w.row_bytes) +
				 lanes<K>::THREAD * p.t;
			next[i].load(row[i]);
			/* Initialize, so that the compiler has values for the moves before the first load. */
#pragma unroll
			for (int j = 0; j < INDICES; j++)
				index[i][j] = 0;
		}
	}

	XFP_DEVICE void enter_stage(uint32_t stage, uint32_t stages)
	{
		uint32_t within = stage % STAGES;

		if (!within) {
#pragma unroll
			for (int i = 0; i < 2; i++) {
				now[i] = next[i];
				row[i] += XFP_CUDA_TILE_ROWS * lanes<K>::BYTES;
				if (stage + STAGES < stages)
					next[i].load(row[i]);
			}
		}
		if (within % PART) {
#pragma unroll
			for (int i = 0; i < 2; i++)
#pragma unroll
				for (int j = 0; j + WORDS < INDICES; j++)
					index[i][j] = index[i][j + WORDS];
			return;
		}
#pragma unroll
		for (uint32_t part = 0; part < STAGES / PART; part++) {
			if (within != part * PART)
				continue;
			now[0].indices(part, index[0]);
			now[1].indices(part, index[1]);
		}
	}

	/* Return the fragment of step v of the stage. */
	XFP_DEVICE fragment step(int v) const
	{
		fragment a;

#pragma unroll
		for (int i = 0; i < 2; i++)
			book[i].look_up(index[i], v, a.first[i], a.second[i]);
		return a;
	}
};

#endif
