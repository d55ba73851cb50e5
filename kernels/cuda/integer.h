/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integer.h - the integer path, for up to four vectors: entries as two planes of bytes, vectors as three digits, and
 * integer tensor cores.
 *
 * An instruction multiplies 32 columns of sixteen rows by eight columns of digits: of two vectors three each, and two
 * that nobody wants. Sums are exact, so that no order of adding up has other bits. What a `Books` has is how a thread
 * comes to the planes of its rows for one of its groups of 32 columns.
 */
#ifndef XFP_CUDA_INTEGER_H
#define XFP_CUDA_INTEGER_H

#include "kernels/cuda/codebook.h"
#include "kernels/cuda/parts.h"
#include "kernels/cuda/place.h"

XFP_DEVICE void mma(int32_t (&c)[4], const uint32_t (&a)[4], uint32_t low, uint32_t high)
{
	asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
	    "{%0, %1, %2, %3};"
	    : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
}

/* Columns of the thread's groups, SHARE of each chunk, by their digits: of PAIRS times two vectors. */
template <int PAIRS, int SHARE> struct digits {
	const uint8_t *base[PAIRS];

	XFP_DEVICE digits(const xfp_cuda_vectors &x, uint32_t first, uint32_t count, const place &p)
	{
#pragma unroll
		for (int n = 0; n < PAIRS; n++) {
			uint32_t v = 2 * n + (p.g / 3 == 1);

			/* Those that nobody wants are some that others have. */
			base[n] = at<uint8_t>(x.digits) +
				  static_cast<uint64_t>(first + (v < count ? v : 0)) * 3 * x.cols + p.g % 3 * 32 +
				  p.t * SHARE * 96;
		}
	}

	/* Half of its four bytes of each of four threads, of its group j. */
	XFP_DEVICE uint4 load(int n, uint32_t chunk, int j, int half) const
	{
		const uint8_t *at_ = base[n] + static_cast<uint64_t>(chunk) * (4 * SHARE * 96);

		return __ldg(reinterpret_cast<const uint4 *>(at_ + j * 96 + half * 16));
	}
};

/* Of the high and of the low plane; c[0] and c[1] are of the thread's first row. */
template <int PAIRS> struct integer_sums {
	int32_t high[PAIRS][4], low[PAIRS][4];

	XFP_DEVICE void clear()
	{
#pragma unroll
		for (int i = 0; i < PAIRS * 4; i++)
			high[i / 4][i % 4] = low[i / 4][i % 4] = 0;
	}
};

/* Four bytes of each of two rows' planes, for the first and the second half of their selectors. */
XFP_DEVICE void look_up(uint32_t (&a)[4], uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t s0, uint32_t s1)
{
	a[0] = prmt(x0, y0, s0);
	a[1] = prmt(x1, y1, s1);
	a[2] = prmt(x0, y0, s0 >> 16);
	a[3] = prmt(x1, y1, s1 >> 16);
}

/*
 * Eight columns of each of two rows. Of sixteen entries the lower eight are one table and the upper eight another: as
 * no byte has its highest bit set, and prmt repeats that bit where bit 3 of an index is set, a table gives 0 for the
 * entries of the other one. What adds them is the product.
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

/* Chunks of the thread's two rows that are loaded at once, so that enough is under way. */
template <int K> constexpr int integer_ahead = K == 4 ? 4 : K == 2 ? 2 : 1;

template <int K, int PAIRS, class Books>
XFP_DEVICE void multiply_chunks(Books &books, const xfp_cuda_weights &w, const xfp_cuda_matrix &m,
				const digits<PAIRS, lanes<K>::SHARE> &x, const place &p, const column_part &own,
				integer_sums<PAIRS> &total)
{
	constexpr int AHEAD = integer_ahead<K>, WORDS = lanes<K>::WORDS, SHARE = lanes<K>::SHARE;
	const uint8_t *row[2];

#pragma unroll
	for (int i = 0; i < 2; i++)
		row[i] = at<uint8_t>(m.index) + static_cast<uint64_t>(p.row[i]) * w.row_bytes + 16 * p.t;
	for (uint32_t from = own.begin + p.warp; from < own.end; from += XFP_CUDA_WARPS * AHEAD) {
		uint4 line[AHEAD][2][WORDS];
		typename Books::names names[AHEAD];

#pragma unroll
		for (int a = 0; a < AHEAD; a++) {
			/* What is past the end is the last one again, and not multiplied. */
			uint32_t chunk = min(from + XFP_CUDA_WARPS * a, own.end - 1);

#pragma unroll
			for (int i = 0; i < 2 * WORDS; i++)
				line[a][i % 2][i / 2] = load_once(
					row[i % 2] + static_cast<uint64_t>(chunk) * lanes<K>::BYTES + i / 2 * 64);
			books.fetch(names[a], chunk);
		}
#pragma unroll
		for (int a = 0; a < AHEAD; a++) {
			uint32_t chunk = from + XFP_CUDA_WARPS * a;

			if (chunk >= own.end)
				break;
#pragma unroll
			for (int j = 0; j < SHARE; j++) {
				books.enter(names[a], j);
#pragma unroll
				for (int half = 0; half < 2; half++) {
					uint2 first[PAIRS], second[PAIRS];

#pragma unroll
					for (int n = 0; n < PAIRS; n++) {
						uint4 four = x.load(n, chunk, j, half);

						first[n] = make_uint2(four.x, four.y);
						second[n] = make_uint2(four.z, four.w);
					}
					multiply_word<K, PAIRS>(total, books.book,
								selectors_of<K>(line[a][0], 2 * half, j),
								selectors_of<K>(line[a][1], 2 * half, j), first);
					multiply_word<K, PAIRS>(total, books.book,
								selectors_of<K>(line[a][0], 2 * half + 1, j),
								selectors_of<K>(line[a][1], 2 * half + 1, j), second);
				}
			}
		}
	}
}

/* The sums of two rows of a warp, in shared memory: int64 [row][XFP_CUDA_INTEGER_VECTORS]. */
template <int K, int PAIRS>
XFP_DEVICE void store_sums(const integer_sums<PAIRS> &s, const place &p, int64_t *rows)
{
	constexpr int LOW_BITS = K == 4 ? 7 : 8;

#pragma unroll
	for (int n = 0; n < PAIRS; n++)
#pragma unroll
		for (int i = 0; i < 2; i++) {
			/* Columns 2 t and 2 t + 1: digits 0 and 1 of the first vector; 2, and 0 of the second; 1 and
			 * 2. */
			int64_t one = static_cast<int64_t>(s.high[n][2 * i]) * (1 << LOW_BITS) + s.low[n][2 * i];
			int64_t two = static_cast<int64_t>(s.high[n][2 * i + 1]) * (1 << LOW_BITS) +
				      s.low[n][2 * i + 1];
			int64_t given = p.t == 1 ? one * 65536 : one * 256 + two * 65536;
			int64_t sum = (p.t == 0 ? one + two * 256 : two) + __shfl_down_sync(0xffffffffu, given, 1, 4);

			if (p.t < 2)
				rows[(p.g + 8 * i) * XFP_CUDA_INTEGER_VECTORS + 2 * n + p.t] = sum;
		}
}

/* Leaves the sums of a tile in shared memory, those of a warp after those of another. */
template <int K, int PAIRS, class Books>
XFP_DEVICE void integer_tile(Books &books, const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, uint32_t first,
			     uint32_t count, const place &p, const column_part &own, int64_t *partial)
{
	const digits<PAIRS, lanes<K>::SHARE> x(call.vectors, first, count, p);
	integer_sums<PAIRS> total;

	total.clear();
	multiply_chunks<K, PAIRS>(books, call.weights, m, x, p, own, total);
	store_sums<K, PAIRS>(total, p, partial + p.warp * XFP_CUDA_TILE_ROWS * XFP_CUDA_INTEGER_VECTORS);
}

/* Whether all of these vectors, and the matrix, have integers. The same for all threads of a block. */
XFP_DEVICE bool integers_fit(const xfp_cuda_vectors &x, const xfp_cuda_matrix &m, uint32_t first, uint32_t count)
{
	bool fit = m.pair != 0;

	for (uint32_t v = 0; v < count; v++)
		fit = fit && __ldg(&at<xfp_cuda_whole>(x.whole)[first + v].fits);
	return fit;
}

/* What sums mean: row r of the tile times a vector. `least` is for the first part of the columns to add, for all of
 * them. */
XFP_DEVICE double integer_result(const int64_t *partial, const xfp_cuda_whole &x, const xfp_cuda_pair &pair, bool least,
				 uint32_t r, uint32_t v)
{
	int64_t sum = 0;

#pragma unroll
	for (unsigned warp = 0; warp < XFP_CUDA_WARPS; warp++)
		sum += partial[(warp * XFP_CUDA_TILE_ROWS + r) * XFP_CUDA_INTEGER_VECTORS + v];
	double base = least ? pair.least * static_cast<double>(x.sum) : 0;

	return __fma_rn(pair.step, static_cast<double>(sum), base) * x.step;
}

#endif
