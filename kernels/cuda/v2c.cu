/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2c.cu - groups of one byte each, which names a codebook of the library and a ratio.
 */
#include "kernels/cuda/wide_rows.h"

/* Planes of the products that the groups' bytes name, in shared memory: those of the thread's rows for one group of 32
 * columns. LOG: log2 of a group's columns, where that is 5; else 0, and two of the thread's have one byte at least. */
template <int K, int LOG> struct v2c_books {
	static constexpr int SHARE = lanes<K>::SHARE; /* groups of 32 columns of the thread, of a chunk */

	static constexpr int NAMES = LOG || SHARE == 1 ? 1 : SHARE / 2;

	struct group_names {
		uint32_t byte[2][NAMES];
	};
	using names = group_names;

	codebook<K> book[2];
	const uint8_t *tables, *group[2];
	uint32_t log, t;

	XFP_DEVICE void begin(const xfp_cuda_weights &w, const xfp_cuda_matrix &m, const place &p,
			      const uint8_t *shared)
	{
		tables = shared;
		log = w.group;
		t = p.t;
#pragma unroll
		for (int i = 0; i < 2; i++)
			group[i] = at<uint8_t>(m.group) + static_cast<uint64_t>(p.row[i]) * w.row_groups;
	}

	XFP_DEVICE void fetch(names &n, uint32_t chunk) const
	{
		uint32_t first = (chunk * 4 + t) * SHARE;

#pragma unroll
		for (int i = 0; i < 2; i++) {
			if constexpr (!LOG) {
#pragma unroll
				for (int j = 0; j < NAMES; j++)
					n.byte[i][j] = __ldg(group[i] + ((first + 2 * j) >> (log - 5)));
			} else if constexpr (SHARE == 1) {
				n.byte[i][0] = __ldg(group[i] + first);
			} else if constexpr (SHARE == 2) {
				n.byte[i][0] = __ldg(reinterpret_cast<const uint16_t *>(group[i] + first));
			} else {
				n.byte[i][0] = __ldg(reinterpret_cast<const uint32_t *>(group[i] + first));
			}
		}
	}

	XFP_DEVICE void enter(const names &n, int j)
	{
#pragma unroll
		for (int i = 0; i < 2; i++) {
			uint32_t byte = !LOG ? n.byte[i][LOG ? 0 : j / 2] : SHARE == 1 ? n.byte[i][0] :
								  prmt(n.byte[i][0], 0, 0x4440 + j);

			book[i].load_product(tables, byte);
		}
	}
};

/* LOG: log2 of a group's columns, where that is known; else 0. */
template <int K, int LOG, class Rows> struct v2c_weights {
	static constexpr int RUN = LOG == 5 ? 2 : 1;
	static constexpr bool INTEGERS = K <= 4, SCALED = true, MIDPOINTS = false, OUTLIERS = true;
	static constexpr int VECTORS = lanes<K>::VECTORS;

	Rows rows;
	float scale[2]; /* of wide.h */
	const uint8_t *group[2];
	const uint8_t *library;
	const float *ratio;
	uint32_t ratios, log, t; /* ratios, and steps of a group: as their logarithms */

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
		log = (LOG ? LOG : w.group) - 4;
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
			group[i] = in_register(at<uint8_t>(m.group) + static_cast<uint64_t>(p.row[i]) * w.row_groups);
		t = p.t;
	}

	/* Have the codebooks of a group; its ratios. */
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
		if (RUN > 1 || !(v & ((1u << log) - 1)))
			enter(group, v >> log, scale);
	}

	template <int N> XFP_DEVICE void chunk(uint32_t chunk, const planes<N> &x, sums<N> &total)
	{
		const planes<N> here = x.from(natural_offset(chunk * VECTORS, t));
		const uint32_t first = chunk * VECTORS >> log, within = (1u << log) - 1;
		const uint8_t *const of_chunk[2] = { in_register(group[0] + first), in_register(group[1] + first) };
		float scale[2];
		sums<N> one;

		one.clear();
		rows.load(chunk);
#pragma unroll
		for (int v = 0; v < VECTORS; v++) {
			if (rows.past(chunk, v))
				break;
			if (LOG ? v % (1 << (LOG - 4)) == 0 : !v || !(v & within)) {
				if (v) {
					total.add_scaled(one, scale);
					one.clear();
				}
				enter(of_chunk, LOG ? v >> (LOG - 4) : v >> log, scale);
			}
			here.multiply(one, rows.step(v), natural_offset(v, 0));
		}
		total.add_scaled(one, scale);
	}

	XFP_DEVICE void stage_integers(const xfp_cuda_weights &w, uint8_t *shared)
	{
		if (INTEGERS && w.tables)
			copy_to_shared(shared, w.tables, 256 * codebook_bytes<K>());
	}

	template <int PAIRS>
	XFP_DEVICE void multiply_integers(const xfp_cuda_multiply &call, const xfp_cuda_matrix &m, uint32_t first,
					  uint32_t count, const place &p, const column_part &own, const uint8_t *tables,
					  int64_t *partial)
	{
		if constexpr (INTEGERS) {
			v2c_books<K, LOG> books;

			books.begin(call.weights, m, p, tables);
			integer_tile<K, PAIRS>(books, call, m, first, count, p, own, partial);
		}
	}

	static XFP_DEVICE xfp_cuda_pair meaning(const xfp_cuda_matrix &m, uint32_t)
	{
		return *at<xfp_cuda_pair>(m.pair);
	}

	static XFP_DEVICE float row_factor(const xfp_cuda_matrix &m, uint32_t row, int = 0)
	{
		return __ldg(at<float>(m.row) + row);
	}
};

template <int K, int LOG> using tile = v2c_weights<K, LOG, two_rows<K>>;
template <int K, int LOG> using wide = v2c_weights<K, LOG, stage_rows<K>>;

#define KERNELS(K)                                              \
	XFP_CUDA_KERNELS(xfp_multiply_v2c_k##K, tile<K, 0>)     \
	XFP_CUDA_KERNELS(xfp_multiply_v2c32_k##K, tile<K, 5>)   \
	XFP_CUDA_WIDE_KERNEL(xfp_multiply_v2c_k##K, wide<K, 0>) \
	XFP_CUDA_WIDE_KERNEL(xfp_multiply_v2c32_k##K, wide<K, 5>)

KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
KERNELS(6)
