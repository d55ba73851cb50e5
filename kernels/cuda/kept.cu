/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.cu - tensors kept in the precision of the source: f32, f16 and bf16.
 *
 * For few vectors, and for f32, in plain f32 arithmetic: a warp processes two rows of the tile one after the other. Its
 * lanes read 16 bytes of the row in turn, so that every sum has a fixed order. For many vectors, f16 and bf16 use
 * tensor cores (wide.h); bf16 is converted to fp16 times a power of two per row, like vectors.
 */
#include "kernels/cuda/wide.h"

#define AT_ONCE 4 /* vectors per pass over a row */

static_assert(2 * XFP_CUDA_EACH_VECTORS == 32 && 2 * XFP_CUDA_WARPS == XFP_CUDA_TILE_ROWS,
	      "a lane of a warp has one vector and one of two rows");

/* Location of a thread's result: lanes 0 ... 15 have vectors of row `warp` of the tile, the others of row `warp` +
 * 8. */
struct corner {
	uint32_t warp, lane, vector, row;

	XFP_DEVICE corner()
	{
		warp = threadIdx.x / 32;
		lane = threadIdx.x % 32;
		vector = lane % 16;
		row = blockIdx.x * XFP_CUDA_TILE_ROWS + warp + lane / 16 * XFP_CUDA_WARPS;
	}

	/* Return the warp's row in a half, the same in all lanes. */
	XFP_DEVICE uint32_t row_of(uint32_t half) const
	{
		return blockIdx.x * XFP_CUDA_TILE_ROWS + warp + half * XFP_CUDA_WARPS;
	}
};

/* 16 bytes of a row, converted. */
template <class Number> struct sixteen_bytes {
	typedef typename Number::type type;
	static constexpr int COUNT = 16 / sizeof(type);

	float value[COUNT];

	XFP_DEVICE explicit sixteen_bytes(const type *from)
	{
		const uint4 bytes = load_once(reinterpret_cast<const uint8_t *>(from));
		const uint32_t word[4] = { bytes.x, bytes.y, bytes.z, bytes.w };

#pragma unroll
		for (int i = 0; i < COUNT; i++)
			if constexpr (COUNT == 4)
				value[i] = __uint_as_float(word[i]);
			else
				value[i] = Number::value(static_cast<type>(word[i / 2] >> i % 2 * 16));
	}
};

/* Multiply a part of a row by vectors [first, first + COUNT); the result is the same in every lane. Rows are padded to
 * 16 bytes, vectors with zeros. */
template <class Number, int COUNT>
XFP_DEVICE void row_times(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, const column_part &own, uint32_t row,
			  uint32_t first, float (&sum)[COUNT])
{
	constexpr int WIDTH = sixteen_bytes<Number>::COUNT;
	const typename Number::type *w = reinterpret_cast<const typename Number::type *>(
		m.index + static_cast<uint64_t>(row) * call.weights.row_bytes);
	const float *x = at<float>(call.vectors.natural) + static_cast<uint64_t>(first) * call.vectors.cols;
	uint32_t end = min(own.end * XFP_CUDA_KEPT_COLUMNS, call.weights.cols);

#pragma unroll
	for (int v = 0; v < COUNT; v++)
		sum[v] = 0;
#pragma unroll(COUNT == 1 ? 4 : 1)
	for (uint32_t c = own.begin * XFP_CUDA_KEPT_COLUMNS + threadIdx.x % 32 * WIDTH; c < end; c += 32 * WIDTH) {
		const sixteen_bytes<Number> of_row(w + c);

#pragma unroll
		for (int v = 0; v < COUNT; v++)
#pragma unroll
			for (int i = 0; i < WIDTH; i += 4) {
				float4 four = *reinterpret_cast<const float4 *>(
					x + static_cast<uint64_t>(v) * call.vectors.cols + c + i);

				sum[v] = __fmaf_rn(of_row.value[i], four.x, sum[v]);
				sum[v] = __fmaf_rn(of_row.value[i + 1], four.y, sum[v]);
				sum[v] = __fmaf_rn(of_row.value[i + 2], four.z, sum[v]);
				sum[v] = __fmaf_rn(of_row.value[i + 3], four.w, sum[v]);
			}
	}
#pragma unroll
	for (int v = 0; v < COUNT; v++)
		sum[v] = warp_sum(sum[v]);
}

/* Multiply by vectors [v, v + COUNT) of the block, which begin at `first`; each lane keeps its own result. */
template <class Number, int COUNT>
XFP_DEVICE void vectors_of_row(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, const column_part &own,
			       const corner &at_, uint32_t half, uint32_t first, uint32_t v, float &mine)
{
	float sum[COUNT];

	row_times<Number, COUNT>(call, m, own, at_.row_of(half), first + v, sum);
#pragma unroll
	for (int i = 0; i < COUNT; i++)
		if (at_.lane == half * 16 + v + i)
			mine = sum[i];
}

template <class Number> XFP_DEVICE void multiply_vectors(const xfp_cuda_multiply &call)
{
	__shared__ uint32_t word;
	const xfp_cuda_matrix &m = call.matrix;
	const column_part own(call, blockIdx.z);
	const uint32_t skipped = blockIdx.y * XFP_CUDA_EACH_VECTORS, first = call.first + skipped;
	const uint32_t count = min(call.count - skipped, XFP_CUDA_EACH_VECTORS);
	const corner at_;
	float sum = 0;

	start_next_launch();
	wait_for_launch_before();
	for (uint32_t half = 0; half < 2 && at_.row_of(half) < call.weights.rows; half++) {
		uint32_t v = 0;

		for (; count - v >= AT_ONCE; v += AT_ONCE)
			vectors_of_row<Number, AT_ONCE>(call, m, own, at_, half, first, v, sum);
		for (; v < count; v++)
			vectors_of_row<Number, 1>(call, m, own, at_, half, first, v, sum);
	}
	if (add_parts(call, &word, at_.vector < count && at_.row < call.weights.rows, sum))
		store_result(call.result, (first + at_.vector) * call.result.stride + at_.row, sum);
}

template <class Number> XFP_DEVICE void multiply_list(const xfp_cuda_multiply &call)
{
	__shared__ uint32_t word;
	const corner at_;
	list_part own(call);
	one_product one;
	float sum = 0;

	start_next_launch();
	wait_for_launch_before();
	while (own.next(call, one)) {
		for (uint32_t half = 0; half < 2 && at_.row_of(half) < call.weights.rows; half++) {
			float value[1];

			row_times<Number, 1>(call, at<xfp_cuda_matrix>(call.weights.matrix)[one.expert], own.columns,
					     at_.row_of(half), one.x, value);
			if (at_.lane == half * 16)
				sum = __fadd_rn(sum, __fmul_rn(one.weight, value[0]));
		}
	}
	if (own.named && add_parts(call, &word, !at_.vector && at_.row < call.weights.rows, sum))
		store_result(call.result, own.result * call.result.stride + at_.row, sum);
}

/* ---- many vectors -------------------------------------------------------------------------------- */

template <class Number> constexpr bool wants_power = false;
template <> constexpr bool wants_power<number_bf16> = true;

/* Convert two numbers of a row to fp16; `up` is the power of two. */
XFP_DEVICE uint32_t as_halves(number_f16, uint32_t two, float)
{
	return two;
}

XFP_DEVICE uint32_t as_halves(number_bf16, uint32_t two, float up)
{
	float low = __fmul_rn(__uint_as_float(two << 16), up), high = __fmul_rn(__uint_as_float(two & 0xffff0000u), up);

	return float_to_half(low) | static_cast<uint32_t>(float_to_half(high)) << 16;
}

/* Four steps of two rows; the next four are loaded while these are multiplied. */
template <class Number> struct kept_rows {
	const uint8_t *row[2];
	uint32_t left; /* remaining bytes of the row */
	float up[2];
	uint2 now[2][XFP_WIDE_STEPS], next[2][XFP_WIDE_STEPS];

	static XFP_DEVICE uint32_t stages(const xfp_cuda_weights &w)
	{
		return (w.cols + XFP_WIDE_COLUMNS - 1) / XFP_WIDE_COLUMNS;
	}

	/* Rows end at any multiple of sixteen bytes. */
	XFP_DEVICE void load(uint32_t t)
	{
#pragma unroll
		for (unsigned v = 0; v < XFP_WIDE_STEPS; v++) {
			bool there = 32 * v + 8 * t < left;

#pragma unroll
			for (int i = 0; i < 2; i++)
				next[i][v] = there ? __ldg(reinterpret_cast<const uint2 *>(row[i] + 32 * v))
						   : make_uint2(0, 0);
		}
		row[0] += XFP_WIDE_COLUMNS * 2;
		row[1] += XFP_WIDE_COLUMNS * 2;
		left = left > XFP_WIDE_COLUMNS * 2 ? left - XFP_WIDE_COLUMNS * 2 : 0;
	}

	XFP_DEVICE void enter_stage(uint32_t stage, uint32_t stages)
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
#pragma unroll
			for (unsigned v = 0; v < XFP_WIDE_STEPS; v++)
				now[i][v] = next[i][v];
		if (stage + 1 < stages)
			load(threadIdx.x % 4);
	}

	XFP_DEVICE fragment step(int v) const
	{
		fragment a;

#pragma unroll
		for (int i = 0; i < 2; i++) {
			a.first[i] = as_halves(Number(), now[i][v].x, up[i]);
			a.second[i] = as_halves(Number(), now[i][v].y, up[i]);
		}
		return a;
	}
};

/* Return the largest finite magnitude of a row of bf16, by its bits, the same in every lane. */
XFP_DEVICE uint32_t largest_of(const uint8_t *row, uint32_t bytes)
{
	uint32_t largest = 0;

	for (uint32_t i = threadIdx.x % 32 * 4; i < bytes; i += 128) {
		uint32_t two = __ldg(reinterpret_cast<const uint32_t *>(row + i));

#pragma unroll
		for (int half = 0; half < 2; half++) {
			uint32_t bits = (half ? two : two << 16) & 0x7fff0000u;

			if (bits < 0x7f800000u)
				largest = max(largest, bits);
		}
	}
	return warp_max(largest);
}

template <class Number> struct kept_wide : nothing_shared {
	static constexpr int RUN = 1;
	static constexpr bool SCALED = false, MIDPOINTS = false, OUTLIERS = false;

	kept_rows<Number> rows;
	float down[2];

	XFP_DEVICE void find_powers(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p)
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
			for (uint32_t r = 0; r < 8; r++) {
				uint32_t row = min(p.first_row + 8 * i + r, w.rows - 1);
				uint64_t begin = m.index + static_cast<uint64_t>(row) * w.row_bytes;
				int e = exponent_for(largest_of(at<uint8_t>(begin), w.row_bytes));

				if (p.g == r) {
					rows.up[i] = power(e);
					down[i] = power(-e);
				}
			}
	}

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p, uint8_t *)
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			rows.row[i] = at<uint8_t>(m.index) + static_cast<uint64_t>(p.row[i]) * w.row_bytes + 8 * p.t;
			rows.up[i] = down[i] = 1;
		}
		rows.left = w.row_bytes;
		if constexpr (wants_power<Number>)
			find_powers(w, m, p);
		rows.load(p.t);
	}

	XFP_DEVICE void enter_run(uint32_t)
	{
	}

	XFP_DEVICE float row_factor(const xfp_cuda_matrix &, uint32_t, int i) const
	{
		return down[i];
	}
};

/* ---- kernels ------------------------------------------------------------------------------------- */

#define KERNELS(TYPE)                                                     \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS, 4) \
		xfp_multiply_##TYPE##_each(const xfp_cuda_multiply call)  \
	{                                                                 \
		multiply_vectors<number_##TYPE>(call);                    \
	}                                                                 \
	extern "C" __global__ void __launch_bounds__(XFP_CUDA_THREADS, 3) \
		xfp_multiply_##TYPE##_list(const xfp_cuda_multiply call)  \
	{                                                                 \
		multiply_list<number_##TYPE>(call);                       \
	}

KERNELS(f32)
KERNELS(f16)
KERNELS(bf16)
XFP_CUDA_WIDE_KERNEL(xfp_multiply_f16, kept_wide<number_f16>)
XFP_CUDA_WIDE_KERNEL(xfp_multiply_bf16, kept_wide<number_bf16>)
