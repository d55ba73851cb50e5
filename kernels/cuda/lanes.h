/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - the indices of four consecutive columns per thread, step by step of sixteen columns, from a row's chunk.
 *
 * Up to k = 4, indices are in the device order (abi.h): an index has four bits, and the four indices of a step are the
 * selector with which `prmt` looks up four bytes; a word contains two steps. A thread loads its words of every group of
 * 32 columns.
 *
 * Above that, a chunk is in the bundle's order (kernels/common/lane_index.h). A thread loads lanes 4 t ... 4 t + 3 of
 * every word with one instruction each. A chunk of whole lanes has VECTORS steps. Slot i of byte b is step 4 i + b, and
 * the lane is the column among the sixteen, so a step needs the same slot and byte of a thread's four lanes. An index
 * has a byte, and the four indices of a step are a word.
 *
 * A chunk's steps are extracted in parts, the smallest that use words completely, so that few registers contain indices
 * of later steps.
 */
#ifndef XFP_CUDA_LANES_H
#define XFP_CUDA_LANES_H

#include "kernels/cuda/device.h"

/* Return one of four words; i must be a compile-time constant. */
XFP_DEVICE uint32_t part_of(uint4 four, int i)
{
	return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

/* Return from lines in the device order, word i of 16 bytes of each, the selectors of group j of those that share it;
 * both must be compile-time constants. */
template <int K> XFP_DEVICE uint32_t selectors_of(const uint4 *line, int i, int j)
{
	if constexpr (K == 4) {
		return part_of(line[0], i);
	} else if constexpr (K == 2) {
		return part_of(line[0], i) >> 2 * j & 0x33333333u;
	} else {
		if (j < 3)
			return part_of(line[j], i) & 0x77777777u;
		uint32_t two = choose(0x11111111u, part_of(line[0], i) >> 3, part_of(line[1], i) >> 2);

		return choose(0x33333333u, two, part_of(line[2], i) >> 1) & 0x77777777u;
	}
}

template <int K> struct lanes {
	static constexpr int WORDS = K == 5 ? 5 : K % 3 ? 1 : 3;
	static constexpr int VECTORS = WORDS * 32 / K;      /* vectors of sixteen columns per chunk */
	static constexpr uint32_t BYTES = WORDS * 64;       /* bytes per chunk */
	static constexpr uint32_t THREAD = K <= 4 ? 4 : 16; /* bytes from a thread's first word to the next one's */
	/* Groups of 32 columns that share 16 bytes of all lines, in the device order. */
	static constexpr int SHARE = VECTORS / 8;
	static constexpr int PART = K == 2 ? 16 : K <= 4 ? 8 : 4; /* steps */
	static constexpr int INDICES = K <= 4 ? PART / 2 : PART;  /* words of their indices */

	uint4 word[WORDS];

	XFP_DEVICE void load(const uint8_t *chunk)
	{
#pragma unroll
		for (int w = 0; w < WORDS; w++)
			word[w] = K <= 4 ? load_four(chunk + 64 * w) : load_once(chunk + 64 * w);
	}

	/* Extract the indices of part p, which must be a compile-time constant. */
	XFP_DEVICE void indices(int p, uint32_t (&out)[INDICES]) const;
};

namespace lane_slots {

/* Convert the bytes of one slot of four lanes to the words of its four steps. */
XFP_DEVICE void bytes(uint4 lane, uint32_t (&out)[4])
{
	uint32_t low01 = prmt(lane.x, lane.y, 0x5140), low23 = prmt(lane.z, lane.w, 0x5140);
	uint32_t high01 = prmt(lane.x, lane.y, 0x7362), high23 = prmt(lane.z, lane.w, 0x7362);

	out[0] = prmt(low01, low23, 0x5410);
	out[1] = prmt(low01, low23, 0x7632);
	out[2] = prmt(high01, high23, 0x5410);
	out[3] = prmt(high01, high23, 0x7632);
}

template <class F> XFP_DEVICE uint4 each(F f, uint4 a)
{
	return make_uint4(f(a.x), f(a.y), f(a.z), f(a.w));
}

template <class F> XFP_DEVICE uint4 each(F f, uint4 a, uint4 b)
{
	return make_uint4(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w));
}

template <class F> XFP_DEVICE uint4 each(F f, uint4 a, uint4 b, uint4 c)
{
	return make_uint4(f(a.x, b.x, c.x), f(a.y, b.y, c.y), f(a.z, b.z, c.z), f(a.w, b.w, c.w));
}

} // namespace lane_slots

template <> XFP_DEVICE void lanes<2>::indices(int, uint32_t (&out)[INDICES]) const
{
#pragma unroll
	for (int i = 0; i < INDICES; i++)
		out[i] = selectors_of<2>(word, i / 2, i % 2);
}

template <> XFP_DEVICE void lanes<3>::indices(int p, uint32_t (&out)[INDICES]) const
{
#pragma unroll
	for (int i = 0; i < INDICES; i++)
		out[i] = selectors_of<3>(word, p, i);
}

template <> XFP_DEVICE void lanes<4>::indices(int, uint32_t (&out)[INDICES]) const
{
#pragma unroll
	for (int i = 0; i < INDICES; i++)
		out[i] = selectors_of<4>(word, i, 0);
}

template <> XFP_DEVICE void lanes<5>::indices(int p, uint32_t (&out)[INDICES]) const
{
	using namespace lane_slots;
	auto low = [](uint32_t a) { return a & 0x1f1f1f1fu; };
	auto joined = [](uint32_t a, uint32_t d) { return (a >> 5 & 0x07070707u) | (d >> 2 & 0x18181818u); };
	auto rest = [](uint32_t c, uint32_t d, uint32_t e) {
		return (c >> 5 & 0x07070707u) | (d >> 4 & 0x08080808u) | (e >> 3 & 0x10101010u);
	};

	if (p < 5)
		bytes(each(low, word[p]), out);
	else if (p < 7)
		bytes(each(joined, word[p - 5], word[p - 2]), out);
	else
		bytes(each(rest, word[2], word[3], word[4]), out);
}

template <> XFP_DEVICE void lanes<6>::indices(int p, uint32_t (&out)[INDICES]) const
{
	using namespace lane_slots;
	auto low = [](uint32_t a) { return a & 0x3f3f3f3fu; };
	auto rest = [](uint32_t a, uint32_t b, uint32_t c) {
		return (a >> 6 & 0x03030303u) | (b >> 4 & 0x0c0c0c0cu) | (c >> 2 & 0x30303030u);
	};

	bytes(p < 3 ? each(low, word[p]) : each(rest, word[0], word[1], word[2]), out);
}

#endif
