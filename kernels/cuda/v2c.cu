/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2c.cu - groups of one byte each, which names a codebook of the library and a ratio.
 */
#include "kernels/cuda/grouped.h"

/* LOG: log2 of a group's columns, where that is known; else 0. */
template <int K, int LOG> struct v2c_weights {
	static constexpr int VECTORS = lanes<K>::VECTORS;

	two_rows<K> rows;
	const uint8_t *group[2];
	const uint8_t *library;
	const float *ratio;
	uint32_t ratios, log, t;

	static XFP_DEVICE uint32_t library_bytes(const xfp_cuda_weights &w)
	{
		return aligned16(w.codebooks * codebook_bytes<K>());
	}

	static XFP_DEVICE uint32_t shared_bytes(const xfp_cuda_weights &w)
	{
		return library_bytes(w) + aligned16(4 * (256 / w.codebooks));
	}

	XFP_DEVICE void stage(const xfp_cuda_weights &w, uint8_t *shared)
	{
		ratios = 256 / w.codebooks;
		log = LOG ? LOG : w.group;
		library = shared;
		ratio = reinterpret_cast<const float *>(shared + library_bytes(w));
		copy_to_shared(shared, w.library, w.codebooks * codebook_bytes<K>());
		copy_to_shared(shared + library_bytes(w), w.ratio, 4 * ratios);
		__syncthreads();
	}

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p, uint8_t *)
	{
		rows.begin(w, m, p);
#pragma unroll
		for (int i = 0; i < 2; i++)
			group[i] = at<uint8_t>(m.group) + static_cast<uint64_t>(p.row[i]) * w.row_groups;
		t = p.t;
	}

	/* Have the codebooks of the group that step v of the matrix is in; its ratios. */
	XFP_DEVICE void enter(uint32_t v, float (&scale)[2])
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint32_t byte = __ldg(group[i] + (v >> (log - 4)));

			rows.book[i].load(library + byte / ratios * codebook_bytes<K>());
			scale[i] = ratio[byte % ratios];
		}
	}

	template <int N> XFP_DEVICE void chunk(uint32_t chunk, const planes<N> &x, sums<N> &total)
	{
		uint32_t within = (1u << (log - 4)) - 1; /* steps of a group, less one */
		float scale[2];
		sums<N> one;

		one.clear();
		rows.load(chunk);
#pragma unroll
		for (int v = 0; v < VECTORS; v++) {
			uint32_t step = chunk * VECTORS + v;

			if (!v || !(v & within)) {
				if (v) {
					total.add_scaled(one, scale);
					one.clear();
				}
				enter(step, scale);
			}
			x.multiply(one, rows.step(v), natural_offset(step, t));
		}
		total.add_scaled(one, scale);
	}

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &m, uint32_t row)
	{
		return __ldg(at<float>(m.row) + row);
	}
};

#define KERNELS(K)                                                  \
	XFP_CUDA_KERNELS(xfp_multiply_v2c_k##K, v2c_weights<K, 0>)   \
	XFP_CUDA_KERNELS(xfp_multiply_v2c32_k##K, v2c_weights<K, 5>)

KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
KERNELS(6)
