/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2.cu - rows with one codebook each.
 */
#include "kernels/cuda/few.h"
#include "kernels/cuda/wide_rows.h"

/* The planes of the thread's rows, for all groups. */
template <int K> struct v2_books {
	static constexpr uint32_t TABLES = 0;
	static constexpr bool NAMES = false;

	codebook<K> book[2];

	XFP_DEVICE void begin(const uint8_t *)
	{
	}

	XFP_DEVICE void begin_tile(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, uint32_t tile, const place &p)
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint32_t row = min(tile * XFP_CUDA_TILE_ROWS + p.g + 8 * i, w.rows - 1);

			book[i].load(at<uint8_t>(m.integer) + static_cast<uint64_t>(row) * codebook_bytes<K>());
		}
	}

	static XFP_DEVICE void stage(const xfp_cuda_weights &, uint8_t *)
	{
	}

	template <int GROUPS> XFP_DEVICE void arrive() const
	{
	}

	XFP_DEVICE void enter(const uint32_t (&)[2], int) const
	{
	}

	static XFP_DEVICE xfp_cuda_pair meaning(const xfp_cuda_matrix &m, uint32_t row)
	{
		return at<xfp_cuda_pair>(m.pair)[row];
	}

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &, uint32_t)
	{
		return 1;
	}
};

/* ROWS: rows per block. */
template <int K, class Rows, uint32_t ROWS> struct v2_weights {
	static constexpr int RUN = 1;
	static constexpr bool INTEGERS = K <= 4, SCALED = false, MIDPOINTS = false, OUTLIERS = true;

	Rows rows;
	uint32_t t;

	static XFP_DEVICE uint32_t shared_bytes(const xfp_cuda_weights &)
	{
		return aligned16(ROWS * codebook_bytes<K>());
	}

	XFP_DEVICE void stage(const xfp_cuda_weights &, uint8_t *)
	{
	}

	/* The codebooks of the block are contiguous; each thread loads its two to registers. */
	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p, uint8_t *shared)
	{
		constexpr uint32_t size = codebook_bytes<K>();
		uint32_t first = p.first_row / ROWS * ROWS, count = min(w.rows - first, ROWS);

		copy_to_shared(shared, m.code + static_cast<uint64_t>(first) * size, count * size);
		__syncthreads();
#pragma unroll
		for (int i = 0; i < 2; i++)
			rows.book[i].load(shared + (p.row[i] - first) * size);
		rows.begin(w, m, p);
		t = p.t;
	}

	XFP_DEVICE void enter_run(uint32_t)
	{
	}

	template <int N> XFP_DEVICE void chunk(uint32_t chunk, const planes<N> &x, sums<N> &total)
	{
		const planes<N> here = x.from(natural_offset(chunk * lanes<K>::VECTORS, t));

		rows.load(chunk);
#pragma unroll
		for (int v = 0; v < lanes<K>::VECTORS; v++) {
			if (rows.past(chunk, v))
				break;
			fragment a = rows.step(v);

			here.multiply(total, a, natural_offset(v, 0));
		}
	}

	using books = v2_books<K>;
	using integers = integer_path<K, books>;

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &, uint32_t, int = 0)
	{
		return 1;
	}
};

template <int K> using tile = v2_weights<K, two_rows<K>, XFP_CUDA_TILE_ROWS>;
template <int K> using wide = v2_weights<K, stage_rows<K>, XFP_CUDA_WIDE_ROWS>;

#define KERNELS(K)                                                                         \
	XFP_CUDA_KERNELS(xfp_multiply_v2_k##K, K <= 4 ? XFP_CUDA_LIST_BLOCKS : 2, tile<K>) \
	XFP_CUDA_WIDE_KERNEL(xfp_multiply_v2_k##K, wide<K>)

KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
KERNELS(6)

#define FEW_KERNELS(K) XFP_CUDA_FEW_KERNELS(xfp_multiply_v2_k##K, K, 0, v2_books<K>)

FEW_KERNELS(2)
FEW_KERNELS(3)
FEW_KERNELS(4)
