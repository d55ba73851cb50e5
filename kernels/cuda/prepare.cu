/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.cu - activations, once for all that they are multiplied by: balanced, and as planes of fp16.
 *
 * A block has one vector: it balances and finds the largest magnitude, which says what power of two the planes are
 * scaled by, and then makes them, and the digits of the integer path. Where something is not finite, the planes have it
 * so, and so have all results; the digits then are anything.
 */
#include "kernels/cuda/tile.h"

/* The smallest magnitude, 2^-104, that integers are made of. */
static const uint32_t least_of_integers = (127 - 104) << 23, infinite = 0x7f800000;

/* Two numbers as two planes of fp16. */
XFP_DEVICE void split(float x, float y, uint32_t &high, uint32_t &low)
{
	uint16_t a = float_to_half(x), b = float_to_half(y);

	high = a | static_cast<uint32_t>(b) << 16;
	a = float_to_half(__fsub_rn(x, half_to_float(a)));
	b = float_to_half(__fsub_rn(y, half_to_float(b)));
	low = a | static_cast<uint32_t>(b) << 16;
}

/* The largest i with which no integer of a vector takes more than three digits. */
XFP_DEVICE int exponent_of_integers(uint32_t bits)
{
	constexpr uint32_t most = 0x4afefefe; /* 0x7f7f7f */
	int i = (most >> 23) - static_cast<int>(bits >> 23) - ((bits & 0x7fffffu) > (most & 0x7fffffu));

	return i > 126 ? 126 : i;
}

/* Digits of four numbers that are neighbours: one word for each plane. */
XFP_DEVICE void put_digits(const float4 &x, float up, uint8_t *to, int32_t &sum)
{
	const float four[4] = { x.x, x.y, x.z, x.w };
	uint32_t q[4];

#pragma unroll
	for (int i = 0; i < 4; i++) {
		int32_t value = __float2int_rn(__fmul_rn(four[i], up));

		sum += value;
		/* Half of a base more in the lower two digits, and less again in every byte. */
		q[i] = static_cast<uint32_t>(value + 0x8080) ^ 0x8080;
	}
	uint32_t low01 = prmt(q[0], q[1], 0x5140), low23 = prmt(q[2], q[3], 0x5140);

	*reinterpret_cast<uint32_t *>(to) = prmt(low01, low23, 0x5410);
	*reinterpret_cast<uint32_t *>(to + 32) = prmt(low01, low23, 0x7632);
	*reinterpret_cast<uint32_t *>(to + 64) = prmt(prmt(q[0], q[1], 0x0062), prmt(q[2], q[3], 0x0062), 0x5410);
}

template <class Number> XFP_DEVICE void prepare(const xfp_cuda_prepare &call)
{
	__shared__ uint32_t most[XFP_CUDA_WARPS];
	__shared__ int64_t total[XFP_CUDA_WARPS];
	const uint32_t columns = call.vectors.cols, vector = blockIdx.x;
	const typename Number::type *source = at<typename Number::type>(call.source) + vector * call.stride;
	float *natural = reinterpret_cast<float *>(call.vectors.natural) + static_cast<uint64_t>(vector) * columns;
	uint16_t *planes = reinterpret_cast<uint16_t *>(call.vectors.planes) +
			   static_cast<uint64_t>(vector) * columns * call.vectors.each;
	uint8_t *digits =
		reinterpret_cast<uint8_t *>(call.vectors.digits) + static_cast<uint64_t>(vector) * columns * 3;
	uint32_t largest = 0;

	for (uint32_t c = threadIdx.x; c < columns; c += XFP_CUDA_THREADS) {
		float x = 0;

		if (c >= call.lead && c - call.lead < call.cols) {
			x = Number::value(source[c - call.lead]);
			if (call.down)
				x = __fmul_rn(x, __ldg(at<float>(call.down) + c - call.lead));
		}
		natural[c] = x;
		largest = max(largest, __float_as_uint(x) & 0x7fffffffu);
	}
	largest = warp_max(largest);
	if (threadIdx.x % 32 == 0)
		most[threadIdx.x / 32] = largest;
	__syncthreads();
#pragma unroll
	for (unsigned w = 0; w < XFP_CUDA_WARPS; w++)
		largest = max(largest, most[w]);

	int e = exponent_for(largest), i = exponent_of_integers(largest);
	float up = power(e), integers_up = power(i);
	int64_t sum = 0;

	for (uint32_t c = threadIdx.x * 4; c < columns; c += XFP_CUDA_THREADS * 4) {
		float4 x = *reinterpret_cast<const float4 *>(natural + c);
		uint2 high, low;
		int32_t four = 0;

		split(__fmul_rn(x.x, up), __fmul_rn(x.y, up), high.x, low.x);
		split(__fmul_rn(x.z, up), __fmul_rn(x.w, up), high.y, low.y);
		*reinterpret_cast<uint2 *>(planes + c) = high;
		if (call.vectors.each == 2)
			*reinterpret_cast<uint2 *>(planes + columns + c) = low;
		put_digits(x, integers_up, digits + c / 32 * 96 + c % 16 * 2 + c / 16 % 2 * 4, four);
		sum += four;
	}
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		total[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x)
		return;
	sum = 0;
#pragma unroll
	for (unsigned w = 0; w < XFP_CUDA_WARPS; w++)
		sum += total[w];
	reinterpret_cast<float *>(call.vectors.scale)[vector] = power(-e);
	reinterpret_cast<xfp_cuda_whole *>(call.vectors.whole)[vector] =
		xfp_cuda_whole{ sum, power(-i), !largest || (largest >= least_of_integers && largest < infinite) };
}

#define KERNEL(TYPE)                                                                                                   \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS) xfp_prepare_##TYPE(const xfp_cuda_prepare call) \
	{                                                                                                              \
		prepare<number_##TYPE>(call);                                                                          \
	}

KERNEL(f32)
KERNEL(f16)
KERNEL(bf16)
