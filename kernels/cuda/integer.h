/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integer.h - the integer path, for one to four vectors: entries as two planes of bytes, vectors as three digits, and
 * integer tensor cores.
 *
 * An instruction multiplies 16 rows by eight columns of digits, over 32 columns of the matrix: three digits of each of
 * two vectors; the other two columns are not used. Sums are exact, so their order does not matter. A `Books` provides
 * the planes of a thread's two rows, for one group of 32 columns at a time.
 */
#ifndef XFP_CUDA_INTEGER_H
#define XFP_CUDA_INTEGER_H

#include "kernels/cuda/codebook.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/place.h"
#include "kernels/cuda/ring.h"

XFP_DEVICE void mma(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t low, uint32_t high)
{
	asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
	    "{%0, %1, %2, %3};"
	    : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
}

/* Sums of the high and of the low plane; c[0] and c[1] are of the thread's first row. */
template <int PAIRS> struct integer_sums {
	int32_t high[PAIRS][4], low[PAIRS][4];

	XFP_DEVICE void clear()
	{
#pragma unroll
		for (int i = 0; i < PAIRS * 4; i++)
			high[i / 4][i % 4] = low[i / 4][i % 4] = 0;
	}
};

/* Return the upper half of a word. A dot product uses another pipe than shifts, whose pipe PRMT keeps busy. */
XFP_DEVICE uint32_t upper(uint32_t s)
{
	uint32_t d;

	asm("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(s), "r"(0x01000000u), "r"(0u));
	return d;
}

/* Look up four bytes of each of two rows' planes, for the first and the second half of their selectors. */
XFP_DEVICE void look_up(uint32_t (&a)[4], uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t s0, uint32_t s1)
{
	a[0] = prmt(x0, y0, s0);
	a[1] = prmt(x1, y1, s1);
	a[2] = prmt(x0, y0, upper(s0));
	a[3] = prmt(x1, y1, upper(s1));
}

/*
 * Multiply eight columns of each of two rows. With sixteen entries, the lower eight are one table and the upper eight
 * another. No byte has its highest bit set, and prmt replicates that bit if bit 3 of an index is set. So each table
 * gives 0 for the entries of the other one, and the matrix product adds both.
 */
template <int K, int PAIRS>
XFP_DEVICE void multiply_word(integer_sums<PAIRS> &s, const codebook<K> (&book)[2], uint32_t s0, uint32_t s1,
			      const uint2 (&x)[PAIRS])
{
	constexpr int TABLES = K == 4 ? 2 : 1;

#pragma unroll
	for (int i = 0; i < TABLES; i++) {
		constexpr int next = K > 2 ? 1 : 0;
		uint32_t t0 = i ? s0 ^ 0x88888888u : s0, t1 = i ? s1 ^ 0x88888888u : s1, high[4], low[4];

		look_up(high, book[0].high[2 * i], book[0].high[2 * i + next], book[1].high[2 * i],
			book[1].high[2 * i + next], t0, t1);
		look_up(low, book[0].low[2 * i], book[0].low[2 * i + next], book[1].low[2 * i],
			book[1].low[2 * i + next], t0, t1);
#pragma unroll
		for (int n = 0; n < PAIRS; n++) {
			mma(s.high[n], high, x[n].x, x[n].y);
			mma(s.low[n], low, x[n].x, x[n].y);
		}
	}
}

/* Adds the thread's groups of one chunk. */
template <int K, int PAIRS, class Books, class Ring>
XFP_DEVICE void multiply_chunk(Books &books, const uint32_t (&names)[2], const uint4 (&line)[2][lanes<K>::WORDS],
			       const Ring &ring, integer_sums<PAIRS> &total)
{
#pragma unroll
	for (int j = 0; j < lanes<K>::SHARE; j++) {
		books.enter(names, j);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			uint2 first[PAIRS], second[PAIRS];

#pragma unroll
			for (int n = 0; n < PAIRS; n++) {
				uint4 four = ring.digits_of(n, j, half);

				first[n] = make_uint2(four.x, four.y);
				second[n] = make_uint2(four.z, four.w);
			}
			multiply_word<K, PAIRS>(total, books.book, selectors_of<K>(line[0], 2 * half, j),
						selectors_of<K>(line[1], 2 * half, j), first);
			multiply_word<K, PAIRS>(total, books.book, selectors_of<K>(line[0], 2 * half + 1, j),
						selectors_of<K>(line[1], 2 * half + 1, j), second);
		}
	}
}

/* Adds the next `chunks`, times `count` vectors. */
template <int K, int PAIRS, class Books, class Ring>
XFP_DEVICE void multiply_chunks(uint32_t chunks, uint32_t count, const place &p, Books &books, Ring &ring,
				integer_sums<PAIRS> &total)
{
#pragma unroll 1
	for (; chunks; chunks--) {
		uint4 line[2][lanes<K>::WORDS];
		uint32_t names[2];

		ring.next(count, p);
		ring.read(line, names);
		multiply_chunk<K, PAIRS>(books, names, line, ring, total);
	}
}

/* The sums of two rows of a warp, in shared memory: int64 [row][XFP_CUDA_INTEGER_VECTORS]. */
template <int K, int PAIRS> XFP_DEVICE void store_sums(const integer_sums<PAIRS> &s, const place &p, int64_t *rows)
{
	constexpr int LOW_BITS = K == 4 ? 7 : 8;

#pragma unroll
	for (int n = 0; n < PAIRS; n++)
#pragma unroll
		for (int i = 0; i < 2; i++) {
			/* Columns 2 t and 2 t + 1: digits 0 and 1 of the first vector; 2, and 0 of the second; 1 and
			 * 2. */
			int64_t one = static_cast<int64_t>(s.high[n][2 * i]) * (1 << LOW_BITS) + s.low[n][2 * i];
			int64_t two =
				static_cast<int64_t>(s.high[n][2 * i + 1]) * (1 << LOW_BITS) + s.low[n][2 * i + 1];
			int64_t given = p.t == 1 ? one * 65536 : one * 256 + two * 65536;
			int64_t sum = (p.t == 0 ? one + two * 256 : two) + __shfl_down_sync(0xffffffffu, given, 1, 4);

			if (p.t < 2)
				rows[(p.g + 8 * i) * XFP_CUDA_INTEGER_VECTORS + 2 * n + p.t] = sum;
		}
}

/* Multiplies a block's part of a tile by one vector on the integer path: contains the planes of its method, and indices
 * in flight. A warp processes every eighth chunk. */
template <int K, class Books> struct integer_path {
	Books books;
	chunk_ring<K, 1, XFP_CUDA_WARPS, Books::NAMES> ring;
	uint32_t chunk, count; /* first chunk of the warp, and number of chunks */

	/* Starts to read weights. The method has staged `tables`; `memory` has XFP_CUDA_RING_BYTES(K, 1, Books::NAMES)
	 * bytes. */
	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p,
			      const column_part &own, const uint8_t *tables, uint8_t *memory)
	{
		chunk = own.begin + p.warp;
		count = chunk < own.end ? (own.end - chunk + XFP_CUDA_WARPS - 1) / XFP_CUDA_WARPS : 0;
		ring.begin(m, p.first_row / XFP_CUDA_TILE_ROWS * static_cast<uint64_t>(w.chunks) + chunk, count, p,
			   memory);
		books.begin(tables);
		books.begin_tile(w, m, p.first_row / XFP_CUDA_TILE_ROWS, p);
	}

	/* Stores the sums in shared memory, warp after warp. */
	XFP_DEVICE void multiply(const xfp_cuda_vectors &vectors, uint32_t first, const place &p, int64_t *partial)
	{
		integer_sums<1> total;

		total.clear();
		ring.begin_digits(vectors, first, 1, chunk, 0xffffffffu, p);
		books.template arrive<2 * (ring.SLOTS - 1)>();
		multiply_chunks<K, 1>(count, 1, p, books, ring, total);
		store_sums<K, 1>(total, p, partial + p.warp * XFP_CUDA_TILE_ROWS * XFP_CUDA_INTEGER_VECTORS);
	}
};

/* Return whether all of these vectors have integers; the same for all threads of a block. */
XFP_DEVICE bool integers_fit(const xfp_cuda_vectors &x, uint32_t first, uint32_t count)
{
	bool fit = true;

	for (uint32_t v = 0; v < count; v++)
		fit = fit && at<xfp_cuda_input_scale>(x.whole)[first + v].finite;
	return fit;
}

/* Convert a sum of integers to its value. */
XFP_DEVICE double integer_meaning(int64_t sum, const xfp_cuda_pair &pair, const xfp_cuda_input_scale &x, bool least)
{
	double base = least ? pair.least * static_cast<double>(x.sum) : 0;

	return __fma_rn(pair.step, static_cast<double>(sum), base) * power_double(-x.exponent);
}

/* Return row r of the tile times a vector. `least` adds the contribution of `least` for all columns; true only for the
 * first part of the columns. */
XFP_DEVICE double integer_result(const int64_t *partial, const xfp_cuda_input_scale &x, const xfp_cuda_pair &pair,
				 bool least, uint32_t r, uint32_t v)
{
	int64_t sum = 0;

#pragma unroll
	for (unsigned warp = 0; warp < XFP_CUDA_WARPS; warp++)
		sum += partial[(warp * XFP_CUDA_TILE_ROWS + r) * XFP_CUDA_INTEGER_VECTORS + v];
	return integer_meaning(sum, pair, x, least);
}

#endif
