/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - how many blocks share a tile, for small matrices.
 *
 * A device reaches its full bandwidth when about 30 KB per multiprocessor are in flight; the largest devices have 132
 * to 148 multiprocessors. That takes two blocks each, whose warps read one or two chunks at once. A matrix of 1,024
 * rows has 64 tiles. With one block per tile, half of such a device would be idle, and the other warps would read chunk
 * after chunk, each at memory latency. So tiles are shared until there are between XFP_CUDA_COUNTERS and twice as many
 * blocks. Combining the parts at the end costs about as much as reading two chunks.
 *
 * A list divides products before columns, so that each block starts fewer of them. Warps share the chunks of a row, so
 * none is idle while a part has one chunk per warp; a row of a kept tensor belongs to one warp.
 *
 * These parts depend on the shape, never on the device, because they affect the bits of results. The shares of
 * xfp_cuda_share may depend on the device, because sums of integers are exact.
 */
#include "runtime/cuda/plan.h"

_Static_assert(XFP_CUDA_PART_BYTES >= 8 * XFP_CUDA_THREADS, "a part must hold a value of any type per thread");

#define MIN_RUN 2                                      /* minimum cost of a run, in chunks */
#define MAX_SHARING ((1u << XFP_CUDA_COUNT_BITS) - 2u) /* maximum workers per tile; the first may have one chunk */

static uint32_t divided(uint64_t a, uint64_t b)
{
	return (uint32_t)((a + b - 1) / b);
}

struct xfp_cuda_split xfp_cuda_split(const struct xfp_cuda_plan *plan, unsigned k, size_t results, size_t products)
{
	struct xfp_cuda_weights w = xfp_cuda_plan_weights(plan, k, 0);
	uint32_t least = plan->method < XFP_CUDA_FP8 ? 1 : XFP_CUDA_WARPS, runs, parts = 1;
	uint32_t each = products > results && results ? divided(products, results) : 1; /* on average */
	struct xfp_cuda_split split = { .parts = 1, .part_chunks = w.chunks, .part_products = each };
	uint64_t blocks = (uint64_t)xfp_cuda_tiles(plan->rows) * results;

	if (!blocks || blocks >= XFP_CUDA_COUNTERS)
		return split;
	runs = divided(XFP_CUDA_COUNTERS, blocks);
	split.part_products = divided(each, runs < each ? runs : each);
	runs = divided(each, split.part_products);
	blocks *= runs;
	if (blocks < XFP_CUDA_COUNTERS && w.chunks >= 2 * least) {
		parts = divided(XFP_CUDA_COUNTERS, blocks);
		parts = parts < w.chunks / least ? parts : w.chunks / least;
		split.part_chunks = divided(w.chunks, parts);
		parts = divided(w.chunks, split.part_chunks);
	}
	split.parts = runs * parts;
	return split;
}

uint32_t xfp_cuda_parts_of_one(const struct xfp_cuda_plan *plan, unsigned k)
{
	return plan->expert[0].integers ? 1 : xfp_cuda_split(plan, k, 1, 1).parts;
}

/* Give all `resident` warps runs of the same cost, so that they end together. A run costs at least MIN_RUN chunks,
 * because starting and ending a warp costs time, too. The counters limit how many warps can share a tile. */
struct xfp_cuda_share xfp_cuda_share(const struct xfp_cuda_plan *plan, unsigned k, uint32_t resident)
{
	struct xfp_cuda_weights w = xfp_cuda_plan_weights(plan, k, 0);
	uint64_t all = (uint64_t)xfp_cuda_tiles(plan->rows) * (w.chunks + XFP_CUDA_TILE_END(k));
	uint32_t workers = resident < XFP_CUDA_WORKERS ? resident : XFP_CUDA_WORKERS;
	struct xfp_cuda_share share = { .run = divided(all, workers) };

	if (share.run < MIN_RUN)
		share.run = MIN_RUN;
	if (share.run < divided(w.chunks, MAX_SHARING))
		share.run = divided(w.chunks, MAX_SHARING);
	share.blocks = divided(divided(all, share.run), XFP_CUDA_WARPS);
	return share;
}
