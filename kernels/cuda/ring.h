/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - a ring of chunks in shared memory, filled by asynchronous copies.
 *
 * A warp multiplies sixteen rows by one chunk after another. To use the memory's bandwidth, several chunks must be in
 * flight per warp: by Little's law an H200 needs 25 to 36 KB per SM. Loads into registers do not achieve this, since
 * ptxas moves each load next to its use to save registers. Digits of vectors are in L1 or L2, but a load that hits L1
 * returns in order, after all earlier misses of the SM: on an H200 products waited for digits 10 to 24 % of the time.
 * So the ring holds for each chunk the indices of sixteen rows, the digits of its columns, and in v2c the names.
 *
 * Indices are copied and read by the same thread. Digits and names are copied by the warp.
 */
#ifndef XFP_CUDA_RING_H
#define XFP_CUDA_RING_H

#include "kernels/cuda/copies.h"
#include "kernels/cuda/lanes.h"
#include "kernels/cuda/place.h"

/* K: bits of an index. VECTORS: vectors whose digits are copied. STRIDE: distance between consecutive chunks of a warp.
 * NAMES: v2c, whose groups of 32 columns have a byte each. */
template <int K, int VECTORS, int STRIDE, bool NAMES> struct chunk_ring {
	static constexpr int WORDS = lanes<K>::WORDS, SHARE = lanes<K>::SHARE;
	static constexpr uint32_t SLOTS = XFP_CUDA_RING_SLOTS(K);
	static constexpr uint32_t CHUNK = XFP_CUDA_TILE_ROWS * lanes<K>::BYTES;
	static constexpr uint32_t DIGITS = 4 * SHARE * 96, HALF = DIGITS / 2;  /* bytes per chunk of a vector */
	static constexpr uint32_t NAME_BYTES = XFP_CUDA_TILE_ROWS * 4 * SHARE; /* of all rows */
	static constexpr uint32_t PIECE = 16 * XFP_CUDA_THREADS;
	static constexpr uint32_t WARP = VECTORS * DIGITS + (NAMES ? NAME_BYTES : 0);
	static constexpr uint32_t SLOT = 2 * WORDS * PIECE + XFP_CUDA_WARPS * WARP;
	static_assert(SLOTS * SLOT == XFP_CUDA_RING_BYTES(K, VECTORS, NAMES), "abi.h has their size");

	/* Copies of a vector's digits: WHOLE times 32 pieces of 16 bytes, and LAST pieces, with which the first
	 * vector's names are copied. Even pieces are stored before odd ones, which avoids bank conflicts of
	 * digits_of. */
	static constexpr int PIECES = DIGITS / 16, WHOLE = PIECES / 32, LAST = PIECES % 32;
	static constexpr int LAST_NAMES = NAMES ? NAME_BYTES / 16 : 0;

	/* The next chunk to copy, at the thread's first piece: */
	const uint8_t *from;           /* indices */
	const uint8_t *digit;          /* digits of the first vector */
	const uint8_t *last;           /* its LAST digits, or names */
	uint32_t last_step, last_back; /* bytes to the next chunk, and back to the first chunk of a row */
	uint32_t stride;               /* bytes from a vector to the next one */
	uint32_t left, row_left;       /* chunks to copy: of the warp, and of the row */
	uint32_t row_chunks;
	/* Shared addresses in slot 0, of the thread: */
	uint32_t slot, digit_slot, last_slot; /* where it copies to; it reads indices from `slot`, too */
	uint32_t mine, mine_names;            /* digits and names that it reads */
	/* Bytes from slot 0: */
	uint32_t oldest;   /* the oldest chunk in flight */
	uint32_t released; /* the slot that next() fills, and then the chunk to read */

	/* Starts to copy the indices of the first of `count` chunks. `first` counts from the first chunk of the matrix.
	 */
	XFP_DEVICE void begin(const xfp_cuda_matrix &m, uint64_t first, uint32_t count, const place &p, uint8_t *shared)
	{
		uint32_t warp = shared_address(shared) + 2 * WORDS * PIECE + p.warp * WARP;
		int lane = static_cast<int>(p.lane);
		bool names = NAMES && lane >= LAST;

		from = at<uint8_t>(m.index) + first * CHUNK + p.g * lanes<K>::BYTES + 16 * p.t;
		left = count;
		slot = in_register(shared_address(shared) + threadIdx.x * 16);
		digit_slot = in_register(warp + p.lane % 2 * HALF + p.lane / 2 * 16);
		mine = in_register(warp + (p.t * (3 * SHARE) + p.g % 3) * 16);
		last = at<uint8_t>(m.group) + first * NAME_BYTES + (lane - LAST) * 16;
		last_slot =
			in_register(names ? warp + VECTORS * DIGITS + (lane - LAST) * 16 : digit_slot + WHOLE * 256);
		mine_names = in_register(warp + VECTORS * DIGITS + p.g * (4 * SHARE) + p.t * SHARE);
		oldest = 0;
		released = (SLOTS - 1) * SLOT;
#pragma unroll
		for (uint32_t i = 0; i < SLOTS - 1; i++) {
			if (i < count)
				copy_indices(i * SLOT);
			commit_copies();
		}
	}

	/* Starts to copy their digits, of `count` vectors, and names. The first one is chunk `chunk` of a row of
	 * `chunks`, and the last chunk of a row is followed by the first one of the next row. */
	XFP_DEVICE void begin_digits(const xfp_cuda_vectors &x, uint32_t first, uint32_t count, uint32_t chunk,
				     uint32_t chunks, const place &p)
	{
		bool names = NAMES && static_cast<int>(p.lane) >= LAST;

		stride = 3 * x.cols;
		digit = at<uint8_t>(x.digits) + static_cast<uint64_t>(first) * 3 * x.cols + chunk * DIGITS +
			p.lane * 16;
		row_chunks = chunks;
		row_left = chunks - chunk;
		if (!names)
			last = digit + WHOLE * 512;
		last_step = STRIDE * (names ? NAME_BYTES : DIGITS);
		last_back = names ? 0 : chunks * DIGITS;
		if (VECTORS > 1)
			mine += (p.g / 3 == 1) * DIGITS;
#pragma unroll
		for (uint32_t i = 0; i < SLOTS - 1; i++) {
			if (i < left)
				copy_digits(i * SLOT, count, p);
			commit_copies();
		}
		left = left > SLOTS - 1 ? left - (SLOTS - 1) : 0;
	}

	XFP_DEVICE void copy_indices(uint32_t to)
	{
#pragma unroll
		for (int i = 0; i < 2 * WORDS; i++)
			copy_async(slot + to + i * PIECE, from + i % 2 * 8 * lanes<K>::BYTES + i / 2 * 64);
		from += STRIDE * CHUNK;
	}

	XFP_DEVICE void copy_digits(uint32_t to, uint32_t count, const place &p)
	{
#pragma unroll
		for (int i = 0; i < WHOLE; i++)
			copy_async_cached(digit_slot + to + i * 256, digit + i * 512);
		if (static_cast<int>(p.lane) < LAST + LAST_NAMES)
			copy_async_cached(last_slot + to, last);

		const uint8_t *here = digit;

#pragma unroll
		for (int v = 1; v < VECTORS; v++) {
			/* If there is no fourth vector, the third one takes its place. */
			here += v < 3 || count > 3 ? stride : 0;
#pragma unroll
			for (int i = 0; i <= WHOLE; i++)
				if (i < WHOLE || static_cast<int>(p.lane) < LAST)
					copy_async_cached(digit_slot + to + v * DIGITS + i * 256, here + i * 512);
		}
		if (WHOLE || VECTORS > 1)
			digit += STRIDE * DIGITS;
		last += NAMES ? last_step : STRIDE * DIGITS;
		if (STRIDE == 1 && !--row_left) {
			row_left = row_chunks;
			digit -= row_chunks * DIGITS;
			last -= NAMES ? last_back : row_chunks * DIGITS;
		}
	}

	/* Waits for the oldest chunk, which is then the one to read, and starts to copy another one into the slot
	 * that was read before. */
	XFP_DEVICE void next(uint32_t count, const place &p)
	{
		wait_for_copies<static_cast<int>(SLOTS) - 2>();
		__syncwarp();
		if (left) {
			copy_indices(released);
			copy_digits(released, count, p);
			left--;
		}
		commit_copies();
		released = oldest;
		oldest = oldest == (SLOTS - 1) * SLOT ? 0 : oldest + SLOT;
	}

	/* Reads indices, and for both rows the SHARE names of the thread's groups. */
	XFP_DEVICE void read(uint4 (&line)[2][WORDS], uint32_t (&names)[2]) const
	{
#pragma unroll
		for (int i = 0; NAMES && i < 2; i++)
			names[i] = load_shared_bytes<SHARE>(mine_names + released + i * (8 * 4 * SHARE));
#pragma unroll
		for (int i = 0; i < 2 * WORDS; i++)
			line[i % 2][i / 2] = load_shared(slot + released + i * PIECE);
	}

	/* Reads digits of half of the columns of the thread's group j, for vectors 2 n and 2 n + 1. */
	XFP_DEVICE uint4 digits_of(int n, int j, int half) const
	{
		return load_shared(mine + released + n * 2 * DIGITS + half * HALF + j * 48);
	}
};

#endif
