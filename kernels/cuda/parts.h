/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - a tile that several blocks share, because a small matrix has too few tiles to keep a device busy.
 *
 * Blocks of one x and y are the parts of a tile, in z. Each adds up its chunks of the columns (and, in a list, its run
 * of the products), and leaves what it has in the workspace; the one that arrives last adds all of it, in the order of
 * the parts, so that who comes when does not show. Outliers of a row are one part's.
 *
 * The workspace is the caller's (xfp_cuda.h), one a stream: counters, which are 0 between launches, then the sums of
 * few.h, then XFP_CUDA_PART_BYTES for each part. A launch that may begin before the one in front of it has ended has to
 * wait for that (griddepcontrol.wait) before it comes here.
 *
 * What a frame has to bring is one value for each thread, of a type of up to 8 bytes that can be added: sums that are
 * already scaled, as float, or two of them, in tile.h; integers, or doubles made of them, where sums are exact.
 */
#ifndef XFP_CUDA_PARTS_H
#define XFP_CUDA_PARTS_H

#include "kernels/cuda/device.h"

/* One of the parts of a row's columns. */
struct column_part {
	uint32_t begin, end; /* chunks */

	XFP_DEVICE column_part(const xfp_cuda_multiply &call, uint32_t number)
	{
		begin = number * call.part_chunks;
		end = min(begin + call.part_chunks, call.weights.chunks);
	}

	/* Whether a row's outliers are this part's: in the upper half of a tile they are the first one's, and in the
	 * lower half the second one's, where there is one. By `end`, which is wanted anyway. */
	XFP_DEVICE bool has_outliers(const xfp_cuda_multiply &call, bool lower) const
	{
		if (!lower || call.weights.chunks <= call.part_chunks)
			return end <= call.part_chunks;
		return end > call.part_chunks && end <= 2 * call.part_chunks;
	}
};

struct one_product { /* struct xfp_product of xfp.h */
	uint32_t expert, x, y;
	float weight;
};

/* What a block has of the products of one result, a run of them, and its part of the columns. Every warp looks through
 * the list by itself, a product a lane: it is as long as vectors are many, and each block has to look at all of it. */
struct list_part {
	uint64_t result;
	uint32_t column_parts, first, last; /* of the products that name the result */
	uint32_t named, seen, left;         /* of them so far; of the list; and bits of those among the last 32 seen */
	column_part columns;

	XFP_DEVICE explicit list_part(const xfp_cuda_multiply &call)
	    : column_parts((call.weights.chunks + call.part_chunks - 1) / call.part_chunks),
	      columns(call, blockIdx.z % column_parts)
	{
		uint32_t run = blockIdx.z / column_parts;

		result = call.first + blockIdx.y;
		first = run * call.part_products;
		last = (run + 1) * column_parts == gridDim.z ? 0xffffffffu : first + call.part_products - 1;
		named = seen = left = 0;
	}

	/* Which of the next 32 go to the result, and can. All parts of a result find the same. */
	XFP_DEVICE uint32_t look(const xfp_cuda_multiply &call) const
	{
		uint32_t i = seen + threadIdx.x % 32;
		const one_product *one = at<one_product>(call.products) + i;

		return __ballot_sync(0xffffffffu, i < call.product_count && one->y == result &&
							  one->expert < call.weights.experts &&
							  one->x < call.vectors.count);
	}

	/* The block's next product, the same for all its threads, if there is one more. */
	XFP_DEVICE bool next(const xfp_cuda_multiply &call, one_product &one)
	{
		for (;;) {
			while (!left) {
				if (seen >= call.product_count)
					return false;
				left = look(call);
				seen += 32;
			}

			uint32_t i = seen - 33 + __ffs(left);

			left &= left - 1;
			if (named >= first && named <= last) {
				named++;
				one = at<one_product>(call.products)[i];
				return true;
			}
			named++;
		}
	}
};

/* How many were there before; 0 again after the last of them. What threads did before a barrier of their block is
 * released by whoever comes here after it, and so it is seen after the barrier that follows. */
XFP_DEVICE uint32_t arrive(uint32_t *counter, uint32_t last)
{
	uint32_t before;

	asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
		     : "=r"(before)
		     : "l"(counter), "r"(last)
		     : "memory");
	return before;
}

/* The thread's value becomes the sum of all parts' values, in one block of them; whether it is this one and the thread
 * has a value. For all threads of a block; `shared` is a word that none of them wants any more after a barrier. */
template <class T> XFP_DEVICE bool add_parts(const xfp_cuda_multiply &call, uint32_t *shared, bool mine, T &value)
{
	static_assert(sizeof(T) * XFP_CUDA_THREADS <= XFP_CUDA_PART_BYTES, "a part has a value of each thread");

	if (gridDim.z == 1)
		return mine;

	uint32_t tile = blockIdx.y * gridDim.x + blockIdx.x;
	uint32_t *counter = reinterpret_cast<uint32_t *>(call.workspace) + tile;
	uint8_t *left = reinterpret_cast<uint8_t *>(call.workspace) + XFP_CUDA_PARTS_OFFSET +
			static_cast<uint64_t>(tile * gridDim.z) * XFP_CUDA_PART_BYTES + threadIdx.x * sizeof(T);

	if (mine)
		*reinterpret_cast<T *>(left + blockIdx.z * XFP_CUDA_PART_BYTES) = value;
	__syncthreads();
	if (!threadIdx.x)
		*shared = arrive(counter, gridDim.z - 1);
	__syncthreads();
	if (*shared != gridDim.z - 1 || !mine)
		return false;
	value = *reinterpret_cast<const T *>(left);
	for (uint32_t i = 1; i < gridDim.z; i++)
		value += *reinterpret_cast<const T *>(left + i * XFP_CUDA_PART_BYTES);
	return true;
}

#endif
