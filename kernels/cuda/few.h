/* SPDX-License-Identifier: Apache-2.0 */
/*
 * few.h - kernels for one to four vectors, on the integer path (stream-K).
 *
 * All chunks of a matrix form one sequence, tile after tile, which is also their order in memory. It is cut into runs
 * of equal cost, one for each warp that the device can hold: a worker. Finishing a tile costs as much as a few
 * chunks, and counts as such. If a tile is split between workers, they add their sums in the workspace, and the last
 * one to arrive stores the results.
 *
 * Sums of integers are exact. Therefore results do not depend on the runs, and runs may depend on the device. What is
 * not exact (outliers, and the conversion of sums to results) is computed once per row, in a fixed order.
 *
 * If an element of a vector is not finite, all results of this vector are NaN.
 */
#ifndef XFP_CUDA_FEW_H
#define XFP_CUDA_FEW_H

#include "kernels/cuda/tile.h"

/* A worker's run. */
struct chunk_run {
	uint32_t chunks, cost; /* of a tile: its chunks, and its cost in chunks */
	uint32_t tile, chunk;  /* the next chunk: its tile, and its number within */
	uint32_t left;         /* chunks of the run from there on */

	XFP_DEVICE chunk_run(const xfp_cuda_multiply &call, uint32_t tile_end)
	{
		uint32_t tiles = (call.weights.rows + XFP_CUDA_TILE_ROWS - 1) / XFP_CUDA_TILE_ROWS;
		uint32_t number = blockIdx.x * XFP_CUDA_WARPS + threadIdx.x / 32;

		chunks = call.weights.chunks;
		cost = chunks + tile_end;

		uint32_t begin = min(number * call.run, tiles * cost), end = min(begin + call.run, tiles * cost);

		tile = begin / cost;
		chunk = min(begin % cost, chunks);
		left = end / cost * chunks + min(end % cost, chunks) - (tile * chunks + chunk);
		/* A run that begins in the cost of finishing a tile has nothing of that tile. */
		if (chunk == chunks) {
			tile++;
			chunk = 0;
		}
	}

	/* Find the first and the last worker with chunks of the tile. */
	XFP_DEVICE void sharing(uint32_t run, uint32_t &first, uint32_t &last) const
	{
		first = tile * cost / run;
		last = (tile * cost + chunks - 1) / run;
	}
};

/* Sums of a tile: a lane has those of row lane / 2, vectors lane % 2 and lane % 2 + 2. */
template <int PAIRS> struct tile_sums {
	static constexpr uint32_t ALL = (1u << PAIRS) - 1; /* mask of all sums */
	int64_t of[PAIRS];

	/* Gathers the warp's fragments through `shared`: int64 [rows][XFP_CUDA_INTEGER_VECTORS], private to the
	 * warp. */
	template <int K> XFP_DEVICE void gather(const integer_sums<PAIRS> &total, const place &p, int64_t *shared)
	{
		store_sums<K, PAIRS>(total, p, shared);
		__syncwarp();
#pragma unroll
		for (int n = 0; n < PAIRS; n++)
			of[n] = shared[p.lane / 2 * XFP_CUDA_INTEGER_VECTORS + 2 * n + p.lane % 2];
		__syncwarp();
	}
};

/*
 * Adds the sums of all workers of a split tile. An atomic carries a sum and, in its low bits, counts the workers, so
 * no fence is needed. Returns a mask of the sums for which this lane arrived last: those are complete now, and their
 * memory is zero again.
 */
template <int PAIRS>
XFP_DEVICE uint32_t add_workers(const xfp_cuda_multiply &call, const chunk_run &own, uint32_t lane,
				tile_sums<PAIRS> &sums)
{
	uint32_t first, last, complete = 0;

	own.sharing(call.run, first, last);

	int64_t *shared = reinterpret_cast<int64_t *>(call.workspace + XFP_CUDA_SUMS_OFFSET +
						      static_cast<uint64_t>(first) * XFP_CUDA_SHARED_SUMS);
#pragma unroll
	for (int n = 0; n < PAIRS; n++) {
		int64_t *mine = shared + n * 32 + lane;

		if (2 * n + lane % 2 >= call.count)
			break;

		int64_t given = sums.of[n] * (1 << XFP_CUDA_COUNT_BITS) + 1, before = add_atomic(mine, given);

		if ((before & ((1 << XFP_CUDA_COUNT_BITS) - 1)) == last - first) {
			/* `before` counts the other workers, 254 at most; one more could carry into the sum. */
			sums.of[n] += before >> XFP_CUDA_COUNT_BITS;
			*mine = 0;
			complete |= 1u << n;
		}
	}
	return complete;
}

/* The product of a row's outliers and a vector: eight sums, then their sum, since the error of one long sum of floats
 * grows with its length. */
XFP_DEVICE float outliers_of_row(const xfp_cuda_multiply &call, uint32_t row, uint32_t v)
{
	const xfp_cuda_matrix &m = call.matrix;
	const float *x = at<float>(call.vectors.natural) + static_cast<uint64_t>(v) * call.vectors.cols;
	uint32_t i = __ldg(at<uint32_t>(m.pointer) + row), end = __ldg(at<uint32_t>(m.pointer) + row + 1);
	float sum[8] = { 0, 0, 0, 0, 0, 0, 0, 0 };

	for (; i < end; i += 8)
#pragma unroll
		for (uint32_t j = 0; j < 8; j++)
			if (i + j < end)
				sum[j] = __fmaf_rn(half_to_float(__ldg(at<uint16_t>(m.residual) + i + j)),
						   x[__ldg(at<uint32_t>(m.column) + i + j)], sum[j]);
#pragma unroll
	for (int step = 4; step; step /= 2)
#pragma unroll
		for (int j = 0; j < step; j++)
			sum[j] = __fadd_rn(sum[j], sum[j + step]);
	return sum[0];
}

/* Converts the sums of a tile to results. The constructor starts the loads, which take as long as several chunks. */
template <int PAIRS, class Books> struct tile_results {
	uint32_t row;
	xfp_cuda_pair pair;
	float factor;
	xfp_cuda_input_scale x[PAIRS];

	XFP_DEVICE tile_results(const xfp_cuda_multiply &call, uint32_t tile, uint32_t lane)
	{
		row = min(tile * XFP_CUDA_TILE_ROWS + lane / 2, call.weights.rows);
		if (row < call.weights.rows) {
			pair = Books::meaning(call.matrix, row);
			factor = Books::row_factor(call.matrix, row);
		}
#pragma unroll
		for (uint32_t n = 0; n < PAIRS; n++)
			x[n] = at<xfp_cuda_input_scale>(
				call.vectors.whole)[call.first + min(2 * n + lane % 2, call.count - 1)];
	}

	/* Stores the results of the sums in the mask `complete`. */
	XFP_DEVICE void store(const xfp_cuda_multiply &call, uint32_t lane, const tile_sums<PAIRS> &sums,
			      uint32_t complete) const
	{
		if (row >= call.weights.rows)
			return;
#pragma unroll
		for (int n = 0; n < PAIRS; n++) {
			uint32_t v = 2 * n + lane % 2;

			if (v >= call.count || !(complete >> n & 1))
				continue;

			float outlier = call.matrix.pointer ? outliers_of_row(call, row, call.first + v) : 0;
			double value = integer_meaning(sums.of[n], pair, x[n], true);

			value = __fma_rn(value, factor, outlier) * call.matrix.unit;
			store_result(call.result, (call.first + v) * call.result.stride + row,
				     x[n].finite ? static_cast<float>(value) : __uint_as_float(XFP_CUDA_NAN));
		}
	}
};

template <int K, int VECTORS, class Books> XFP_DEVICE void multiply_few(const xfp_cuda_multiply &call, uint8_t *shared)
{
	constexpr int PAIRS = (VECTORS + 1) / 2;
	const place p(call.weights.rows, 0);
	uint8_t *memory = shared + Books::TABLES;
	int64_t *own_sums = reinterpret_cast<int64_t *>(memory + XFP_CUDA_RING_BYTES(K, VECTORS, Books::NAMES)) +
			    p.warp * (XFP_CUDA_TILE_ROWS * XFP_CUDA_INTEGER_VECTORS);
	chunk_run own(call, XFP_CUDA_TILE_END(K));
	chunk_ring<K, VECTORS, 1, Books::NAMES> ring;
	Books books;

	start_next_launch();
	Books::stage(call.weights, shared);
	ring.begin(call.matrix, static_cast<uint64_t>(own.tile) * own.chunks + own.chunk, own.left, p, memory);
	books.begin(shared);
	books.begin_tile(call.weights, call.matrix, own.tile, p);
	wait_for_launch_before();
	ring.begin_digits(call.vectors, call.first, call.count, own.chunk, own.chunks, p);
	books.template arrive<2 * (ring.SLOTS - 1)>();

	while (own.left) {
		uint32_t some = min(own.chunks - own.chunk, own.left);
		integer_sums<PAIRS> total;
		tile_sums<PAIRS> sums;

		total.clear();
		multiply_chunks<K, PAIRS>(some, call.count, p, books, ring, total);
		own.left -= some;
		if (own.left)
			books.begin_tile(call.weights, call.matrix, own.tile + 1, p);

		const tile_results<PAIRS, Books> results(call, own.tile, p.lane);

		sums.template gather<K>(total, p, own_sums);

		uint32_t complete = some == own.chunks ? tile_sums<PAIRS>::ALL : add_workers(call, own, p.lane, sums);

		results.store(call, p.lane, sums, complete);
		own.chunk = 0;
		own.tile++;
	}
}

#define XFP_CUDA_FEW_KERNEL(NAME, K, VECTORS, NAMES, ...)                          \
	XFP_CUDA_KERNEL(NAME##_i##VECTORS, XFP_CUDA_FEW_BLOCKS(K, VECTORS, NAMES), \
			multiply_few<K, VECTORS, __VA_ARGS__>)
#define XFP_CUDA_FEW_KERNELS(NAME, K, NAMES, ...)           \
	XFP_CUDA_FEW_KERNEL(NAME, K, 1, NAMES, __VA_ARGS__) \
	XFP_CUDA_FEW_KERNEL(NAME, K, 2, NAMES, __VA_ARGS__) \
	XFP_CUDA_FEW_KERNEL(NAME, K, 4, NAMES, __VA_ARGS__)

#endif
