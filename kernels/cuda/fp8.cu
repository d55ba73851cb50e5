/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp8.cu - e4m3 codes with one scale per row.
 *
 * A code is converted to fp16 by moving its bits, the same way on every device. The exponent bias differs by 8, so the
 * result is 2^-8 of the value, and the row's factor compensates. Only the NaN code needs special treatment.
 */
#include "kernels/cuda/wide.h"

/* Convert the codes that a selector picks from four to two fp16 numbers. */
XFP_DEVICE uint32_t two_codes(uint32_t four, uint32_t selector)
{
	uint32_t high = prmt(four, 0, selector);
	uint32_t bits = (high & 0x80008000u) | (high & 0x7f007f00u) >> 1;

	if ((high & 0x7f00u) == 0x7f00u)
		bits |= 0x7fffu;
	if ((high & 0x7f000000u) == 0x7f000000u)
		bits |= 0x7fff0000u;
	return bits;
}

XFP_DEVICE float row_scale(const xfp_cuda_matrix &m, uint32_t row)
{
	return __ldg(at<float>(m.code) + row) * 256;
}

struct fp8_weights : no_integers, nothing_shared {
	const uint8_t *row[2];
	uint32_t t;

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p, uint8_t *)
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
			row[i] = at<uint8_t>(m.index) + static_cast<uint64_t>(p.row[i]) * w.row_bytes + 16 * p.t;
		t = p.t;
	}

	/* A thread processes sixteen columns in four steps of four, so that it loads them at once. */
	template <int N> XFP_DEVICE void chunk(uint32_t chunk, const planes<N> &x, sums<N> &total)
	{
		const planes<N> here = x.from(natural_offset(chunk * 4 + t, 0));
		uint4 code[2];

#pragma unroll
		for (int i = 0; i < 2; i++)
			code[i] = load_once(row[i] + static_cast<uint64_t>(chunk) * XFP_CUDA_FP8_COLUMNS);
#pragma unroll
		for (int v = 0; v < 4; v++) {
			fragment a;

#pragma unroll
			for (int i = 0; i < 2; i++) {
				uint4 c = code[i];
				uint32_t four = v == 0 ? c.x : v == 1 ? c.y : v == 2 ? c.z : c.w;

				a.first[i] = two_codes(four, 0x1404);
				a.second[i] = two_codes(four, 0x3424);
			}
			here.multiply(total, a, natural_offset(0, v));
		}
	}

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &m, uint32_t row)
	{
		return row_scale(m, row);
	}
};

/* For many vectors a thread processes columns in the order of the other methods, four bytes at a time, and loads the
 * next stage while it multiplies this one. */
struct fp8_stage_rows {
	const uint8_t *row[2];
	uint32_t now[2][XFP_WIDE_STEPS], next[2][XFP_WIDE_STEPS];

	static XFP_DEVICE uint32_t stages(const xfp_cuda_weights &w)
	{
		return w.chunks;
	}

	XFP_DEVICE void load()
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
#pragma unroll
			for (unsigned v = 0; v < XFP_WIDE_STEPS; v++)
				next[i][v] = __ldg(reinterpret_cast<const uint32_t *>(row[i] + 16 * v));
			row[i] += XFP_WIDE_COLUMNS;
		}
	}

	XFP_DEVICE void enter_stage(uint32_t stage, uint32_t stages)
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
#pragma unroll
			for (unsigned v = 0; v < XFP_WIDE_STEPS; v++)
				now[i][v] = next[i][v];
		if (stage + 1 < stages)
			load();
	}

	XFP_DEVICE fragment step(int v) const
	{
		fragment a;

#pragma unroll
		for (int i = 0; i < 2; i++) {
			a.first[i] = two_codes(now[i][v], 0x1404);
			a.second[i] = two_codes(now[i][v], 0x3424);
		}
		return a;
	}
};

struct fp8_wide : nothing_shared {
	static constexpr int RUN = 1;
	static constexpr bool SCALED = false, MIDPOINTS = false, OUTLIERS = false;

	fp8_stage_rows rows;

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p, uint8_t *)
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
			rows.row[i] = at<uint8_t>(m.index) + static_cast<uint64_t>(p.row[i]) * w.row_bytes + 4 * p.t;
		rows.load();
	}

	XFP_DEVICE void enter_run(uint32_t)
	{
	}

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &m, uint32_t row, int)
	{
		return row_scale(m, row);
	}
};

XFP_CUDA_KERNELS(xfp_multiply_fp8, 2, fp8_weights)
XFP_CUDA_WIDE_KERNEL(xfp_multiply_fp8, fp8_wide)
