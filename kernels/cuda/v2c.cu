/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2c.cu - groups with one byte each, which selects a codebook of the library and a ratio.
 */
#include "kernels/cuda/few.h"
#include "kernels/cuda/wide_rows.h"

/* Planes of the products that the groups' bytes select, in shared memory: those of the thread's rows, for one group. */
template <int K> struct v2c_books {
	static constexpr uint32_t TABLES = 256 * codebook_bytes<K>();
	static constexpr bool NAMES = true;

	codebook<K> book[2];
	uint32_t tables; /* shared address of the tables */

	/* Starts to copy the tables. */
	static XFP_DEVICE void stage(const xfp_cuda_weights &w, uint8_t *shared)
	{
		if (w.tables)
			for (uint32_t i = threadIdx.x * 16; i < TABLES; i += XFP_CUDA_THREADS * 16)
				copy_async(shared_address(shared + i), at<uint8_t>(w.tables + i));
		commit_copies();
	}

	XFP_DEVICE void begin(const uint8_t *shared)
	{
		tables = shared_address(shared);
	}

	XFP_DEVICE void begin_tile(const xfp_cuda_weights &, const xfp_cuda_matrix &, uint32_t, const place &) const
	{
	}

	/* Waits for the tables, whose copies were committed before the last GROUPS. */
	template <int GROUPS> XFP_DEVICE void arrive() const
	{
		wait_for_copies<GROUPS>();
		__syncthreads();
	}

	/* Enter group j of the thread; each row has a byte per group. */
	XFP_DEVICE void enter(const uint32_t (&names)[2], int j)
	{
#pragma unroll
		for (int i = 0; i < 2; i++)
			book[i].load_product(tables, lanes<K>::SHARE == 1 ? names[i] : prmt(names[i], 0, 0x4440 + j));
	}

	static XFP_DEVICE xfp_cuda_pair meaning(const xfp_cuda_matrix &m, uint32_t)
	{
		return *at<xfp_cuda_pair>(m.pair);
	}

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &m, uint32_t row)
	{
		return __ldg(at<float>(m.row) + row);
	}
};

/* LOG: log2 of the columns per group. */
template <int K, int LOG, class Rows> struct v2c_weights {
	static constexpr int RUN = LOG == 5 ? 2 : 1;
	static constexpr bool INTEGERS = K <= 4 && LOG == 5, SCALED = true, MIDPOINTS = false, OUTLIERS = true;
	static constexpr int VECTORS = lanes<K>::VECTORS;
	static constexpr uint32_t NAMES = VECTORS >> (LOG - 4);                          /* per chunk of a row */
	static constexpr uint32_t CHUNK = LOG == 5 ? XFP_CUDA_TILE_ROWS * NAMES : NAMES; /* bytes between chunks */

	Rows rows;
	float scale[2]; /* for wide.h */
	const uint8_t *group[2];
	const uint8_t *library;
	const float *ratio;
	uint32_t ratios, t; /* ratios: log2 of the number of ratios */

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
		uint32_t size = 256 / w.codebooks;

		ratios = 31 - __clz(size);
		library = shared;
		ratio = reinterpret_cast<const float *>(shared + library_bytes(w));
		copy_to_shared(shared, w.library, w.codebooks * codebook_bytes<K>());
		copy_to_shared(shared + library_bytes(w), w.ratio, 4 * size);
		__syncthreads();
	}

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p, uint8_t *)
	{
		rows.begin(w, m, p);
#pragma unroll
		for (int i = 0; i < 2; i++)
			group[i] = in_register(at<uint8_t>(m.group) +
					       (LOG == 5 ? tile_row<NAMES>(p.row[i], w.row_groups)
							 : static_cast<uint64_t>(p.row[i]) * w.row_groups));
		t = p.t;
	}

	/* Load the codebooks of a group, and return its ratios. */
	XFP_DEVICE void enter(const uint8_t *const (&of_chunk)[2], uint32_t which, float (&scale)[2])
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint32_t byte = __ldg(of_chunk[i] + which);

			rows.book[i].load(library + (byte >> ratios) * codebook_bytes<K>());
			scale[i] = ratio[byte & ((1u << ratios) - 1)];
		}
	}

	XFP_DEVICE void enter_run(uint32_t v)
	{
		uint32_t name = v >> (LOG - 4);

		enter(group, name / NAMES * CHUNK + name % NAMES, scale);
	}

	template <int N> XFP_DEVICE void chunk(uint32_t chunk, const planes<N> &x, sums<N> &total)
	{
		const planes<N> here = x.from(natural_offset(chunk * VECTORS, t));
		const uint8_t *const of_chunk[2] = { in_register(group[0] + chunk * CHUNK),
						     in_register(group[1] + chunk * CHUNK) };
		float scale[2];
		sums<N> one;

		one.clear();
		rows.load(chunk);
#pragma unroll
		for (int v = 0; v < VECTORS; v++) {
			if (rows.past(chunk, v))
				break;
			if (v % (1 << (LOG - 4)) == 0) {
				if (v) {
					total.add_scaled(one, scale);
					one.clear();
				}
				enter(of_chunk, v >> (LOG - 4), scale);
			}
			here.multiply(one, rows.step(v), natural_offset(v, 0));
		}
		total.add_scaled(one, scale);
	}

	using books = v2c_books<K>;
	using integers = integer_path<K, books>;

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &m, uint32_t row, int = 0)
	{
		return __ldg(at<float>(m.row) + row);
	}
};

template <int K, int LOG> using tile = v2c_weights<K, LOG, two_rows<K>>;
template <int K, int LOG> using wide = v2c_weights<K, LOG, stage_rows<K>>;

#define KERNELS(K)                                                                               \
	XFP_CUDA_KERNELS(xfp_multiply_v2c_k##K, K == 3 ? 1 : 2, tile<K, 4>)                      \
	XFP_CUDA_KERNELS(xfp_multiply_v2c32_k##K, K == 4 ? XFP_CUDA_LIST_BLOCKS : 2, tile<K, 5>) \
	XFP_CUDA_WIDE_KERNEL(xfp_multiply_v2c_k##K, wide<K, 4>)                                  \
	XFP_CUDA_WIDE_KERNEL(xfp_multiply_v2c32_k##K, wide<K, 5>)

KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
KERNELS(6)

XFP_CUDA_FEW_KERNELS(xfp_multiply_v2c32_k2, 2, 1, v2c_books<2>)
XFP_CUDA_FEW_KERNELS(xfp_multiply_v2c32_k3, 3, 1, v2c_books<3>)
XFP_CUDA_FEW_KERNELS(xfp_multiply_v2c32_k4, 4, 1, v2c_books<4>)
