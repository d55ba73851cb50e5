/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.cu - activations, once for all that they are multiplied by: balanced, and as two planes of fp16.
 *
 * A block has one vector: it balances and finds the largest magnitude, which says what power of two the planes are
 * scaled by, and then makes them. Where something is not finite, the planes have it so, and so have all results.
 */
#include "kernels/cuda/tile.h"

/* 2^e, where that is a normal number. */
XFP_DEVICE float power(int e)
{
	return __uint_as_float(static_cast<uint32_t>(e + 127) << 23);
}

/* The e that puts a magnitude, given by its bits, into [2^14, 2^15). */
XFP_DEVICE int exponent_for(uint32_t bits)
{
	int e = 14 + 127 - static_cast<int>(bits >> 23);

	return e > 126 ? 126 : e;
}

template <class Number> XFP_DEVICE void prepare(const xfp_cuda_prepare &call)
{
	__shared__ uint32_t most[XFP_CUDA_WARPS];
	const uint32_t columns = call.vectors.cols, vector = blockIdx.x;
	const typename Number::type *source = at<typename Number::type>(call.source) + vector * call.stride;
	float *natural = reinterpret_cast<float *>(call.vectors.natural) + static_cast<uint64_t>(vector) * columns;
	uint16_t *planes =
		reinterpret_cast<uint16_t *>(call.vectors.planes) + static_cast<uint64_t>(vector) * columns * 2;
	uint32_t largest = 0;

	for (uint32_t c = threadIdx.x; c < columns; c += XFP_CUDA_THREADS) {
		float x = 0;

		if (c >= call.lead && c - call.lead < call.cols) {
			x = Number::value(source[c - call.lead]);
			if (call.down)
				x = __fmul_rn(x, __ldg(at<float>(call.down) + c - call.lead));
		}
		natural[c] = x;
		uint32_t bits = __float_as_uint(x) & 0x7fffffffu;

		if (bits < 0x7f800000u)
			largest = max(largest, bits);
	}
#pragma unroll
	for (int distance = 16; distance; distance >>= 1)
		largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
	if (threadIdx.x % 32 == 0)
		most[threadIdx.x / 32] = largest;
	__syncthreads();
#pragma unroll
	for (unsigned w = 0; w < XFP_CUDA_WARPS; w++)
		largest = max(largest, most[w]);

	int e = exponent_for(largest);
	float up = power(e);

	if (!threadIdx.x)
		reinterpret_cast<float *>(call.vectors.scale)[vector] = power(-e);
	for (uint32_t c = threadIdx.x; c < columns; c += XFP_CUDA_THREADS) {
		float x = __fmul_rn(natural[c], up);
		uint16_t high = float_to_half(x), low = float_to_half(__fsub_rn(x, half_to_float(high)));
		uint32_t place = c / 16 * 32 + c % 16;

		planes[place] = high;
		planes[place + 16] = low;
	}
}

#define KERNEL(TYPE)                                                                                                   \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS) xfp_prepare_##TYPE(const xfp_cuda_prepare call) \
	{                                                                                                              \
		prepare<number_##TYPE>(call);                                                                          \
	}

KERNEL(f32)
KERNEL(f16)
KERNEL(bf16)
