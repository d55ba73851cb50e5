/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.h - the frame for many vectors: 128 rows and 128 planes of vectors per block.
 *
 * Each warp of a block has sixteen rows, with all columns and all planes of the block. So a weight is converted to a
 * fragment once for 128 planes, in registers, and sums never leave their thread. The warps share the vectors, 64
 * columns at a time, which are copied to shared memory while the previous ones are multiplied. (An alternative,
 * fragments in shared memory with 64 by 64 results per warp, would decode once for twice as many planes; whether the
 * sums of groups leave enough registers for that has not been tried.)
 *
 * A stage is 64 columns, in four steps. Its planes are 160 bytes apart, so that the eight bytes that each of sixteen
 * threads loads at once are in different banks.
 *
 * Outliers are multiplied in the stage of their column: one of every row at a time, as a sixteen by sixteen matrix with
 * the outliers on its diagonal.
 */
#ifndef XFP_CUDA_WIDE_H
#define XFP_CUDA_WIDE_H

#include "kernels/cuda/copies.h"
#include "kernels/cuda/tile.h"

#define XFP_WIDE_STEPS 4u                          /* steps per stage */
#define XFP_WIDE_COLUMNS (16u * XFP_WIDE_STEPS)    /* columns per stage */
#define XFP_WIDE_TILES (XFP_CUDA_WIDE_PLANES / 8u) /* tiles of eight planes */
#define XFP_WIDE_AT_ONCE 4u                        /* missing tiles are skipped in units of this */

/* ---- vectors ------------------------------------------------------------------------------------- */

/* Advance an offset in the ring of XFP_CUDA_WIDE_STAGES, in bytes from its beginning. */
XFP_DEVICE void next_place(uint32_t &place)
{
	place += XFP_CUDA_WIDE_STAGE_BYTES;
	if (place == XFP_CUDA_WIDE_STAGES * XFP_CUDA_WIDE_STAGE_BYTES)
		place = 0;
}

/* The planes of a block; a thread copies pieces of sixteen bytes of them. */
struct wide_planes {
	const uint8_t *from;   /* next stage, in the first plane of which this thread copies a piece */
	uint64_t stride;       /* bytes to its next plane, 32 planes further */
	uint32_t ring, to;     /* address in shared memory; offset of the next place */
	uint32_t first, count; /* its first plane, and number of planes */

	XFP_DEVICE wide_planes(const xfp_cuda_vectors &x, uint32_t vector, uint32_t vectors, uint8_t *shared)
	{
		uint32_t piece = threadIdx.x % 8 * 16, bytes = x.cols * 2;

		first = threadIdx.x / 8;
		count = vectors * x.each;
		from = at<uint8_t>(x.planes) + (static_cast<uint64_t>(vector) * x.each + first) * bytes + piece;
		stride = static_cast<uint64_t>(bytes) * 32;
		ring = shared_address(shared) + first * XFP_CUDA_WIDE_STRIDE + piece;
		to = 0;
	}

	/* Fill missing planes, up to a multiple of 32, with zeros. */
	XFP_DEVICE void begin_copies()
	{
		const uint8_t *piece = from;

#pragma unroll
		for (uint32_t i = 0; i < XFP_CUDA_WIDE_PLANES / 32; i++, piece += stride) {
			if (i * 32 >= count)
				break;
			copy_async(ring + to + i * 32 * XFP_CUDA_WIDE_STRIDE, piece, i * 32 + first < count);
		}
		from += XFP_WIDE_COLUMNS * 2;
		next_place(to);
	}
};

/* ---- sums ---------------------------------------------------------------------------------------- */

/* Sums of a thread: two rows times two planes of every tile. */
struct wide_sums {
	float c[XFP_WIDE_TILES][4];

	XFP_DEVICE void clear()
	{
#pragma unroll
		for (unsigned n = 0; n < XFP_WIDE_TILES; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				c[n][i] = 0;
	}

	XFP_DEVICE void add_scaled(unsigned n, const float (&other)[4], const float (&scale)[2])
	{
#pragma unroll
		for (int i = 0; i < 4; i++)
			c[n][i] = __fmaf_rn(other[i], scale[i / 2], c[n][i]);
	}
};

/* Call f(n) for all tiles that have planes. */
template <class F> XFP_DEVICE void each_tile(uint32_t planes, F f)
{
#pragma unroll
	for (unsigned q = 0; q < XFP_WIDE_TILES / XFP_WIDE_AT_ONCE; q++) {
		if (q * XFP_WIDE_AT_ONCE * 8 >= planes)
			break;
#pragma unroll
		for (unsigned n = 0; n < XFP_WIDE_AT_ONCE; n++)
			f(q * XFP_WIDE_AT_ONCE + n);
	}
}

/* ---- outliers ------------------------------------------------------------------------------------ */

/* The next outlier of each of a thread's two rows. */
struct wide_outliers {
	static constexpr uint32_t NONE = 0xffffffffu;

	uint32_t next[2], end[2], column[2];
	float inverse[2]; /* inverse of the row's factor, which outliers do not have */
	uint64_t columns, residuals;

	XFP_DEVICE void find(int i)
	{
		column[i] = next[i] < end[i] ? __ldg(at<uint32_t>(columns) + next[i]) : NONE;
	}

	XFP_DEVICE void begin(const xfp_cuda_matrix &m, const place &p, const float (&factor)[2])
	{
		columns = m.column;
		residuals = m.residual;
#pragma unroll
		for (int i = 0; i < 2; i++) {
			next[i] = m.pointer ? __ldg(at<uint32_t>(m.pointer) + p.row[i]) : 0;
			end[i] = m.pointer ? __ldg(at<uint32_t>(m.pointer) + p.row[i] + 1) : 0;
			inverse[i] = __frcp_rn(factor[i]);
			find(i);
		}
	}

	XFP_DEVICE bool any(uint32_t stop) const
	{
		return __any_sync(0xffffffffu, min(column[0], column[1]) < stop);
	}

	/* Add the next outlier of each row before `stop`, the end of a stage. */
	XFP_DEVICE void add(wide_sums &total, const uint8_t *stage, uint32_t stop, uint32_t planes, const place &p)
	{
		const uint8_t *x = stage + p.g * XFP_CUDA_WIDE_STRIDE;
		uint32_t residual[2], offset[2], from[4];
		fragment a;

#pragma unroll
		for (int i = 0; i < 2; i++) {
			residual[i] = offset[i] = 0;
			if (column[i] < stop) {
				residual[i] = __ldg(at<uint16_t>(residuals) + next[i]);
				offset[i] = (column[i] + XFP_WIDE_COLUMNS - stop) * 2;
				next[i]++;
				find(i);
			}
			/* Row g + 8 i has its outlier in column g + 8 i. */
			bool mine = p.t == p.g / 4 + 2 * i;

			residual[i] = mine ? residual[i] << (p.g & 1) * 16 : 0;
			a.first[i] = p.g & 2 ? 0 : residual[i];
			a.second[i] = p.g & 2 ? residual[i] : 0;
		}
#pragma unroll
		for (int i = 0; i < 4; i++) {
			uint32_t lane = (4 * p.t + i) % 8 * 4;
			uint32_t low = __shfl_sync(0xffffffffu, offset[0], lane);
			uint32_t high = __shfl_sync(0xffffffffu, offset[1], lane);

			from[i] = p.t < 2 ? low : high;
		}
		each_tile(planes, [&](unsigned n) {
			const uint8_t *plane = x + n * 8 * XFP_CUDA_WIDE_STRIDE;
			auto number = [&](int i) -> uint32_t {
				return *reinterpret_cast<const uint16_t *>(plane + from[i]);
			};
			float one[4] = { 0, 0, 0, 0 };

			mma(one, a, make_uint2(number(0) | number(1) << 16, number(2) | number(3) << 16));
			total.add_scaled(n, one, inverse);
		});
	}
};

/* ---- the frame ----------------------------------------------------------------------------------- */

/* The four steps of a stage. */
template <class Weights>
XFP_DEVICE void multiply_stage(Weights &w, wide_sums &total, const uint8_t *stage, uint32_t first_step, uint32_t planes,
			       const place &p)
{
	constexpr int run = Weights::RUN;
	const fragment ones = { { 0x3c003c00, 0x3c003c00 }, { 0x3c003c00, 0x3c003c00 } };
	const uint8_t *x = stage + p.g * XFP_CUDA_WIDE_STRIDE + p.t * 8;

#pragma unroll
	for (int v = 0; v < static_cast<int>(XFP_WIDE_STEPS); v += run) {
		fragment a[run];

		w.enter_run(first_step + v);
#pragma unroll
		for (int r = 0; r < run; r++)
			a[r] = w.rows.step(v + r);
		each_tile(planes, [&](unsigned n) {
			const uint8_t *plane = x + n * 8 * XFP_CUDA_WIDE_STRIDE + v * 32;
			float one[4] = { 0, 0, 0, 0 }, sum[4] = { 0, 0, 0, 0 };

#pragma unroll
			for (int r = 0; r < run; r++) {
				uint2 columns = *reinterpret_cast<const uint2 *>(plane + r * 32);

				if constexpr (!Weights::SCALED)
					mma(total.c[n], a[r], columns);
				else
					mma(one, a[r], columns);
				if constexpr (Weights::MIDPOINTS)
					mma(sum, ones, columns);
			}
			if constexpr (Weights::SCALED)
				total.add_scaled(n, one, w.scale);
			if constexpr (Weights::MIDPOINTS)
				total.add_scaled(n, sum, w.midpoint);
		});
	}
}

/* Store results through shared memory, 16 rows times 64 planes per warp, so that lanes write neighbouring rows. */
XFP_DEVICE void store_wide(const wide_sums &total, const xfp_cuda_multiply &call, const xfp_cuda_matrix &m,
			   uint32_t first, uint32_t count, const float (&factor)[2], const place &p, uint8_t *shared)
{
	constexpr uint32_t tiles = XFP_WIDE_TILES / 2;
	const uint32_t each = call.vectors.each, r = p.lane % 16, row = p.first_row + r;
	float *sums_of = reinterpret_cast<float *>(shared) + p.warp * tiles * 8 * 16;
	float low = __shfl_sync(0xffffffffu, factor[0], r % 8 * 4),
	      high = __shfl_sync(0xffffffffu, factor[1], r % 8 * 4);
	const float own = r < 8 ? low : high;

#pragma unroll
	for (uint32_t half = 0; half < 2; half++) {
		__syncwarp();
#pragma unroll
		for (uint32_t n = 0; n < tiles; n++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				sums_of[(8 * n + 2 * p.t + i % 2) * 16 + p.g + i / 2 * 8] =
					total.c[half * tiles + n][i];
		__syncwarp();
		for (uint32_t i = p.lane / 16; i < tiles * 8 / each; i += 2) {
			uint32_t v = half * (tiles * 8 / each) + i;
			const float *sum_of = sums_of + i * each * 16 + r;
			float sum = each == 1 ? sum_of[0] : __fadd_rn(sum_of[0], sum_of[16]);

			if (v >= count || row >= call.weights.rows)
				break;
			sum = __fmul_rn(__fmul_rn(sum, at<float>(call.vectors.scale)[first + v]), own);
			store_result(call.result, (first + v) * call.result.stride + row,
				     static_cast<float>(static_cast<double>(sum) * m.unit));
		}
	}
}

template <class Weights> XFP_DEVICE void multiply_wide(const xfp_cuda_multiply &call, uint8_t *shared)
{
	const xfp_cuda_matrix &m = call.matrix;
	const place p(call.weights.rows, blockIdx.x * XFP_CUDA_WARPS + threadIdx.x / 32);
	const uint32_t most = XFP_CUDA_WIDE_PLANES / call.vectors.each, skipped = blockIdx.y * most;
	const uint32_t first = call.first + skipped, count = min(call.count - skipped, most);
	const uint32_t stages = decltype(Weights::rows)::stages(call.weights);
	uint8_t *ring = shared + Weights::shared_bytes(call.weights);
	wide_planes x(call.vectors, first, count, ring);
	wide_outliers outliers;
	wide_sums total;
	float factor[2];
	Weights w;

	start_next_launch();
	wait_for_launch_before();
#pragma unroll
	for (uint32_t s = 0; s < XFP_CUDA_WIDE_STAGES - 1; s++) {
		if (s < stages)
			x.begin_copies();
		commit_copies();
	}
	w.stage(call.weights, shared);
	w.begin(call.weights, m, p, shared);
#pragma unroll
	for (int i = 0; i < 2; i++)
		factor[i] = w.row_factor(m, p.row[i], i);
	if constexpr (Weights::OUTLIERS)
		outliers.begin(m, p, factor);
	total.clear();
	for (uint32_t s = 0, here = 0; s < stages; s++, next_place(here)) {
		/* Wait for this thread's copies, then for all threads', who are then done with the previous stage. */
		wait_for_copies<XFP_CUDA_WIDE_STAGES - 2>();
		__syncthreads();
		if (s + XFP_CUDA_WIDE_STAGES - 1 < stages)
			x.begin_copies();
		commit_copies();
		w.rows.enter_stage(s, stages);
		multiply_stage(w, total, ring + here, s * XFP_WIDE_STEPS, x.count, p);
		if constexpr (Weights::OUTLIERS)
			while (outliers.any((s + 1) * XFP_WIDE_COLUMNS))
				outliers.add(total, ring + here, (s + 1) * XFP_WIDE_COLUMNS, x.count, p);
	}
	__syncthreads();
	store_wide(total, call, m, first, count, factor, p, ring);
}

#define XFP_CUDA_WIDE_KERNEL(NAME, ...) XFP_CUDA_KERNEL(NAME##_wide, 1, multiply_wide<__VA_ARGS__>)

#endif
