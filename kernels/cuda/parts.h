/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - a tile that several blocks share, because a small matrix has too few tiles to keep a device busy.
 *
 * Blocks with the same x and y are the parts of a tile, in z. Each sums its chunks of the columns (and, in a list, its
 * run of the products), and stores its sums in the workspace. The block that arrives last adds all parts in order, so
 * the order of arrival has no effect. The outliers of a row belong to one part.
 *
 * The workspace is the caller's (xfp_cuda.h), one per stream: counters, which are 0 between launches, then the sums of
 * few.h, then XFP_CUDA_PART_BYTES for each part. A launch that may begin before the previous one has ended must wait
 * for it (griddepcontrol.wait) before it uses the workspace.
 *
 * A frame provides one value per thread, of a type of up to 8 bytes that can be added: scaled sums, as float or pairs
 * of float, in tile.h; integers, or doubles made from them, if sums are exact.
 */
#ifndef XFP_CUDA_PARTS_H
#define XFP_CUDA_PARTS_H

#include "kernels/cuda/device.h"

/* A part of a row's columns. */
struct column_part {
	uint32_t begin, end; /* chunks */

	XFP_DEVICE column_part(const xfp_cuda_multiply &call, uint32_t number)
	{
		begin = number * call.part_chunks;
		end = min(begin + call.part_chunks, call.weights.chunks);
	}

	/* Return whether a row's outliers belong to this part: the first part has those of the upper half of a tile,
	 * the second part, if there is one, those of the lower half. Tests `end`, which is in a register anyway. */
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

/* A block's run of the products of one result, and its part of the columns. Every warp scans the list by itself, one
 * product per lane: the list is as long as there are vectors, and every block must see all of it. */
struct list_part {
	uint64_t result;
	uint32_t column_parts, first, last; /* numbers of this result's products */
	uint32_t named, seen, left;         /* found and scanned so far; bits found among the last 32 */
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

	/* Return which of the next 32 products belong to the result and are valid; the same in all parts of a
	 * result. */
	XFP_DEVICE uint32_t look(const xfp_cuda_multiply &call) const
	{
		uint32_t i = seen + threadIdx.x % 32;
		const one_product *one = at<one_product>(call.products) + i;

		return __ballot_sync(0xffffffffu, i < call.product_count && one->y == result &&
							  one->expert < call.weights.experts &&
							  one->x < call.vectors.count);
	}

	/* Get the block's next product, the same for all its threads, if there is one. */
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

/* Return how many parts arrived before; the last one resets the counter to 0. Writes of the block's threads before a
 * barrier are released by the thread that calls this after it, and so are visible after the next barrier. */
XFP_DEVICE uint32_t arrive(uint32_t *counter, uint32_t last)
{
	uint32_t before;

	asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
		     : "=r"(before)
		     : "l"(counter), "r"(last)
		     : "memory");
	return before;
}

/* Replace the thread's value by the sum of all parts' values, in one block of them. Returns whether this is that block
 * and the thread has a value. Call from all threads of a block; `shared` is a word that no thread uses after a
 * barrier. */
template <class T> XFP_DEVICE bool add_parts(const xfp_cuda_multiply &call, uint32_t *shared, bool mine, T &value)
{
	static_assert(sizeof(T) * XFP_CUDA_THREADS <= XFP_CUDA_PART_BYTES, "a part must hold a value per thread");

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
