/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.cu - kernels for comparison with products: plain reads at full bandwidth, and operands for cuBLAS. Not part
 * of libxfp-cuda.
 */
#include <stdint.h>

#define LOADS 8 /* of 16 bytes, in flight per thread */

static __device__ uint4 load(const uint4 *from)
{
	uint4 value;

	asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
		     : "l"(from));
	return value;
}

/* Read `count` pieces of 16 bytes, a multiple of LOADS times a block's threads. The result goes to `sink` only to keep
 * the reads. */
extern "C" __global__ void __launch_bounds__(512) xfp_measure_read(const uint4 *from, uint64_t count, uint32_t *sink)
{
	uint64_t step = (uint64_t)gridDim.x * blockDim.x * LOADS;
	uint32_t sum = 0;

	for (uint64_t first = (uint64_t)blockIdx.x * blockDim.x * LOADS + threadIdx.x; first < count; first += step) {
		uint4 value[LOADS];

#pragma unroll
		for (int i = 0; i < LOADS; i++)
			value[i] = load(from + first + (uint64_t)i * blockDim.x);
#pragma unroll
		for (int i = 0; i < LOADS; i++)
			sum ^= value[i].x ^ value[i].y ^ value[i].z ^ value[i].w;
	}
	if (sum == 0x9e3779b9u)
		*sink = sum;
}

/* Fill in bf16 numbers, two per word, of both signs, between 2^-7 and 2^-6. */
extern "C" __global__ void __launch_bounds__(512) xfp_measure_fill(uint32_t *to, uint64_t count)
{
	uint64_t step = (uint64_t)gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
		uint32_t bits = (uint32_t)i * 0x9e3779b9u;

		bits = (bits ^ bits >> 15) * 0x85ebca6bu;
		bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
		to[i] = ((bits ^ bits >> 16) & 0x807f807fu) | 0x3c003c00u;
	}
}
