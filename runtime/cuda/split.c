/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - small matrices: how many blocks share a tile.
 *
 * A device reads at full speed while some 30 KB are on their way to each multiprocessor, of which the largest have 132
 * to 148. That is two blocks each, whose warps read a chunk or two at once. A matrix of 1,024 rows is 64 tiles, which
 * would leave half of such a device idle, and the warps of the others would take chunk after chunk, at the latency of
 * memory each. So tiles are shared until there are XFP_CUDA_COUNTERS blocks or more, fewer than twice as many. That
 * costs the meeting of the parts at the end, about as long as reading two chunks.
 *
 * A list shares out products before columns: then each block has fewer of them to begin. Warps share the chunks of a
 * row, so none of them goes without as long as a part has one for each; a row that was kept is one warp's.
 *
 * These parts follow from the shape, never from the device: a result's bits depend on them. Shares of xfp_cuda_share
 * may follow from the device, since sums of integers are exact.
 */
#include "runtime/cuda/plan.h"

_Static_assert(XFP_CUDA_PART_BYTES >= 8 * XFP_CUDA_THREADS, "a part has a value for each thread, of whatever type");

#define LEAST_RUN 2                                     /* the cost of a run, in chunks */
#define MOST_SHARING ((1u << XFP_CUDA_COUNT_BITS) - 2u) /* workers of a tile, whose first may have one chunk of it */

static uint32_t divided(uint64_t a, uint64_t b)
{
	return (uint32_t)((a + b - 1) / b);
}

struct xfp_cuda_split xfp_cuda_split(const struct xfp_cuda_plan *plan, unsigned k, size_t results, size_t products)
{
	struct xfp_cuda_weights w = xfp_cuda_plan_weights(plan, k, 0);
	uint32_t least = plan->method < XFP_CUDA_FP8 ? 1 : XFP_CUDA_WARPS, runs, parts = 1;
	uint32_t each =
		products > results && results ? divided(products, results) : 1; /* on average: nobody has read it */
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

/* Runs have the same cost, so that all of the `resident` warps end at the same time. A run costs LEAST_RUN chunks or
 * more, since a warp also has to begin and to end; and no more warps share a tile than its sums count. */
struct xfp_cuda_share xfp_cuda_share(const struct xfp_cuda_plan *plan, unsigned k, uint32_t resident)
{
	struct xfp_cuda_weights w = xfp_cuda_plan_weights(plan, k, 0);
	uint64_t all = (uint64_t)xfp_cuda_tiles(plan->rows) * (w.chunks + XFP_CUDA_TILE_END(k));
	uint32_t workers = resident < XFP_CUDA_WORKERS ? resident : XFP_CUDA_WORKERS;
	struct xfp_cuda_share share = { .run = divided(all, workers) };

	if (share.run < LEAST_RUN)
		share.run = LEAST_RUN;
	if (share.run < divided(w.chunks, MOST_SHARING))
		share.run = divided(w.chunks, MOST_SHARING);
	share.blocks = divided(divided(all, share.run), XFP_CUDA_WARPS);
	return share;
}
