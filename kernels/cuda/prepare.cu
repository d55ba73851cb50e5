/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.cu - prepare activations for multiplication: apply the balance, and convert to planes of fp16.
 *
 * A block processes one vector. It applies the balance and finds the largest magnitude, which determines the power of
 * two that scales the planes; then it writes the planes, and the digits of the integer path. If an element is not
 * finite, the planes contain it, and so all results are not finite; the digits are then undefined.
 */
#include "kernels/cuda/tile.h"

static const uint32_t infinite = 0x7f800000;

/* Convert two numbers to two planes of fp16. */
XFP_DEVICE void split(float x, float y, uint32_t &high, uint32_t &low)
{
	uint16_t a = float_to_half(x), b = float_to_half(y);

	high = a | static_cast<uint32_t>(b) << 16;
	a = float_to_half(__fsub_rn(x, half_to_float(a)));
	b = float_to_half(__fsub_rn(y, half_to_float(b)));
	low = a | static_cast<uint32_t>(b) << 16;
}

/* Return the largest i such that every integer of a vector fits in three digits. */
XFP_DEVICE int exponent_of_integers(uint32_t bits)
{
	constexpr uint32_t most = 0x4afefefe; /* 0x7f7f7f */

	/* For subnormal numbers, 149: they are integers already; 148 if the largest is close to the normal range. */
	return (most >> 23) - static_cast<int>(bits >> 23) - ((bits & 0x7fffffu) > (most & 0x7fffffu));
}

/* Store the digits of four neighbouring numbers: one word per plane. */
XFP_DEVICE void put_digits(const float4 &x, float2 up, uint8_t *to, int32_t &sum)
{
	const float four[4] = { x.x, x.y, x.z, x.w };
	uint32_t q[4];

#pragma unroll
	for (int i = 0; i < 4; i++) {
		int32_t value = __float2int_rn(__fmul_rn(__fmul_rn(four[i], up.x), up.y));

		sum += value;
		/* Bias the lower two digits by half of the base, and remove the bias from every byte. */
		q[i] = static_cast<uint32_t>(value + 0x8080) ^ 0x8080;
	}
	uint32_t low01 = prmt(q[0], q[1], 0x5140), low23 = prmt(q[2], q[3], 0x5140);

	*reinterpret_cast<uint32_t *>(to) = prmt(low01, low23, 0x5410);
	*reinterpret_cast<uint32_t *>(to + 32) = prmt(low01, low23, 0x7632);
	*reinterpret_cast<uint32_t *>(to + 64) = prmt(prmt(q[0], q[1], 0x0062), prmt(q[2], q[3], 0x0062), 0x5410);
}

/* Load four neighbouring columns, balanced; zeros outside the vector. */
template <class Number>
XFP_DEVICE float4 load_columns(const xfp_cuda_prepare &call, const typename Number::type *source, uint32_t c)
{
	float four[4];

#pragma unroll
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t own = c + i - call.lead;

		four[i] = 0;
		if (own < call.cols) {
			four[i] = Number::value(source[own]);
			if (call.down)
				four[i] = __fmul_rn(four[i], __ldg(at<float>(call.down) + own));
		}
	}
	return make_float4(four[0], four[1], four[2], four[3]);
}

XFP_DEVICE uint32_t largest_of(const float4 &x, uint32_t largest)
{
	return max(max(largest, max(__float_as_uint(x.x) & 0x7fffffffu, __float_as_uint(x.y) & 0x7fffffffu)),
		   max(__float_as_uint(x.z) & 0x7fffffffu, __float_as_uint(x.w) & 0x7fffffffu));
}

/* A thread keeps this many times four columns in registers; the rest of a longer vector is read again. */
#define KEPT 4u
#define STEP (4u * XFP_CUDA_PREPARE_THREADS)

template <class Number> XFP_DEVICE void prepare(const xfp_cuda_prepare &call)
{
	constexpr unsigned WARPS = XFP_CUDA_PREPARE_THREADS / 32;
	__shared__ uint32_t most[WARPS];
	__shared__ int64_t total[WARPS];
	const uint32_t columns = call.vectors.cols, vector = blockIdx.x, first = 4 * threadIdx.x;
	const typename Number::type *source = at<typename Number::type>(call.source) + vector * call.stride;
	float *natural = reinterpret_cast<float *>(call.vectors.natural) + static_cast<uint64_t>(vector) * columns;
	uint16_t *planes = reinterpret_cast<uint16_t *>(call.vectors.planes) +
			   static_cast<uint64_t>(vector) * columns * call.vectors.each;
	uint8_t *digits =
		reinterpret_cast<uint8_t *>(call.vectors.digits) + static_cast<uint64_t>(vector) * columns * 3;
	float4 kept[KEPT];
	uint32_t largest = 0;

	start_next_launch();
	wait_for_launch_before();
#pragma unroll
	for (uint32_t i = 0; i < KEPT; i++) {
		kept[i] = make_float4(0, 0, 0, 0);
		if (first + i * STEP < columns)
			kept[i] = load_columns<Number>(call, source, first + i * STEP);
	}
#pragma unroll
	for (uint32_t i = 0; i < KEPT; i++)
		largest = largest_of(kept[i], largest);
	for (uint32_t c = first + KEPT * STEP; c < columns; c += STEP)
		largest = largest_of(load_columns<Number>(call, source, c), largest);
	largest = warp_max(largest);
	if (threadIdx.x % 32 == 0)
		most[threadIdx.x / 32] = largest;
	__syncthreads();
	largest = warp_max(most[threadIdx.x % WARPS]);

	int e = exponent_for(largest), i = exponent_of_integers(largest);
	float up = power(e);
	float2 integers_up = make_float2(power(i / 2), power(i - i / 2)); /* exact: neither product rounds */
	int64_t sum = 0;
	auto put = [&](const float4 &x, uint32_t c) {
		uint2 high, low;
		int32_t four = 0;

		*reinterpret_cast<float4 *>(natural + c) = x;
		split(__fmul_rn(x.x, up), __fmul_rn(x.y, up), high.x, low.x);
		split(__fmul_rn(x.z, up), __fmul_rn(x.w, up), high.y, low.y);
		*reinterpret_cast<uint2 *>(planes + c) = high;
		if (call.vectors.each == 2)
			*reinterpret_cast<uint2 *>(planes + columns + c) = low;
		put_digits(x, integers_up, digits + c / 32 * 96 + c % 16 * 2 + c / 16 % 2 * 4, four);
		sum += four;
	};

#pragma unroll
	for (uint32_t k = 0; k < KEPT; k++)
		if (first + k * STEP < columns)
			put(kept[k], first + k * STEP);
	for (uint32_t c = first + KEPT * STEP; c < columns; c += STEP)
		put(load_columns<Number>(call, source, c), c);
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		total[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x / 32)
		return;
	sum = warp_sum(total[threadIdx.x % WARPS]);
	if (threadIdx.x)
		return;
	reinterpret_cast<float *>(call.vectors.scale)[vector] = power(-e);
	reinterpret_cast<xfp_cuda_input_scale *>(call.vectors.whole)[vector] =
		xfp_cuda_input_scale{ sum, i, largest < infinite };
}

#define KERNEL(TYPE)                                                           \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_PREPARE_THREADS) \
		xfp_prepare_##TYPE(const xfp_cuda_prepare call)                \
	{                                                                      \
		prepare<number_##TYPE>(call);                                  \
	}

KERNEL(f32)
KERNEL(f16)
KERNEL(bf16)
