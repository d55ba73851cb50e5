/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - four lanes of a chunk (kernels/common/lane_index.h) as indices of four columns that follow one another.
 *
 * A thread loads lanes 4 t ... 4 t + 3 of every word of a row's chunk with one instruction each. A chunk of whole lanes
 * has VECTORS steps of sixteen columns, slot i of byte b being step 4 i + b, and its lane is its column among the
 * sixteen: so what a step wants of a thread, columns 4 t ... 4 t + 3, is the same slot and byte of its four lanes.
 *
 * Up to k = 4, an index takes four bits, and the four of a step are the selector that `prmt` looks four bytes up with:
 * of two steps, in the halves of one word. Above, an index takes a byte, and the four of a step are a word. A chunk's
 * steps come in parts, the smallest that words give without waste, so that few registers hold what is not wanted yet.
 */
#ifndef XFP_CUDA_LANES_H
#define XFP_CUDA_LANES_H

#include "kernels/cuda/device.h"

template <int K> struct lanes {
	static constexpr int WORDS = K == 5 ? 5 : K % 3 ? 1 : 3;
	static constexpr int VECTORS = WORDS * 32 / K;    /* of sixteen columns, of a chunk */
	static constexpr uint32_t BYTES = WORDS * 64;     /* of a chunk */
	static constexpr int PART = K == 2 ? 16 : K <= 4 ? 8 : 4; /* steps */
	static constexpr int INDICES = K <= 4 ? PART / 2 : PART;  /* words of their indices */

	uint4 word[WORDS];

	XFP_DEVICE void load(const uint8_t *chunk)
	{
#pragma unroll
		for (int w = 0; w < WORDS; w++)
			word[w] = load_once(chunk + 64 * w);
	}

	/* Of part p, which must be known when this is compiled. */
	XFP_DEVICE void indices(int p, uint32_t (&out)[INDICES]) const;
};

namespace lane_slots {

/* Nibbles of four lanes, of slots i (the low ones) and j (the high ones) of every byte, to selectors of steps 4 i ...
 * 4 i + 3 and 4 j ... 4 j + 3. */
template <int I, int J, int COUNT> XFP_DEVICE void nibbles(uint4 lane, uint32_t (&out)[COUNT])
{
	constexpr uint32_t low = 0x0f0f0f0fu;
	uint32_t i01 = choose(low, lane.x, lane.y << 4), j01 = choose(low, lane.x >> 4, lane.y);
	uint32_t i23 = choose(low, lane.z, lane.w << 4), j23 = choose(low, lane.z >> 4, lane.w);

	out[2 * I] = prmt(i01, i23, 0x5140);
	out[2 * I + 1] = prmt(i01, i23, 0x7362);
	out[2 * J] = prmt(j01, j23, 0x5140);
	out[2 * J + 1] = prmt(j01, j23, 0x7362);
}

/* Bytes of four lanes, of one slot, to words of its four steps. */
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
	using namespace lane_slots;

	nibbles<0, 2>(each([](uint32_t a) { return a & 0x33333333u; }, word[0]), out);
	nibbles<1, 3>(each([](uint32_t a) { return a >> 2 & 0x33333333u; }, word[0]), out);
}

template <> XFP_DEVICE void lanes<3>::indices(int p, uint32_t (&out)[INDICES]) const
{
	using namespace lane_slots;
	auto fields = [](uint32_t a) { return (a & 0x07070707u) | (a << 1 & 0x70707070u); };
	auto rest = [](uint32_t a, uint32_t b, uint32_t c) {
		return (a >> 6 & 0x03030303u) | (c >> 4 & 0x04040404u) | (b >> 2 & 0x30303030u) |
		       (c >> 1 & 0x40404040u);
	};

	nibbles<0, 1>(p < 3 ? each(fields, word[p]) : each(rest, word[0], word[1], word[2]), out);
}

template <> XFP_DEVICE void lanes<4>::indices(int, uint32_t (&out)[INDICES]) const
{
	lane_slots::nibbles<0, 1>(word[0], out);
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
