/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2a.cu - groups with a codebook of the library, a scale and a midpoint.
 *
 * The midpoint is multiplied by the sum of the group's activations. The sum is computed as a product with ones in place
 * of weights, for which the tensor cores have spare capacity.
 */
#include "kernels/cuda/wide_rows.h"

template <int K, class Rows> struct v2a_weights : no_integers {
	static constexpr int RUN = 1;
	static constexpr bool SCALED = true, MIDPOINTS = true, OUTLIERS = true;
	static constexpr int VECTORS = lanes<K>::VECTORS;
	static constexpr uint32_t ONES = 0x3c003c00; /* 1, 1 */

	Rows rows;
	float scale[2], midpoint[2];        /* for wide.h */
	const uint8_t *pair[2], *number[2]; /* of the row's first group */
	const uint8_t *library;
	uint32_t log, t; /* log2 of the steps per group */

	static XFP_DEVICE uint32_t shared_bytes(const xfp_cuda_weights &w)
	{
		return aligned16(w.codebooks * codebook_bytes<K>());
	}

	XFP_DEVICE void stage(const xfp_cuda_weights &w, uint8_t *shared)
	{
		log = w.group - 4;
		library = shared;
		copy_to_shared(shared, w.library, w.codebooks * codebook_bytes<K>());
		__syncthreads();
	}

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p, uint8_t *)
	{
		rows.begin(w, m, p);
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint64_t first = static_cast<uint64_t>(p.row[i]) * w.row_groups;

			pair[i] = in_register(at<uint8_t>(m.group) + 4 * first);
			number[i] = in_register(at<uint8_t>(m.number) + first);
		}
		t = p.t;
	}

	XFP_DEVICE void enter(uint32_t which, float (&scale)[2], float (&midpoint)[2])
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint32_t both = __ldg(reinterpret_cast<const uint32_t *>(pair[i]) + which);

			rows.book[i].load(library + __ldg(number[i] + which) * codebook_bytes<K>());
			scale[i] = half_to_float(static_cast<uint16_t>(both));
			midpoint[i] = half_to_float(static_cast<uint16_t>(both >> 16));
		}
	}

	XFP_DEVICE void enter_run(uint32_t v)
	{
		if (!(v & ((1u << log) - 1)))
			enter(v >> log, scale, midpoint);
	}

	template <int N> XFP_DEVICE void chunk(uint32_t chunk, const planes<N> &x, sums<N> &total)
	{
		const planes<N> here = x.from(natural_offset(chunk * VECTORS, t));
		const fragment ones = { { ONES, ONES }, { ONES, ONES } };
		const uint32_t first = chunk * VECTORS >> log, within = (1u << log) - 1;
		float scale[2], midpoint[2];
		sums<N> one, activations;

		one.clear();
		activations.clear();
		rows.load(chunk);
#pragma unroll
		for (int v = 0; v < VECTORS; v++) {
			if (rows.past(chunk, v))
				break;
			if (!v || !(v & within)) {
				if (v) {
					total.add_scaled(one, scale);
					total.add_scaled(activations, midpoint);
					one.clear();
					activations.clear();
				}
				enter(first + (v >> log), scale, midpoint);
			}
			here.multiply(one, activations, rows.step(v), ones, natural_offset(v, 0));
		}
		total.add_scaled(one, scale);
		total.add_scaled(activations, midpoint);
	}

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &, uint32_t, int = 0)
	{
		return 1;
	}
};

#define KERNELS(K)                                                           \
	XFP_CUDA_KERNELS(xfp_multiply_v2a_k##K, 2, v2a_weights<K, two_rows<K>>) \
	XFP_CUDA_WIDE_KERNEL(xfp_multiply_v2a_k##K, v2a_weights<K, stage_rows<K>>)

KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
KERNELS(6)
