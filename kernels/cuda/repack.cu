/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repack.cu - convert indices from the bundle's order to the device's (abi.h), once, after the upload.
 *
 * A thread converts a chunk. The indices of four neighbouring lanes become selectors, one per step of sixteen columns;
 * group by group these are placed next to those of the other lanes.
 */
#include "kernels/cuda/lanes.h"

/* Combine the nibbles of four lanes, slots I (low) and J (high) of every byte, to selectors of groups 2 I, 2 I + 1, 2 J
 * and 2 J + 1. */
template <int I, int J> XFP_DEVICE void nibbles(uint4 lane, uint32_t *out)
{
	constexpr uint32_t low = 0x0f0f0f0fu;
	uint32_t i01 = choose(low, lane.x, lane.y << 4), j01 = choose(low, lane.x >> 4, lane.y);
	uint32_t i23 = choose(low, lane.z, lane.w << 4), j23 = choose(low, lane.z >> 4, lane.w);

	out[2 * I] = prmt(i01, i23, 0x5140);
	out[2 * I + 1] = prmt(i01, i23, 0x7362);
	out[2 * J] = prmt(j01, j23, 0x5140);
	out[2 * J + 1] = prmt(j01, j23, 0x7362);
}

/* Compute the selectors of all groups of a chunk, from four lanes. */
template <int K> XFP_DEVICE void selectors(const uint4 (&word)[lanes<K>::WORDS], uint32_t *out)
{
	using lane_slots::each;

	if constexpr (K == 4) {
		nibbles<0, 1>(word[0], out);
	} else if constexpr (K == 2) {
		nibbles<0, 2>(each([](uint32_t a) { return a & 0x33333333u; }, word[0]), out);
		nibbles<1, 3>(each([](uint32_t a) { return a >> 2 & 0x33333333u; }, word[0]), out);
	} else {
		auto fields = [](uint32_t a) { return (a & 0x07070707u) | (a << 1 & 0x70707070u); };
		auto rest = [](uint32_t a, uint32_t b, uint32_t c) {
			return (a >> 6 & 0x03030303u) | (c >> 4 & 0x04040404u) | (b >> 2 & 0x30303030u) |
			       (c >> 1 & 0x40404040u);
		};

#pragma unroll
		for (int p = 0; p < 3; p++)
			nibbles<0, 1>(each(fields, word[p]), out + 4 * p);
		nibbles<0, 1>(each(rest, word[0], word[1], word[2]), out + 12);
	}
}

/* Combine the selectors of the groups that share words to the words of every line. */
template <int K> XFP_DEVICE void joined(const uint32_t *selector, uint32_t (&line)[lanes<K>::WORDS])
{
	if constexpr (K == 4) {
		line[0] = selector[0];
	} else if constexpr (K == 2) {
		line[0] = selector[0] | selector[1] << 2;
	} else {
#pragma unroll
		for (int w = 0; w < 3; w++)
			line[w] = selector[w] | (selector[3] >> w & 0x11111111u) << 3;
	}
}

template <int K> XFP_DEVICE void repack(const xfp_cuda_repack &call)
{
	constexpr int WORDS = lanes<K>::WORDS, SHARE = lanes<K>::SHARE;
	uint64_t chunk = static_cast<uint64_t>(blockIdx.x) * XFP_CUDA_THREADS + threadIdx.x;
	uint4 *bytes = reinterpret_cast<uint4 *>(call.index + chunk * lanes<K>::BYTES);
	uint32_t out[WORDS][4][4]; /* line, 16 bytes, word */

	if (chunk >= call.chunks)
		return;
#pragma unroll
	for (int t = 0; t < 4; t++) {
		uint32_t selector[4 * SHARE], line[WORDS];
		uint4 word[WORDS];

#pragma unroll
		for (int w = 0; w < WORDS; w++)
			word[w] = bytes[4 * w + t];
		selectors<K>(word, selector);
#pragma unroll
		for (int c = 0; c < 4; c++) {
			joined<K>(selector + c * SHARE, line);
#pragma unroll
			for (int w = 0; w < WORDS; w++)
				out[w][c][t] = line[w];
		}
	}
#pragma unroll
	for (int w = 0; w < WORDS; w++)
#pragma unroll
		for (int c = 0; c < 4; c++)
			bytes[4 * w + c] = make_uint4(out[w][c][0], out[w][c][1], out[w][c][2], out[w][c][3]);
}

#define KERNEL(K)                                                                                                   \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS) xfp_repack_k##K(const xfp_cuda_repack call) \
	{                                                                                                           \
		repack<K>(call);                                                                                    \
	}

KERNEL(2)
KERNEL(3)
KERNEL(4)
