/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.cu - what was kept in the precision of its source: f32, f16 and bf16, in plain f32 arithmetic.
 *
 * A warp has a row, and two rows of the tile one after the other. Its lanes take columns in turn, so that every sum has
 * one order.
 */
#include "kernels/cuda/tile.h"

#define AT_ONCE 4 /* vectors that a row is read for */

static_assert(2 * XFP_CUDA_EACH_VECTORS == 32 && 2 * XFP_CUDA_WARPS == XFP_CUDA_TILE_ROWS,
	      "a lane of a warp has one vector and one of two rows");

/* Where a thread's result is: lanes 0 ... 15 have vectors of row `warp` of the tile, the others of row `warp` + 8. */
struct corner {
	uint32_t warp, lane, vector, row;

	XFP_DEVICE corner()
	{
		warp = threadIdx.x / 32;
		lane = threadIdx.x % 32;
		vector = lane % 16;
		row = blockIdx.x * XFP_CUDA_TILE_ROWS + warp + lane / 16 * XFP_CUDA_WARPS;
	}

	/* The warp's row of one half, the same in all lanes. */
	XFP_DEVICE uint32_t row_of(uint32_t half) const
	{
		return blockIdx.x * XFP_CUDA_TILE_ROWS + warp + half * XFP_CUDA_WARPS;
	}
};

/* A part of a row times vectors [first, first + COUNT), the same in every lane. */
template <class Number, int COUNT>
XFP_DEVICE void row_times(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, const column_part &own, uint32_t row,
			  uint32_t first, float (&sum)[COUNT])
{
	const typename Number::type *w = reinterpret_cast<const typename Number::type *>(
		m.index + static_cast<uint64_t>(row) * call.weights.row_bytes);
	const float *x = at<float>(call.vectors.natural) + static_cast<uint64_t>(first) * call.vectors.cols;
	uint32_t end = min(own.end * XFP_CUDA_KEPT_COLUMNS, call.weights.cols);

#pragma unroll
	for (int v = 0; v < COUNT; v++)
		sum[v] = 0;
	for (uint32_t c = own.begin * XFP_CUDA_KEPT_COLUMNS + threadIdx.x % 32; c < end; c += 32) {
		float value = Number::value(__ldg(w + c));

#pragma unroll
		for (int v = 0; v < COUNT; v++)
			sum[v] = __fmaf_rn(value, __ldg(x + static_cast<uint64_t>(v) * call.vectors.cols + c), sum[v]);
	}
#pragma unroll
	for (int v = 0; v < COUNT; v++)
		sum[v] = warp_sum(sum[v]);
}

/* The same of vectors [v, v + COUNT) of the call; each lane keeps its own. */
template <class Number, int COUNT>
XFP_DEVICE void vectors_of_row(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, const column_part &own,
			       const corner &at_, uint32_t half, uint32_t v, float &mine)
{
	float sum[COUNT];

	row_times<Number, COUNT>(call, m, own, at_.row_of(half), call.first + v, sum);
#pragma unroll
	for (int i = 0; i < COUNT; i++)
		if (at_.lane == half * 16 + v + i)
			mine = sum[i];
}

template <class Number> XFP_DEVICE void multiply_vectors(const xfp_cuda_multiply &call)
{
	__shared__ uint32_t word;
	const xfp_cuda_matrix m = at<xfp_cuda_matrix>(call.weights.matrix)[call.expert];
	const column_part own(call, blockIdx.z);
	const corner at_;
	float sum = 0;

	for (uint32_t half = 0; half < 2 && at_.row_of(half) < call.weights.rows; half++) {
		uint32_t v = 0;

		for (; call.count - v >= AT_ONCE; v += AT_ONCE)
			vectors_of_row<Number, AT_ONCE>(call, m, own, at_, half, v, sum);
		for (; v < call.count; v++)
			vectors_of_row<Number, 1>(call, m, own, at_, half, v, sum);
	}
	if (add_parts(call, &word, at_.vector < call.count && at_.row < call.weights.rows, sum))
		store_result(call.result, (call.first + at_.vector) * call.result.stride + at_.row, sum);
}

template <class Number> XFP_DEVICE void multiply_list(const xfp_cuda_multiply &call)
{
	__shared__ uint32_t word;
	const corner at_;
	list_part own(call);
	one_product one;
	float sum = 0;

	while (own.next(call, one)) {
		for (uint32_t half = 0; half < 2 && at_.row_of(half) < call.weights.rows; half++) {
			float value[1];

			row_times<Number, 1>(call, at<xfp_cuda_matrix>(call.weights.matrix)[one.expert], own.columns,
					     at_.row_of(half), one.x, value);
			if (at_.lane == half * 16)
				sum = __fadd_rn(sum, __fmul_rn(one.weight, value[0]));
		}
	}
	if (own.named && add_parts(call, &word, !at_.vector && at_.row < call.weights.rows, sum))
		store_result(call.result, own.result * call.result.stride + at_.row, sum);
}

#define KERNELS(TYPE)                                                     \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS, 4) \
		xfp_multiply_##TYPE##_each(const xfp_cuda_multiply call)  \
	{                                                                 \
		multiply_vectors<number_##TYPE>(call);                    \
	}                                                                 \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS, 4) \
		xfp_multiply_##TYPE##_list(const xfp_cuda_multiply call)  \
	{                                                                 \
		multiply_list<number_##TYPE>(call);                       \
	}

KERNELS(f32)
KERNELS(f16)
KERNELS(bf16)
