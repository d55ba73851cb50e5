/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.cu - what was kept in the precision of its source: f32, f16 and bf16, in plain f32 arithmetic.
 *
 * A warp has a row, and two rows of the tile one after the other. Its lanes take columns in turn, so that every sum has
 * one order.
 */
#include "kernels/cuda/tile.h"

#define AT_ONCE 4 /* vectors that a row is read for */

/* A row times vectors [first, first + COUNT), the same in every lane. */
template <class Number, int COUNT>
XFP_DEVICE void row_times(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, uint32_t row, uint32_t first,
			  float (&sum)[COUNT])
{
	const typename Number::type *w = reinterpret_cast<const typename Number::type *>(
		m.index + static_cast<uint64_t>(row) * call.weights.row_bytes);
	const float *x = at<float>(call.vectors.natural) + static_cast<uint64_t>(first) * call.vectors.cols;

#pragma unroll
	for (int v = 0; v < COUNT; v++)
		sum[v] = 0;
	for (uint32_t c = threadIdx.x % 32; c < call.weights.cols; c += 32) {
		float value = Number::value(__ldg(w + c));

#pragma unroll
		for (int v = 0; v < COUNT; v++)
			sum[v] = __fmaf_rn(value, __ldg(x + static_cast<uint64_t>(v) * call.vectors.cols + c), sum[v]);
	}
#pragma unroll
	for (int v = 0; v < COUNT; v++)
		sum[v] = warp_sum(sum[v]);
}

template <class Number, int COUNT>
XFP_DEVICE void vectors_of_row(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, uint32_t row, uint32_t v)
{
	float sum[COUNT];

	row_times<Number, COUNT>(call, m, row, v, sum);
	if (threadIdx.x % 32)
		return;
#pragma unroll
	for (int i = 0; i < COUNT; i++)
		store_result(call.result, (v + i) * call.result.stride + row, sum[i]);
}

template <class Number> XFP_DEVICE void multiply_vectors(const xfp_cuda_multiply &call)
{
	const xfp_cuda_matrix m = at<xfp_cuda_matrix>(call.weights.matrix)[call.expert];

	for (uint32_t r = threadIdx.x / 32; r < XFP_CUDA_TILE_ROWS; r += XFP_CUDA_WARPS) {
		uint32_t row = blockIdx.x * XFP_CUDA_TILE_ROWS + r, v = call.first, end = call.first + call.count;

		if (row >= call.weights.rows)
			return;
		for (; end - v >= AT_ONCE; v += AT_ONCE)
			vectors_of_row<Number, AT_ONCE>(call, m, row, v);
		for (; v < end; v++)
			vectors_of_row<Number, 1>(call, m, row, v);
	}
}

template <class Number> XFP_DEVICE void multiply_list(const xfp_cuda_multiply &call)
{
	const one_product *list = at<one_product>(call.products);

	for (uint32_t r = threadIdx.x / 32; r < XFP_CUDA_TILE_ROWS; r += XFP_CUDA_WARPS) {
		uint32_t row = blockIdx.x * XFP_CUDA_TILE_ROWS + r;
		float sum = 0;
		bool any = false;

		if (row >= call.weights.rows)
			return;
		for (uint32_t i = 0; i < call.product_count; i++) {
			const one_product one = list[i];
			const xfp_cuda_matrix *matrix = at<xfp_cuda_matrix>(call.weights.matrix);
			float value[1];

			if (one.y != blockIdx.y || one.expert >= call.weights.experts || one.x >= call.vectors.count)
				continue;
			row_times<Number, 1>(call, matrix[one.expert], row, one.x, value);
			sum = __fadd_rn(sum, __fmul_rn(one.weight, value[0]));
			any = true;
		}
		if (any && threadIdx.x % 32 == 0)
			store_result(call.result, blockIdx.y * call.result.stride + row, sum);
	}
}

#define KERNELS(TYPE)                                                    \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS)   \
		xfp_multiply_##TYPE##_each(const xfp_cuda_multiply call) \
	{                                                                \
		multiply_vectors<number_##TYPE>(call);                   \
	}                                                                \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS)   \
		xfp_multiply_##TYPE##_list(const xfp_cuda_multiply call) \
	{                                                                \
		multiply_list<number_##TYPE>(call);                      \
	}

KERNELS(f32)
KERNELS(f16)
KERNELS(bf16)
