/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codebook.h - look up codebook entries in shared memory, by the indices of lanes.h, as fragments.
 */
#ifndef XFP_CUDA_CODEBOOK_H
#define XFP_CUDA_CODEBOOK_H

#include "kernels/cuda/copies.h"
#include "kernels/cuda/lanes.h"

/* Bytes per codebook; the layout in shared memory is that of the device image. */
template <int K> XFP_DEVICE constexpr uint32_t codebook_bytes()
{
	return 2u << K;
}

/* Up to k = 4, both planes are in registers. */
template <int K> struct codebook {
	static constexpr int PLANE = (1 << K) / 4; /* words */

	uint32_t high[PLANE], low[PLANE];

	/* Set planes of sixteen entries each. */
	XFP_DEVICE void set_planes(uint4 h, uint4 l)
	{
		high[0] = h.x;
		high[1] = h.y;
		high[2] = h.z;
		high[3] = h.w;
		low[0] = l.x;
		low[1] = l.y;
		low[2] = l.z;
		low[3] = l.w;
	}

	XFP_DEVICE void load(const uint8_t *shared)
	{
		if constexpr (K == 2) {
			uint2 both = *reinterpret_cast<const uint2 *>(shared);

			high[0] = both.x;
			low[0] = both.y;
		} else if constexpr (K == 3) {
			uint4 both = *reinterpret_cast<const uint4 *>(shared);

			high[0] = both.x;
			high[1] = both.y;
			low[0] = both.z;
			low[1] = both.w;
		} else {
			set_planes(*reinterpret_cast<const uint4 *>(shared),
				   *reinterpret_cast<const uint4 *>(shared + 16));
		}
	}

	/* Load from the tables of the integer path, at a shared address. At k = 4 all high planes come first, so that
	 * those of eight threads are in different banks. */
	XFP_DEVICE void load_product(uint32_t tables, uint32_t number)
	{
		if constexpr (K == 2) {
			uint2 both = load_shared_pair(tables + number * 8);

			high[0] = both.x;
			low[0] = both.y;
		} else if constexpr (K == 3) {
			uint4 both = load_shared(tables + number * 16);

			high[0] = both.x;
			high[1] = both.y;
			low[0] = both.z;
			low[1] = both.w;
		} else {
			set_planes(load_shared(tables + number * 16), load_shared(tables + 256 * 16 + number * 16));
		}
	}

	/* Look up four bytes of a plane. With sixteen entries both halves are looked up, and `half` selects one. */
	static XFP_DEVICE uint32_t bytes(const uint32_t (&plane)[PLANE], uint32_t selector, uint32_t half)
	{
		if constexpr (K == 2)
			return prmt(plane[0], plane[0], selector);
		else if constexpr (K == 3)
			return prmt(plane[0], plane[1], selector);
		else
			return prmt(prmt(plane[0], plane[1], selector), prmt(plane[2], plane[3], selector), half);
	}

	/* Return the fragment of step v of the chunk. */
	template <int COUNT>
	XFP_DEVICE void look_up(const uint32_t (&index)[COUNT], int v, uint32_t &first, uint32_t &second) const
	{
		/* Both steps of a word at once, as far as possible; bit 3 of an index selects the half. */
		uint32_t selector = index[v / 2], half = 0;

		if constexpr (K == 4) {
			half = and_or(selector >> 1, 0x44444444u, 0x32103210u);
			selector = and_or(selector, 0x77777777u, 0);
		}

		if (v & 1) {
			selector >>= 16;
			half >>= 16;
		}
		uint32_t h = bytes(high, selector, half), l = bytes(low, selector, half);

		first = prmt(l, h, 0x5140);
		second = prmt(l, h, 0x7362);
	}
};

/* Above k = 4, each entry is loaded: simple, but slower on devices with high bandwidth. */
struct wide_codebook {
	const uint16_t *entry;

	XFP_DEVICE void load(const uint8_t *shared)
	{
		entry = reinterpret_cast<const uint16_t *>(shared);
	}

	XFP_DEVICE uint32_t pair(uint32_t i, uint32_t j) const
	{
		return entry[i] | static_cast<uint32_t>(entry[j]) << 16;
	}

	template <int COUNT>
	XFP_DEVICE void look_up(const uint32_t (&index)[COUNT], int v, uint32_t &first, uint32_t &second) const
	{
		uint32_t four = index[v];

		first = pair(four & 0xffu, four >> 8 & 0xffu);
		second = pair(four >> 16 & 0xffu, four >> 24);
	}
};

template <> struct codebook<5> : wide_codebook {};
template <> struct codebook<6> : wide_codebook {};

#endif
