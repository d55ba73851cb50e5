/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of device images: parts are separate, kernels have their memory on every device, and matrices beyond the limits
 * of the kernels are refused.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/common/lane_index.h"
#include "runtime/cuda/devices.h"
#include "runtime/cuda/plan.h"
#include "runtime/xfp_cuda.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/many_members.h"

static struct xfp_error err;

/* ---- shared memory ----------------------------------------------------------------------------- */

/* Bytes of a ring (kernels/cuda/ring.h), part by part: per warp and slot the indices of sixteen rows, three digits per
 * column and vector, and a name for each row and 32 columns. */
static uint32_t ring_bytes(unsigned k, unsigned vectors, bool named)
{
	uint32_t columns = xfp_chunk_columns(k), slots = k == 3 ? 2 : 3;
	uint32_t slot = 16 * columns / 8 * k + 3 * columns * vectors + (named ? 16 * columns / 32 : 0);

	return slots * 8 * slot;
}

/* The sizes of the kernels' own layout; see kernels/cuda/tile.h and few.h. */
static void shared_memory(void **state)
{
	size_t shapes = 0, large = 0;

	(void)state;
	for (enum xfp_cuda_method method = XFP_CUDA_F32; method < XFP_CUDA_METHODS; method++)
		for (unsigned k = 2; k <= 6; k++)
			for (unsigned books = 1; books <= 256; books *= 2)
				for (enum xfp_cuda_form form = XFP_CUDA_M1; form < XFP_CUDA_FORMS; form++) {
					bool named = method == XFP_CUDA_V2C32;
					bool integers = k <= 4 && (method == XFP_CUDA_V2 || named);
					bool several = form == XFP_CUDA_I2 || form == XFP_CUDA_I4;
					uint32_t bytes, own = method < XFP_CUDA_V2    ? 0
							      : method == XFP_CUDA_V2 ? 32u << k
										      : books * 2 << k;
					uint32_t table = named ? 512u << k : 0, most;

					assert_int_equal(xfp_cuda_has_form(method, k, XFP_CUDA_I1), integers);
					assert_int_equal(xfp_cuda_has_form(method, k, XFP_CUDA_I2), integers);
					assert_int_equal(xfp_cuda_has_form(method, k, XFP_CUDA_I4), integers);
					if (!xfp_cuda_has_form(method, k, form) ||
					    (method >= XFP_CUDA_V2C && (books < 4 || books > 16)))
						continue;
					bytes = xfp_cuda_shared_bytes(method, k, books, form);
					most = xfp_cuda_max_shared_bytes(method, k, form);
					own = (own + 15) / 16 * 16 + (method >= XFP_CUDA_V2C ? 4 * 256 / books : 0);
					if (form == XFP_CUDA_LIST && integers)
						own += table + ring_bytes(k, 1, named);
					if (form == XFP_CUDA_WIDE)
						own = (method == XFP_CUDA_V2 ? 8 * own : own) + 61440;
					else if (form == XFP_CUDA_I1)
						own = table + ring_bytes(k, 1, named) + 4096;
					else if (form == XFP_CUDA_I2)
						own = table + ring_bytes(k, 2, named) + 4096;
					else if (form == XFP_CUDA_I4)
						own = table + ring_bytes(k, 4, named) + 4096;
					else if (form == XFP_CUDA_M4)
						own += 4 * 4608;
					else
						own += 4608;
					assert_int_equal(bytes,
							 method < XFP_CUDA_FP8 && form != XFP_CUDA_WIDE ? 0 : own);
					assert_true(bytes <= most);
					/* Everything else fits on every device: see integer_vectors. */
					for (size_t d = 0; d < xfp_cuda_device_count; d++)
						assert_true(several || most <= xfp_cuda_devices[d].shared_bytes);
					assert_true(several || most <= 101376);
					large += most > 101376;
					shapes++;
				}
	assert_true(shapes > 300);
	/* i4 with k = 2, i2 and i4 with k = 3: of v2 nine times, of v2c32 with 4, 8 and 16 codebooks. */
	assert_int_equal(large, 3 * 9 + 3 * 3);
}

/* Vectors that integer kernels take at a time, by the shared memory of a block: at least one on every device. */
static void integer_vectors(void **state)
{
	static const unsigned small[] = { 0, 0, 2, 1, 4, 0, 0 }, large[] = { 0, 0, 4, 4, 4, 0, 0 };

	(void)state;
	for (enum xfp_cuda_method method = XFP_CUDA_F32; method < XFP_CUDA_METHODS; method++)
		for (unsigned k = 2; k <= 6; k++) {
			bool any = method == XFP_CUDA_V2 || method == XFP_CUDA_V2C32;

			for (size_t d = 0; d < xfp_cuda_device_count; d++) {
				uint32_t bytes = xfp_cuda_devices[d].shared_bytes;
				unsigned vectors = xfp_cuda_integer_vectors(method, k, bytes);

				assert_int_equal(vectors, any ? (bytes > 101376 ? large : small)[k] : 0);
				for (enum xfp_cuda_form form = XFP_CUDA_I1; any && k <= 4 && form <= XFP_CUDA_I4;
				     form++)
					assert_int_equal(xfp_cuda_max_shared_bytes(method, k, form) <= bytes,
							 1u << (form - XFP_CUDA_I1) <= vectors);
			}
			assert_int_equal(xfp_cuda_integer_vectors(method, k, 16384), 0);
			/* info --device prints the larger number of bytes of lists */
			for (unsigned books = 4; any && k <= 4 && books <= 16; books *= 2)
				assert_true(xfp_cuda_shared_bytes(method, k, books, XFP_CUDA_I1) <=
					    xfp_cuda_shared_bytes(method, k, books, XFP_CUDA_LIST));
		}
}

static void names(void **state)
{
	char name[XFP_CUDA_KERNEL_NAME];

	(void)state;
	xfp_cuda_kernel_name(XFP_CUDA_V2C32, 4, XFP_CUDA_LIST, name);
	assert_string_equal(name, "xfp_multiply_v2c32_k4_list");
	xfp_cuda_kernel_name(XFP_CUDA_FP8, 0, XFP_CUDA_M4, name);
	assert_string_equal(name, "xfp_multiply_fp8_m4");
	xfp_cuda_kernel_name(XFP_CUDA_BF16, 0, XFP_CUDA_EACH, name);
	assert_string_equal(name, "xfp_multiply_bf16_each");
	xfp_cuda_kernel_name(XFP_CUDA_V2, 2, XFP_CUDA_I1, name);
	assert_string_equal(name, "xfp_multiply_v2_k2_i1");
	xfp_cuda_kernel_name(XFP_CUDA_V2C32, 3, XFP_CUDA_I2, name);
	assert_string_equal(name, "xfp_multiply_v2c32_k3_i2");
	xfp_cuda_kernel_name(XFP_CUDA_V2C32, 4, XFP_CUDA_I4, name);
	assert_string_equal(name, "xfp_multiply_v2c32_k4_i4");
}

static void expect_same_way(struct xfp_cuda_launch_shape way, struct xfp_cuda_launch_shape want)
{
	assert_int_equal(way.form, want.form);
	assert_int_equal(way.count, want.count);
	assert_int_equal(way.x, want.x);
	assert_int_equal(way.y, want.y);
}

/* Without the integer path; and with it, if there are too many vectors for it. */
static void expect_way(enum xfp_cuda_method method, uint32_t rows, size_t count, unsigned each,
		       struct xfp_cuda_launch_shape want)
{
	expect_same_way(xfp_cuda_choose_launch(method, rows, count, each, 0), want);
	for (unsigned integers = 1; count > 4 && integers <= 4; integers *= 2)
		expect_same_way(xfp_cuda_choose_launch(method, rows, count, each, integers), want);
}

#define WAY(...) ((struct xfp_cuda_launch_shape){ __VA_ARGS__ })

/* By shape alone: a few large blocks are preferred if they end earlier than many small ones. */
static void ways(void **state)
{
	(void)state;
	expect_way(XFP_CUDA_V2, 100, 4, 2, WAY(XFP_CUDA_M1, 4, 7, 1));
	expect_way(XFP_CUDA_V2, 100, 8, 1, WAY(XFP_CUDA_M1, 8, 7, 1));
	expect_way(XFP_CUDA_V2, 100, 5, 2, WAY(XFP_CUDA_M4, 5, 7, 1));
	expect_way(XFP_CUDA_V2, 100, 9, 1, WAY(XFP_CUDA_M4, 9, 7, 1));
	expect_way(XFP_CUDA_V2C32, 4096, 31, 1, WAY(XFP_CUDA_M4, 31, 256, 1));
	expect_way(XFP_CUDA_V2C32, 4096, 32, 1, WAY(XFP_CUDA_M4, 32, 256, 1));
	expect_way(XFP_CUDA_V2C32, 4096, 17, 2, WAY(XFP_CUDA_M4, 17, 256, 2));
	expect_way(XFP_CUDA_V2C32, 4096, 33, 1, WAY(XFP_CUDA_M4, 33, 256, 2));
	expect_way(XFP_CUDA_V2C32, 14336, 33, 1, WAY(XFP_CUDA_WIDE, 33, 112, 1));
	expect_way(XFP_CUDA_V2C32, 4096, 512, 1, WAY(XFP_CUDA_WIDE, 512, 32, 4));
	expect_way(XFP_CUDA_V2C32, 4096, 512, 2, WAY(XFP_CUDA_WIDE, 512, 32, 8));
	expect_way(XFP_CUDA_V2C32, 1, 1u << 24, 1, WAY(XFP_CUDA_M4, 65535 * 32, 1, 65535));
	expect_way(XFP_CUDA_FP8, 1 << 20, 1u << 24, 1, WAY(XFP_CUDA_WIDE, 65535 * 128, 8192, 65535));
	expect_way(XFP_CUDA_F32, 1000, 1000, 2, WAY(XFP_CUDA_EACH, 1000, 63, 63));
	expect_way(XFP_CUDA_BF16, 1000, 7, 1, WAY(XFP_CUDA_EACH, 7, 63, 1));
	expect_way(XFP_CUDA_BF16, 1000, 8, 1, WAY(XFP_CUDA_WIDE, 8, 8, 1));
	for (size_t count = 1; count <= 4; count++)
		for (unsigned each = 1; each <= 2; each++)
			expect_way(XFP_CUDA_V2C32, 100, count, each, WAY(XFP_CUDA_M1, (uint32_t)count, 7, 1));
	expect_way(XFP_CUDA_V2C32, 100, 5, 1, WAY(XFP_CUDA_M1, 5, 7, 1));
}

/* Up to four vectors, as many at a time as fit in the device's blocks; the number of planes does not matter. */
static void ways_of_integers(void **state)
{
	static const struct {
		size_t count;
		unsigned integers;
		enum xfp_cuda_form form;
		uint32_t taken;
	} cases[] = {
		{ 1, 1, XFP_CUDA_I1, 1 }, { 2, 1, XFP_CUDA_I1, 1 }, { 3, 1, XFP_CUDA_I1, 1 }, { 4, 1, XFP_CUDA_I1, 1 },
		{ 1, 2, XFP_CUDA_I1, 1 }, { 2, 2, XFP_CUDA_I2, 2 }, { 3, 2, XFP_CUDA_I2, 2 }, { 4, 2, XFP_CUDA_I2, 2 },
		{ 1, 4, XFP_CUDA_I1, 1 }, { 2, 4, XFP_CUDA_I2, 2 }, { 3, 4, XFP_CUDA_I4, 3 }, { 4, 4, XFP_CUDA_I4, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (unsigned each = 1; each <= 2; each++)
			for (uint32_t rows = 1; rows < 40; rows += 13)
				expect_same_way(xfp_cuda_choose_launch(i % 2 ? XFP_CUDA_V2 : XFP_CUDA_V2C32, rows,
								       cases[i].count, each, cases[i].integers),
						WAY(cases[i].form, cases[i].taken, xfp_cuda_tiles(rows), 1));
}

/* ---- parts of tiles ---------------------------------------------------------------------------- */

static struct xfp_cuda_split split_of(enum xfp_cuda_method method, unsigned k, uint32_t rows, uint32_t cols,
				      size_t results, size_t products)
{
	struct xfp_cuda_plan plan = { .method = method, .k = k, .rows = rows, .cols = cols };

	return xfp_cuda_split(&plan, k, results, products);
}

static void expect_split(struct xfp_cuda_split split, uint32_t parts, uint32_t chunks, uint32_t products)
{
	assert_int_equal(split.parts, parts);
	assert_int_equal(split.part_chunks, chunks);
	assert_int_equal(split.part_products, products);
}

static void splits(void **state)
{
	uint64_t seed = 5;
	int shared = 0;

	(void)state;
	expect_split(split_of(XFP_CUDA_V2, 4, 1024, 4096, 1, 1), 4, 8, 1);
	expect_split(split_of(XFP_CUDA_V2C32, 4, 1024, 14336, 1, 1), 4, 28, 1);
	expect_split(split_of(XFP_CUDA_V2, 2, 3072, 4096, 1, 1), 2, 8, 1);
	expect_split(split_of(XFP_CUDA_V2, 4, 4096, 4096, 1, 1), 1, 32, 1); /* tiles enough */
	expect_split(split_of(XFP_CUDA_V2, 3, 1024, 4096, 1, 1), 1, 8, 1);  /* a chunk per warp, not split */
	expect_split(split_of(XFP_CUDA_BF16, 0, 128, 4096, 1, 1), 16, 1, 1);
	/* eight experts: gate_up of one vector, down of one and of many */
	expect_split(split_of(XFP_CUDA_V2C32, 4, 768, 2048, 8, 8), 1, 16, 1);
	expect_split(split_of(XFP_CUDA_V2C32, 4, 2048, 768, 1, 8), 2, 6, 4);
	expect_split(split_of(XFP_CUDA_V2C32, 4, 512, 8192, 1, 3), 9, 22, 1);
	expect_split(split_of(XFP_CUDA_V2C32, 4, 2048, 768, 512, 4096), 1, 6, 8);
	expect_split(split_of(XFP_CUDA_V2C32, 4, 64, 65536, 70000, 2), 1, 512, 1);
	for (int i = 0; i < 100000; i++) {
		static const unsigned columns[] = { XFP_CUDA_KEPT_COLUMNS, XFP_CUDA_FP8_COLUMNS };
		enum xfp_cuda_method method = (enum xfp_cuda_method)(test_random(&seed) % XFP_CUDA_METHODS);
		unsigned k = method < XFP_CUDA_V2 ? 0 : 2 + (unsigned)(test_random(&seed) % 5);
		uint32_t rows = 1 + (uint32_t)(test_random(&seed) % 5000);
		uint32_t cols = 1 + (uint32_t)(test_random(&seed) % 70000);
		size_t results = 1 + test_random(&seed) % 20, products = 1 + test_random(&seed) % 100;
		uint64_t tiles = xfp_cuda_tiles(rows) * results, runs;
		uint32_t chunk = k ? xfp_chunk_columns(k) : columns[method == XFP_CUDA_FP8];
		uint32_t chunks = (cols + chunk - 1) / chunk;
		struct xfp_cuda_split split = split_of(method, k, rows, cols, results, products);
		uint32_t of_columns;

		/* every part has chunks, and enough of them; all parts have a place in a workspace, and each has its
		 * run */
		assert_true(split.part_chunks >= 1 && split.part_chunks <= chunks);
		of_columns = (chunks + split.part_chunks - 1) / split.part_chunks;
		assert_true(of_columns == 1 || method < XFP_CUDA_FP8 || split.part_chunks >= XFP_CUDA_WARPS);
		assert_int_equal(split.parts % of_columns, 0);
		runs = split.parts / of_columns;
		assert_true((runs - 1) * split.part_products < (products + results - 1) / results);
		assert_true(split.parts == 1 ||
			    (tiles < XFP_CUDA_COUNTERS && tiles * split.parts <= XFP_CUDA_MAX_PARTS));
		shared += split.parts > 1;
	}
	assert_true(shared > 10000 && shared < 90000);
}

/* ---- shares of a matrix ------------------------------------------------------------------------ */

static struct xfp_cuda_share share_of(unsigned k, uint32_t rows, uint32_t cols, uint32_t resident)
{
	struct xfp_cuda_plan plan = { .method = XFP_CUDA_V2, .k = k, .rows = rows, .cols = cols };

	return xfp_cuda_share(&plan, k, resident);
}

static void expect_share(struct xfp_cuda_share share, uint32_t run, uint32_t blocks)
{
	assert_int_equal(share.run, run);
	assert_int_equal(share.blocks, blocks);
}

static void shares(void **state)
{
	uint64_t seed = 11;
	size_t whole = 0, shared = 0, least = 0, limited = 0;

	(void)state;
	expect_share(share_of(4, 4096, 4096, 3168), 3,
		     363); /* 256 tiles of 32 chunks, with a cost of 2 to finish each */
	expect_share(share_of(4, 14336, 4096, 3168), 10, 381);
	expect_share(share_of(3, 1024, 4096, 2112), 2, 36); /* few tiles: only as many workers as can have two chunks */
	expect_share(share_of(4, 1, 128, 3168), 2, 1);
	expect_share(share_of(4, 14336, 4096, 8), 3808, 1);
	expect_share(share_of(4, 14336, 4096, 1 << 20), 5, 762); /* as many workers as a workspace has sums for */
	for (int i = 0; i < 100000; i++) {
		unsigned k = 2 + (unsigned)(test_random(&seed) % 3);
		uint32_t rows = 1 + (uint32_t)(test_random(&seed) % (i % 2 ? 20000 : 200));
		uint32_t cols = 1 + (uint32_t)(test_random(&seed) % 65536);
		uint32_t resident = 8 * (1 + (uint32_t)(test_random(&seed) % (i % 3 ? 500 : 3000)));
		uint64_t chunks = (cols + xfp_chunk_columns(k) - 1) / xfp_chunk_columns(k);
		uint64_t cost = chunks + (k == 3 ? 1 : 2), all = (rows + 15) / 16 * cost;
		uint64_t most = resident < XFP_CUDA_WORKERS ? resident : XFP_CUDA_WORKERS;
		struct xfp_cuda_share share = share_of(k, rows, cols, resident);
		uint64_t workers = (uint64_t)share.blocks * XFP_CUDA_WARPS;

		/* All chunks are covered, each block has some, and there are no more workers than can run at once, or
		 * have sums in a workspace. Shorter runs would need too many. */
		assert_true(share.run >= 2 && share.blocks >= 1);
		assert_true(workers * share.run >= all && (workers - XFP_CUDA_WARPS) * share.run < all);
		assert_true(workers <= resident && workers <= XFP_CUDA_WORKERS);
		assert_true(share.run == 2 || (share.run - 1) * most < all || (share.run - 1) * 254 < chunks);
		for (uint64_t tile = 0; tile < (rows + 15) / 16 && tile < 20; tile++) {
			uint64_t begin = tile * cost, first = begin / share.run,
				 last = (begin + chunks - 1) / share.run;

			assert_true(last < workers && last - first < 1 << XFP_CUDA_COUNT_BITS);
			whole += first == last;
			shared += first < last;
		}
		least += share.run == 2;
		limited += share.run > 2 && resident > XFP_CUDA_WORKERS;
	}
	assert_true(whole > 1000 && shared > 1000);
	assert_true(least > 1000 && limited > 1000);
	/* The low bits of a tile's sums count 255 workers at most. */
	expect_share(share_of(4, 16, 65536, 3168), 3, 22);
}

/* A workspace has space for counters, the sums of all workers, and parts, with the alignment of their accesses. */
static void workspace(void **state)
{
	(void)state;
	assert_int_equal(XFP_CUDA_SHARED_SUMS, XFP_CUDA_TILE_ROWS * XFP_CUDA_INTEGER_VECTORS * sizeof(int64_t));
	assert_int_equal(XFP_CUDA_WORKERS % XFP_CUDA_WARPS, 0);
	assert_int_equal(XFP_CUDA_SUMS_OFFSET, XFP_CUDA_COUNTERS * sizeof(uint32_t));
	assert_int_equal(XFP_CUDA_PARTS_OFFSET - XFP_CUDA_SUMS_OFFSET, XFP_CUDA_WORKERS * XFP_CUDA_SHARED_SUMS);
	assert_int_equal(XFP_CUDA_SUMS_OFFSET % XFP_CUDA_PART_ALIGN + XFP_CUDA_PARTS_OFFSET % XFP_CUDA_PART_ALIGN, 0);
	assert_int_equal(XFP_CUDA_WORKSPACE, 4 << 20);
	assert_true(XFP_CUDA_PARTS_OFFSET + XFP_CUDA_MAX_PARTS * XFP_CUDA_PART_BYTES <= XFP_CUDA_WORKSPACE);
	/* the warps of every device, at most 64 per multiprocessor, or those of its blocks of 3 */
	for (size_t d = 0; d < xfp_cuda_device_count; d++)
		assert_true(xfp_cuda_devices[d].processors * 3 * XFP_CUDA_WARPS <= XFP_CUDA_WORKERS);
}

/* ---- devices ----------------------------------------------------------------------------------- */

static void devices(void **state)
{
	(void)state;
	assert_string_equal(xfp_cuda_device("h100")->name, "h100");
	assert_string_equal(xfp_cuda_device("RTX PRO 6000")->name, "rtx-pro-6000");
	assert_string_equal(xfp_cuda_device("rtx4090")->name, "rtx-4090");
	assert_null(xfp_cuda_device("h1000"));
	assert_null(xfp_cuda_device(""));
	for (size_t d = 0; d < xfp_cuda_device_count; d++) {
		const struct xfp_cuda_device *device = &xfp_cuda_devices[d];

		assert_ptr_equal(xfp_cuda_device(device->name), device);
		assert_true(device->capability >= 80 && device->processors > 0);
		if (d)
			assert_true(strcmp(device[-1].name, device->name) < 0);
	}
}

/* ---- places ------------------------------------------------------------------------------------ */

/* Check a part of an image, which begins after the previous one. */
static void expect_part(uint64_t place, uint64_t bytes, uint64_t *end)
{
	if (!place)
		return;
	assert_int_equal(place % XFP_CUDA_PART_ALIGN, 0);
	assert_true(place >= *end && place - *end < XFP_CUDA_PART_ALIGN);
	*end = place + bytes;
}

static void expect_places(const struct xfp_cuda_plan *plan)
{
	uint64_t end = plan->experts * sizeof(struct xfp_cuda_matrix);

	expect_part(plan->library, (uint64_t)plan->codebooks * 2 << plan->k, &end);
	expect_part(plan->ratio, plan->codebooks ? 4 * 256 / plan->codebooks : 0, &end);
	expect_part(plan->tables, (512u << plan->k) + 8, &end);
	expect_part(plan->down, plan->slice.cols * 4, &end);
	for (uint32_t i = 0; i < plan->experts; i++) {
		const struct xfp_cuda_expert *e = &plan->expert[i];
		struct xfp_cuda_weights w = xfp_cuda_plan_weights(plan, e->k, 1 << 20);
		uint64_t element = plan->method == XFP_CUDA_F32 ? 4 : plan->method == XFP_CUDA_FP8 ? 1 : 2, all;
		uint64_t tiled = ((uint64_t)w.rows + 15) / 16 * 16; /* rows of whole tiles */

		all = e->k ? (uint64_t)w.chunks * xfp_chunk_columns(e->k) : w.row_bytes / element;
		assert_true(all >= w.cols && w.row_bytes == (e->k ? all / 8 * e->k : all * element));
		if (plan->method == XFP_CUDA_V2C32)
			assert_int_equal(w.row_groups, all / 32);
		else
			assert_true(!plan->group || (uint64_t)w.row_groups << plan->group >= all);
		assert_int_equal(e->group != 0, plan->group != 0);
		expect_part(e->index, (e->k ? tiled : (uint64_t)w.rows) * w.row_bytes, &end);
		assert_int_equal(e->pair != 0, xfp_cuda_has_integers(plan, e->k));
		if (plan->tables)
			assert_int_equal(e->pair, plan->tables + (512u << e->k));
		else
			expect_part(e->pair, (uint64_t)w.rows * 8, &end);
		expect_part(e->integer, (uint64_t)w.rows * (2u << e->k), &end);
		expect_part(e->code, (uint64_t)w.rows * (e->k ? 2u << e->k : 4), &end);
		expect_part(e->group,
			    (plan->method == XFP_CUDA_V2C32 ? tiled : (uint64_t)w.rows) * w.row_groups *
				    (plan->method == XFP_CUDA_V2A ? 4 : 1),
			    &end);
		expect_part(e->number, (uint64_t)w.rows * w.row_groups, &end);
		expect_part(e->row, (uint64_t)w.rows * 4, &end);
		expect_part(e->pointer, ((uint64_t)w.rows + 1) * 4, &end);
		expect_part(e->column, e->outliers * 4, &end);
		expect_part(e->residual, e->outliers * 2, &end);
	}
	assert_true(plan->bytes >= end && plan->bytes - end < XFP_CUDA_PART_ALIGN);
}

static void places(void **state)
{
	static const int kinds[] = { 0, 1, 2, 3, 4, FIXTURE_HALF_KEPT, FIXTURE_TWO_SIZES, FIXTURE_TILES };
	uint64_t seed = 3;

	(void)state;
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		struct fixture f;
		struct xfp_bundle *bundle;
		struct xfp_unit_info unit;
		struct xfp_cuda_plan plan;

		fixture_make_bundle(&f, kinds[kind]);
		bundle = fixture_open(f.out);
		for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++)
			for (int i = 0; i < 30; i++) {
				struct xfp_slice s = { .first_row = test_random(&seed) % unit.rows,
						       .first_col = test_random(&seed) % unit.cols };

				assert_int_equal(xfp_cuda_plan_unit(bundle, u, i ? &s : NULL, &plan, &err), XFP_OK);
				assert_int_equal(plan.same_k, kinds[kind] != FIXTURE_TWO_SIZES);
				expect_places(&plan);
				xfp_cuda_plan_free(&plan);
			}
		xfp_bundle_close(bundle);
		fixture_free(&f);
	}
}

/* ---- integers ---------------------------------------------------------------------------------- */

/* Sums of a warp are 32-bit, and those of a row, including a count of workers, 64-bit: up to these limits, and not
 * beyond. */
static void integers(void **state)
{
	struct xfp_cuda_plan plan = { .method = XFP_CUDA_V2, .cols = 1 << 16 };
	/* all columns, which one warp may have, with the largest byte and digit */
	int64_t most = (int64_t)plan.cols * 255 * 128;

	(void)state;
	assert_int_equal(XFP_CUDA_INTEGER_COLUMNS, 1 << 16);
	assert_true(plan.cols % 512 == 0 && most <= INT32_MAX);
	/* of the largest integer of a codebook and of a vector, 24 bits with a sign */
	assert_true((int64_t)plan.cols * 65535 * (1 << 23) <= INT64_MAX >> XFP_CUDA_COUNT_BITS);
	for (unsigned k = 2; k <= 6; k++)
		assert_int_equal(xfp_cuda_has_integers(&plan, k), k <= 4);
	plan.cols++;
	assert_false(xfp_cuda_has_integers(&plan, 4));
	for (uint8_t group = 5; group <= 10; group++) {
		plan = (struct xfp_cuda_plan){ .method = XFP_CUDA_V2C32, .cols = 100, .group = group };
		for (unsigned k = 2; k <= 6; k++)
			assert_int_equal(xfp_cuda_has_integers(&plan, k), k <= 4);
	}
	plan = (struct xfp_cuda_plan){ .method = XFP_CUDA_V2C, .cols = 100, .group = 4 };
	assert_false(xfp_cuda_has_integers(&plan, 2));
	plan = (struct xfp_cuda_plan){ .method = XFP_CUDA_V2A, .cols = 100, .group = 7 };
	assert_false(xfp_cuda_has_integers(&plan, 2));
}

/* Groups of 16 columns, and longer ones: the selected kernels. */
static void methods(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_unit_info unit;
	size_t found[XFP_CUDA_METHODS] = { 0 };

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TILES);
	bundle = fixture_open(f.out);
	for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
		struct xfp_cuda_plan plan;

		assert_int_equal(xfp_cuda_plan_unit(bundle, u, NULL, &plan, &err), XFP_OK);
		if (unit.mode == XFP_MODE_V2C)
			assert_int_equal(plan.method, unit.group_size == 16 ? XFP_CUDA_V2C : XFP_CUDA_V2C32);
		assert_int_equal(plan.expert[0].integers, xfp_cuda_has_integers(&plan, plan.k));
		found[plan.method]++;
		xfp_cuda_plan_free(&plan);
	}
	assert_true(found[XFP_CUDA_V2] && found[XFP_CUDA_V2A] && found[XFP_CUDA_V2C] && found[XFP_CUDA_V2C32] > 3);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- refusals ---------------------------------------------------------------------------------- */

/* Only an index: the weights, hundreds of gigabytes, are a hole. */
static struct xfp_bundle *huge(const char *path, uint64_t rows, uint64_t cols)
{
	struct many many = { .units = 1, .experts = 2, .tensors = 1, .rows = rows, .cols = cols };
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint64_t index_bytes;

	assert_true(file >= 0);
	assert_true(many_members(file, &many, &index_bytes) > 0);
	close(file);
	return fixture_open(path);
}

static void too_large(void **state)
{
	struct xfp_slice some = { .rows = 100, .cols = 64 };
	char folder[] = "/tmp/xfp-plan-XXXXXX", path[64];
	struct xfp_cuda_plan plan;
	struct xfp_bundle *bundle;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/huge.xfp", folder);
	bundle = huge(path, UINT64_C(1) << 31, 32);
	assert_int_equal(xfp_cuda_plan_unit(bundle, 0, NULL, &plan, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "2147483648 rows of 32 columns exceed the limit of the kernels; open slices"));
	assert_null(plan.expert);
	xfp_bundle_close(bundle);

	bundle = huge(path, 100, UINT64_C(3) << 30);
	assert_int_equal(xfp_cuda_plan_unit(bundle, 0, NULL, &plan, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "3221225472 columns"));
	/* A slice is searched for its outliers, all of which are in row 0 and column 0. */
	assert_int_equal(xfp_cuda_plan_unit(bundle, 0, &some, &plan, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "row 0: outliers outside the matrix or out of order"));
	assert_null(plan.expert);
	xfp_bundle_close(bundle);

	bundle = huge(path, 100, UINT64_C(1) << 29); /* four bytes each would be 2^31 */
	assert_int_equal(xfp_cuda_plan_unit(bundle, 0, NULL, &plan, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "536870912 columns exceed the limit of the kernels"));
	assert_null(plan.expert);
	xfp_bundle_close(bundle);

	bundle = huge(path, UINT64_C(1) << 16, UINT64_C(1) << 24); /* beyond the kernels' counters, on any device */
	assert_int_equal(xfp_cuda_plan_unit(bundle, 0, NULL, &plan, &err), XFP_OK);
	assert_true(plan.bytes > UINT64_C(1) << 39);
	expect_places(&plan);
	xfp_cuda_plan_free(&plan);
	assert_int_equal(xfp_cuda_plan_unit(bundle, 1, NULL, &plan, &err), XFP_USAGE);
	assert_int_equal(xfp_cuda_plan_unit(bundle, 0, &(struct xfp_slice){ .first_row = 1 << 16 }, &plan, &err),
			 XFP_USAGE);
	xfp_bundle_close(bundle);
	unlink(path);
	rmdir(folder);
}

PROGRAM("test_cuda_plan")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_memory), cmocka_unit_test(integer_vectors), cmocka_unit_test(names),
		cmocka_unit_test(ways),          cmocka_unit_test(devices),         cmocka_unit_test(ways_of_integers),
		cmocka_unit_test(places),        cmocka_unit_test(too_large),       cmocka_unit_test(splits),
		cmocka_unit_test(shares),        cmocka_unit_test(integers),        cmocka_unit_test(methods),
		cmocka_unit_test(workspace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
