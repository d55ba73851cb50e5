/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile.h - the frame of the kernels m1, m4 and list on tensor cores: a block has sixteen rows, and its warps divide the
 * columns.
 *
 * A method is defined by its `Weights`: how a chunk of a row becomes fragments, and how the sums of a group are scaled.
 * The frame adds in a fixed order, whatever the timing: chunks of a warp ascending, then warps, then outliers; products
 * of a list in the order of the list; then the parts of a tile that several blocks share (parts.h). So results have the
 * same bits from run to run.
 */
#ifndef XFP_CUDA_TILE_H
#define XFP_CUDA_TILE_H

#include "kernels/cuda/integer.h"
#include "kernels/cuda/parts.h"

template <int N> struct sums {
	float c[N][4];

	XFP_DEVICE void clear()
	{
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				c[n][i] = 0;
	}

	/* c[.][0] and [1] are of the thread's first row, [2] and [3] of its second. */
	XFP_DEVICE void add_scaled(const sums &other, const float (&scale)[2])
	{
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				c[n][i] = __fmaf_rn(other.c[n][i], scale[i / 2], c[n][i]);
	}

	XFP_DEVICE void store(float *rows, const place &p) const
	{
#pragma unroll
		for (int n = 0; n < N; n++) {
			float *column = rows + n * 8 + 2 * p.t;

			column[p.g * 8 * N] = c[n][0];
			column[p.g * 8 * N + 1] = c[n][1];
			column[(p.g + 8) * 8 * N] = c[n][2];
			column[(p.g + 8) * 8 * N + 1] = c[n][3];
		}
	}
};

/* The planes of vectors, one column of an instruction's eight each, for a thread: N times its column. Missing planes
 * are replaced by the last one, whose extra sums are ignored: that is free, while a condition at every load is not. */
template <int N> struct planes {
	const uint8_t *base[N];

	planes() = default;

	XFP_DEVICE planes(const xfp_cuda_vectors &x, uint32_t first, uint32_t count, const place &p)
	{
#pragma unroll
		for (int n = 0; n < N; n++) {
			uint32_t plane = first * x.each + min(8 * n + p.g, count * x.each - 1);

			base[n] = in_register(at<uint8_t>(x.planes) + static_cast<uint64_t>(plane) * (x.cols * 2));
		}
	}

	/* Return the planes of a chunk, whose steps are at compile-time distances. */
	XFP_DEVICE planes from(uint32_t offset) const
	{
		planes here;

#pragma unroll
		for (int n = 0; n < N; n++)
			here.base[n] = in_register(base[n] + offset);
		return here;
	}

	XFP_DEVICE uint2 load(int n, uint32_t offset) const
	{
		return load_here(base[n] + offset);
	}

	XFP_DEVICE void multiply(sums<N> &s, const fragment &a, uint32_t offset) const
	{
#pragma unroll
		for (int n = 0; n < N; n++)
			mma(s.c[n], a, load(n, offset));
	}

	/* Multiply by two matrices at once. */
	XFP_DEVICE void multiply(sums<N> &s, sums<N> &z, const fragment &a, const fragment &b, uint32_t offset) const
	{
#pragma unroll
		for (int n = 0; n < N; n++) {
			uint2 columns = load(n, offset);

			mma(s.c[n], a, columns);
			mma(z.c[n], b, columns);
		}
	}
};

/* Return the bytes from the beginning of a plane to columns 16 v, and from these to those of thread t. */
XFP_DEVICE uint32_t natural_offset(uint32_t v, unsigned t)
{
	return v * 32 + t * 8;
}

/* Multiply the outliers of rows `warp` and `warp` + 8 of the tile, if they belong to this part, by every vector:
 * out[row][8 N]. */
template <int N>
XFP_DEVICE void outliers(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, uint32_t first, uint32_t count,
			 const place &p, const column_part &own, float *out)
{
	const xfp_cuda_vectors &x = call.vectors;

	for (uint32_t r = p.warp; r < XFP_CUDA_TILE_ROWS; r += XFP_CUDA_WARPS) {
		uint32_t row = p.first_row + r, begin = 0, end = 0;

		if (m.pointer && row < call.weights.rows && own.has_outliers(call, r >= XFP_CUDA_WARPS)) {
			begin = __ldg(at<uint32_t>(m.pointer) + row);
			end = __ldg(at<uint32_t>(m.pointer) + row + 1);
		}
		for (uint32_t v = 0; v < count; v++) {
			const float *natural = at<float>(x.natural) + static_cast<uint64_t>(first + v) * x.cols;
			float sum = 0;

			for (uint32_t i = begin + p.lane; i < end; i += 32)
				sum = __fmaf_rn(half_to_float(__ldg(at<uint16_t>(m.residual) + i)),
						natural[__ldg(at<uint32_t>(m.column) + i)], sum);
			if (begin < end)
				sum = warp_sum(sum);
			if (!p.lane)
				out[r * 8 * N + v] = sum;
		}
	}
}

XFP_DEVICE void store_result(const xfp_cuda_result &y, uint64_t at_, float value)
{
	if (y.type == 1)
		reinterpret_cast<float *>(y.data)[at_] = value;
	else
		reinterpret_cast<uint16_t *>(y.data)[at_] =
			y.type == 2 ? float_to_half(value) : float_to_bfloat(value);
}

/* For a method without an integer path. */
struct no_integers {
	static constexpr bool INTEGERS = false;
};

/* For a method that needs no shared memory of its own. */
struct nothing_shared {
	static XFP_DEVICE uint32_t shared_bytes(const xfp_cuda_weights &)
	{
		return 0;
	}

	XFP_DEVICE void stage(const xfp_cuda_weights &, uint8_t *)
	{
	}
};

/* Layout of dynamic shared memory; the host knows the sizes (abi.h). */
template <int N> struct buffers {
	uint8_t *own;     /* memory of the method */
	float *partial;   /* [warps][rows][8 N], or int64 [warps][rows][4] */
	float *outlier;   /* [rows][8 N] */
	uint32_t *free;   /* a word that no thread reads after the next barrier */
	uint8_t *tables;  /* tables of the integer path, then its ring */

	XFP_DEVICE buffers(uint8_t *shared, uint32_t own_bytes)
	{
		own = shared;
		partial = reinterpret_cast<float *>(shared + own_bytes);
		outlier = partial + XFP_CUDA_WARPS * XFP_CUDA_TILE_ROWS * 8 * N;
		tables = reinterpret_cast<uint8_t *>(outlier + XFP_CUDA_TILE_ROWS * 8 * N);
		free = reinterpret_cast<uint32_t *>(partial);
	}
};

/* Type in which products of a list are added: double if they may be on the integer path, whose parts cancel. */
template <bool DOUBLE> struct part_sum {
	typedef float type;
};
template <> struct part_sum<true> {
	typedef double type;
};
template <class Weights> using list_sum = typename part_sum<Weights::INTEGERS>::type;

/* Distance of the vectors whose results belong to a thread. */
#define XFP_TILE_APART (XFP_CUDA_THREADS / XFP_CUDA_TILE_ROWS)
template <int N> struct alignas(8) thread_sums {
	static constexpr uint32_t COUNT = (8 * N + XFP_TILE_APART - 1) / XFP_TILE_APART;

	float of[COUNT] = {};

	XFP_DEVICE void operator+=(const thread_sums &other)
	{
#pragma unroll
		for (uint32_t i = 0; i < COUNT; i++)
			of[i] += other.of[i];
	}
};

/* Compute the block's part of a row of the tile times one vector, after all warps have stored their sums. The sum over
 * all parts is the result. */
template <int N, class Weights>
XFP_DEVICE float row_part(const Weights &w, const xfp_cuda_matrix &m, const xfp_cuda_vectors &x, const buffers<N> &b,
			  uint32_t row, uint32_t r, uint32_t v, uint32_t first)
{
	float sum = 0;

#pragma unroll
	for (unsigned warp = 0; warp < XFP_CUDA_WARPS; warp++) {
		const float *at_ = b.partial + (warp * XFP_CUDA_TILE_ROWS + r) * 8 * N + x.each * v;

		sum = __fadd_rn(sum, x.each == 1 ? at_[0] : __fadd_rn(at_[0], at_[1]));
	}
	sum = __fmul_rn(__fmul_rn(sum, at<float>(x.scale)[first + v]), w.row_factor(m, row));
	return __fadd_rn(sum, b.outlier[r * 8 * N + v]);
}

/* Compute the same for one vector, on the integer path or not. */
template <class Weights>
XFP_DEVICE list_sum<Weights> list_row_part(const Weights &w, const xfp_cuda_matrix &m, const xfp_cuda_vectors &x,
					   const buffers<1> &b, const column_part &own, uint32_t row, uint32_t r,
					   uint32_t first, bool integers)
{
	if constexpr (Weights::INTEGERS)
		if (integers)
			return __fma_rn(integer_result(reinterpret_cast<const int64_t *>(b.partial),
						       at<xfp_cuda_input_scale>(x.whole)[first],
						       Weights::books::meaning(m, row), !own.begin, r, 0),
					w.row_factor(m, row), b.outlier[r * 8]);
	return row_part<1>(w, m, x, b, row, r, 0, first);
}

XFP_DEVICE double row_result(const xfp_cuda_matrix &m, double sum)
{
	return sum * m.unit;
}

/* Add a product of a list to its result. */
XFP_DEVICE void add_product(float &sum, float weight, const xfp_cuda_matrix &m, float part)
{
	sum = __fadd_rn(sum, __fmul_rn(weight, static_cast<float>(row_result(m, part))));
}

XFP_DEVICE void add_product(double &sum, float weight, const xfp_cuda_matrix &m, double part)
{
	sum = __fma_rn(weight, row_result(m, part), sum);
}

/* Multiply fragments of numbers: the columns of a part of a tile, chunk after chunk. */
template <int N, class Weights>
XFP_DEVICE void multiply_numbers(Weights &w, const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, uint32_t first,
				 uint32_t count, const place &p, const column_part &own, const buffers<N> &b)
{
	planes<N> x(call.vectors, first, count, p);
	sums<N> total;

	total.clear();
	w.begin(call.weights, m, p, b.own);
	for (uint32_t chunk = own.begin + p.warp; chunk < own.end; chunk += XFP_CUDA_WARPS)
		w.chunk(chunk, x, total);
	total.store(b.partial + p.warp * XFP_CUDA_TILE_ROWS * 8 * N, p);
}

template <int N, class Weights> XFP_DEVICE void multiply_vectors(const xfp_cuda_multiply &call, uint8_t *shared)
{
	const xfp_cuda_matrix &m = call.matrix;
	const place p(call.weights.rows, blockIdx.x);
	const buffers<N> b(shared, Weights::shared_bytes(call.weights));
	const uint32_t most = 8 * N / call.vectors.each, skipped = blockIdx.y * most;
	const uint32_t first = call.first + skipped, count = min(call.count - skipped, most);
	const column_part own(call, blockIdx.z);
	Weights w;

	start_next_launch();
	w.stage(call.weights, b.own);
	wait_for_launch_before();
	multiply_numbers<N>(w, call, m, first, count, p, own, b);
	outliers<N>(call, m, first, count, p, own, b.outlier);
	__syncthreads();

	uint32_t r = threadIdx.x % XFP_CUDA_TILE_ROWS, row = p.first_row + r, v = threadIdx.x / XFP_CUDA_TILE_ROWS;
	uint32_t end = row < call.weights.rows ? count : 0;
	thread_sums<N> sum;

#pragma unroll
	for (uint32_t i = 0, u = v; i < sum.COUNT; i++, u += XFP_TILE_APART)
		if (u < end)
			sum.of[i] = row_part<N>(w, m, call.vectors, b, row, r, u, first);
	if (!add_parts(call, b.free, v < end, sum))
		return;
#pragma unroll
	for (uint32_t i = 0, u = v; i < sum.COUNT; i++, u += XFP_TILE_APART)
		if (u < end)
			store_result(call.result, (first + u) * call.result.stride + row,
				     static_cast<float>(row_result(m, sum.of[i])));
}

/* Multiply a part of a matrix by one vector, and store sums in shared memory for all threads. Returns whether the sums
 * are integers. */
template <class Weights>
XFP_DEVICE bool multiply_product(Weights &w, const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, uint32_t vector,
				 const place &p, const column_part &own, const buffers<1> &b)
{
	bool integers = false;

	if constexpr (Weights::INTEGERS) {
		integers = m.pair && integers_fit(call.vectors, vector, 1);
		if (integers) {
			typename Weights::integers path;

			path.begin(call.weights, m, p, own, b.tables, b.tables + Weights::books::TABLES);
			path.multiply(call.vectors, vector, p, reinterpret_cast<int64_t *>(b.partial));
		} else {
			w.stage(call.weights, b.own);
		}
	}
	if (!integers)
		multiply_numbers<1>(w, call, m, vector, 1, p, own, b);
	outliers<1>(call, m, vector, 1, p, own, b.outlier);
	__syncthreads();
	return integers;
}

/* Multiply the products of a list that belong to one result and to the block's part, one after the other. */
template <class Weights> XFP_DEVICE void multiply_list(const xfp_cuda_multiply &call, uint8_t *shared)
{
	const place p(call.weights.rows, blockIdx.x);
	const buffers<1> b(shared, Weights::shared_bytes(call.weights));
	uint32_t row = p.first_row + threadIdx.x;
	bool mine = threadIdx.x < XFP_CUDA_TILE_ROWS && row < call.weights.rows;
	list_part own(call);
	one_product one;
	list_sum<Weights> sum = 0;
	Weights w;

	start_next_launch();
	/* A method with an integer path stages its numbers when it needs them. */
	if constexpr (Weights::INTEGERS)
		Weights::books::stage(call.weights, b.tables);
	else
		w.stage(call.weights, b.own);
	wait_for_launch_before();
	while (own.next(call, one)) {
		const xfp_cuda_matrix &m = at<xfp_cuda_matrix>(call.weights.matrix)[one.expert];
		bool integers = multiply_product(w, call, m, one.x, p, own.columns, b);

		if (mine)
			add_product(sum, one.weight, m,
				    list_row_part(w, m, call.vectors, b, own.columns, row, threadIdx.x, one.x,
						  integers));
		__syncthreads();
	}
	if constexpr (Weights::INTEGERS)
		wait_for_copies<0>(); /* for staged data, if there was no product */
	if (own.named && add_parts(call, b.free, mine, sum))
		store_result(call.result, own.result * call.result.stride + row, static_cast<float>(sum));
}

/* The kernels of a method: for up to 8 and up to 32 planes of vectors per block, and for a list. BLOCKS is the number
 * of blocks per SM; without it the compiler would limit registers by its own choice. */
#define XFP_CUDA_KERNEL(NAME, BLOCKS, ...)                                                                        \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS, BLOCKS) NAME(const xfp_cuda_multiply call) \
	{                                                                                                         \
		extern __shared__ uint4 shared[];                                                                 \
		__VA_ARGS__(call, reinterpret_cast<uint8_t *>(shared));                                           \
	}
/* Lists are faster with three blocks, if that leaves enough registers; measured on 9.0. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
#define XFP_CUDA_LIST_BLOCKS 3
#else
#define XFP_CUDA_LIST_BLOCKS 2
#endif
#define XFP_CUDA_KERNELS(NAME, LIST_BLOCKS, ...)                        \
	XFP_CUDA_KERNEL(NAME##_m1, 2, multiply_vectors<1, __VA_ARGS__>) \
	XFP_CUDA_KERNEL(NAME##_m4, 1, multiply_vectors<4, __VA_ARGS__>) \
	XFP_CUDA_KERNEL(NAME##_list, LIST_BLOCKS, multiply_list<__VA_ARGS__>)

#endif
