/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles shared by several blocks: workspaces, the same bits from launch to launch, in and out of a graph; and lists
 * with more results than a grid can hold.
 */
#include "kernels/cuda/abi.h"
#include "tests/cuda/scene.h"

/* ---- workspaces ----------------------------------------------------------------------------------- */

static void workspaces(void **state)
{
	struct stream *stream;
	struct graph *graph;
	struct xfp_cuda_queue own, bad = { 0 };
	struct fixture f;
	struct xfp_bundle *bundle;
	struct scene s;
	uint64_t memory = machine_alloc(&cu, XFP_CUDA_WORKSPACE);

	(void)state;
	assert_int_equal(XFP_CUDA_WORKSPACE, 4 << 20);
	assert_int_equal(cu.cuStreamCreate(&stream, 0), SUCCESS);
#define OPEN(at, bytes, part) refused(xfp_cuda_queue_open(cuda, stream, at, bytes, &own, &err), part)
	OPEN(0, XFP_CUDA_WORKSPACE, "a queue: the address of device memory, 0, is null");
	OPEN(memory + 128, XFP_CUDA_WORKSPACE, "not a multiple of 256 bytes");
	OPEN(memory, XFP_CUDA_WORKSPACE - 1,
	     "a queue: needs 4194304 bytes of device memory, but only 4194303 were given (see XFP_CUDA_WORKSPACE)");
	OPEN(256, XFP_CUDA_WORKSPACE, "0x100 is not an address of device memory");
	assert_int_equal(cu.cuStreamBeginCapture(stream, 0), SUCCESS);
	OPEN(memory, XFP_CUDA_WORKSPACE, "a queue: cannot be opened while the stream captures a graph");
	assert_int_equal(cu.cuStreamEndCapture(stream, &graph), SUCCESS);
	cu.cuGraphDestroy(graph);
	check(xfp_cuda_queue_open(cuda, stream, memory, XFP_CUDA_WORKSPACE, &own, &err));
	assert_ptr_equal(own.stream, stream);
	assert_int_equal(own.workspace, memory);

	fixture_make_bundle(&f, 1);
	bundle = fixture_open(f.out);
	open_scene(&s, bundle, 0, NULL, 1, XFP_FLOAT32, XFP_FLOAT32);
#define CALLS(queue, part)                                                                         \
	refused(xfp_cuda_prepare(s.linear, &s.in, s.room, 65536, queue, &s.prepared, &err), part); \
	refused(xfp_cuda_multiply(s.linear, 0, 1, &s.prepared, &s.out, queue, &err), part);        \
	refused(xfp_cuda_multiply_experts(s.linear, s.x, 1, &s.prepared, &s.out, queue, &err), part)
	CALLS(NULL, "q.weight: the queue is NULL; see xfp_cuda_queue_open");
	CALLS(&bad, "q.weight: the queue has no workspace; see xfp_cuda_queue_open");
	bad.workspace = memory + 8;
	CALLS(&bad, "the queue's workspace is not at a multiple of 256 bytes");
	close_scene(&s);
	xfp_bundle_close(bundle);
	fixture_free(&f);
	cu.cuStreamDestroy(stream);
	cu.cuMemFree(memory);
}

/* ---- the same bits -------------------------------------------------------------------------------- */

static uint8_t *run_graph(struct scene *s, struct stream *stream, struct graph *run)
{
	assert_int_equal(cu.cuMemsetD8(s->y, 0x11, s->count * s->y_stride * 4), SUCCESS);
	assert_int_equal(cu.cuGraphLaunch(run, stream), SUCCESS);
	assert_int_equal(cu.cuStreamSynchronize(stream), SUCCESS);
	return results(s);
}

/* Earlier contents of the workspace, also those of another launch, do not matter. */
static void again_and_again(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct stream *stream;
	struct graph *graph, *run;
	struct xfp_cuda_queue own;
	struct scene s, other;
	uint64_t memory = machine_alloc(&cu, XFP_CUDA_WORKSPACE);
	uint8_t *first, *again;
	size_t bytes;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	open_scene(&s, bundle, xfp_bundle_find_unit(bundle, "x.o", NULL), NULL, 2, XFP_FLOAT32, XFP_FLOAT32);
	assert_int_equal(s.info.parts, 2);
	open_scene(&other, bundle, xfp_bundle_find_unit(bundle, "wide", NULL), &(struct xfp_slice){ .cols = 7000 }, 1,
		   XFP_FLOAT32, XFP_FLOAT32);
	assert_int_equal(other.info.parts, 3);
	check(xfp_cuda_multiply(s.linear, 0, 2, &s.prepared, &s.out, &queue, &err));
	first = results(&s);
	bytes = 2 * s.y_stride * 4;

	assert_int_equal(cu.cuMemsetD8(memory, 0xa5, XFP_CUDA_WORKSPACE), SUCCESS);
	assert_int_equal(cu.cuStreamCreate(&stream, 0), SUCCESS);
	check(xfp_cuda_queue_open(cuda, stream, memory, XFP_CUDA_WORKSPACE, &own, &err));
	assert_int_equal(cu.cuStreamBeginCapture(stream, 0), SUCCESS);
	check(xfp_cuda_multiply(s.linear, 0, 2, &s.prepared, &s.out, &own, &err));
	assert_int_equal(cu.cuStreamEndCapture(stream, &graph), SUCCESS);
	assert_int_equal(cu.cuGraphInstantiateWithFlags(&run, graph, 0), SUCCESS);
	for (int i = 0; i < 3; i++) {
		again = run_graph(&s, stream, run);
		assert_memory_equal(again, first, bytes);
		free(again);
		check(xfp_cuda_multiply(other.linear, 0, 1, &other.prepared, &other.out, &own, &err));
	}
	cu.cuGraphDestroy(graph);
	cu.cuGraphExecDestroy(run);
	cu.cuStreamDestroy(stream);
	cu.cuMemFree(memory);
	free(first);
	close_scene(&s);
	close_scene(&other);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- shares of a matrix ---------------------------------------------------------------------------- */

/* Open the stand-in again, with another number of multiprocessors and size of shared memory. Its workspace is not
 * zeroed before. */
static void begin_device(const char *processors, const char *shared, struct xfp_cuda_queue *own)
{
	uint64_t memory = machine_alloc(&cu, XFP_CUDA_WORKSPACE);

	setenv("STAND_IN_PROCESSORS", processors, 1);
	setenv("STAND_IN_SHARED", shared, 1);
	check(xfp_cuda_open(&cuda, &err));
	assert_int_equal(cu.cuMemsetD8(memory, 0xa5, XFP_CUDA_WORKSPACE), SUCCESS);
	check(xfp_cuda_queue_open(cuda, NULL, memory, XFP_CUDA_WORKSPACE, own, &err));
}

static void end_device(struct xfp_cuda_queue *own)
{
	xfp_cuda_close(cuda);
	assert_int_equal(cu.cuMemFree(own->workspace), SUCCESS);
	unsetenv("STAND_IN_PROCESSORS");
	unsetenv("STAND_IN_SHARED");
}

/* Counters and sums of a workspace are zero between launches. */
static void expect_zeros(const struct xfp_cuda_queue *own)
{
	uint8_t *bytes = malloc(XFP_CUDA_PARTS_OFFSET);

	assert_int_equal(cu.cuMemcpyDtoH(bytes, own->workspace, XFP_CUDA_PARTS_OFFSET), SUCCESS);
	for (size_t i = 0; i < XFP_CUDA_PARTS_OFFSET; i++)
		if (bytes[i])
			fail_msg("byte %zu of the workspace is left behind", i);
	free(bytes);
}

/* Integer results have the same bits on all devices, however warps share the matrix, and from launch to launch. */
static void sizes_of_devices(void **state)
{
	static const char *const names[] = { "t.a", "t.b", "t.d", "t.e", "t.g" };
	/* one that has blocks of 99 KB, with several launches for several vectors */
	static const char *const kinds[][2] = {
		{ "1", "232448" }, { "4", "232448" }, { "132", "232448" }, { "1", "101376" }, { "170", "101376" }
	};
	struct xfp_cuda *usual = cuda;
	struct xfp_cuda_queue own;
	struct fixture f;
	struct xfp_bundle *bundle;
	uint8_t *first[5][4] = { { NULL } };

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TILES);
	bundle = fixture_open(f.out);
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		begin_device(kinds[kind][0], kinds[kind][1], &own);
		for (size_t n = 0; n < sizeof names / sizeof *names; n++)
			for (size_t count = 1; count <= 4; count++) {
				struct scene s;
				uint8_t *y, **wanted = &first[n][count - 1];
				size_t bytes;

				open_scene(&s, bundle, xfp_bundle_find_unit(bundle, names[n], NULL), NULL, count,
					   XFP_FLOAT32, XFP_FLOAT32);
				assert_non_null(strstr(s.info.kernel, "_i1"));
				bytes = count * s.y_stride * 4;
				for (int again = 0; again < 2; again++) {
					assert_int_equal(cu.cuMemsetD8(s.y, 0x11, bytes), SUCCESS);
					check(xfp_cuda_multiply(s.linear, 0, count, &s.prepared, &s.out, &own, &err));
					y = results(&s);
					if (*wanted) {
						assert_memory_equal(y, *wanted, bytes);
						free(y);
					} else {
						*wanted = y;
					}
				}
				close_scene(&s);
			}
		expect_zeros(&own);
		end_device(&own);
	}
	for (size_t i = 0; i < 20; i++)
		free(first[i / 4][i % 4]);
	cuda = usual;
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* 256 workers share a tile, one more than their count can represent: a sum of exactly 0 stays 0. */
static void most_workers(void **state)
{
	struct xfp_cuda *usual = cuda;
	struct xfp_cuda_queue own;
	struct fixture f;
	struct xfp_bundle *bundle;
	const float *row;
	struct scene s;
	size_t same = 1;
	uint32_t u;
	uint8_t *y;

	(void)state;
	fixture_make_bundle(&f, FIXTURE_TILES);
	bundle = fixture_open(f.out);
	u = xfp_bundle_find_unit(bundle, "t.k", NULL);
	begin_device("16", "232448", &own);
	open_scene(&s, bundle, u, NULL, 1, XFP_FLOAT32, XFP_FLOAT32);
	row = f.decoded[u];
	while (row[same] != row[0])
		same++;
	memset(s.vectors, 0, s.info.cols * sizeof *s.vectors);
	s.vectors[0] = 1;
	s.vectors[same] = -1;
	assert_int_equal(cu.cuMemcpyHtoD(s.x, s.vectors, s.info.cols * 4), SUCCESS);
	check(xfp_cuda_prepare(s.linear, &s.in, s.room, xfp_cuda_prepared_bytes(s.linear, 1), &own, &s.prepared, &err));
	check(xfp_cuda_multiply(s.linear, 0, 1, &s.prepared, &s.out, &own, &err));
	y = results(&s);
	if (result_of(&s, y, 0, 0) != 0)
		fail_msg("%g", (double)result_of(&s, y, 0, 0));
	free(y);
	expect_zeros(&own);
	close_scene(&s);
	end_device(&own);
	cuda = usual;
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- long lists ----------------------------------------------------------------------------------- */

/* Results after the first 65,535, each of one product. */
static void many_results(void **state)
{
	static const struct xfp_product products[] = {
		{ 0, 0, 0, 1 }, { 0, 1, 65534, 1 }, { 0, 1, 65535, 1 }, { 0, 0, 65540, 1 }
	};
	const size_t count = 65542, named = sizeof products / sizeof *products;
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_cuda_linear *linear;
	struct xfp_cuda_prepared prepared;
	float *x = test_vectors(10), *y = malloc(count * 8 * 4), few[16];
	uint64_t bytes, memory, room = machine_alloc(&cu, 65536), there = machine_copy(&cu, x, 40),
				to = machine_alloc(&cu, count * 8 * 4),
				list = machine_copy(&cu, products, sizeof products);
	struct xfp_cuda_input in = { there, XFP_FLOAT32, 2, 5 };
	struct xfp_cuda_output out = { to, XFP_FLOAT32, 2, 8 };
	uint32_t number;
	size_t touched = 0;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	number = xfp_bundle_find_tensor(bundle, "tied");
	check(xfp_cuda_linear_bytes_tensor(bundle, number, NULL, &bytes, &err));
	memory = machine_alloc(&cu, bytes);
	check(xfp_cuda_linear_open_tensor(cuda, bundle, number, NULL, memory, bytes, NULL, &linear, &err));
	check(xfp_cuda_prepare(linear, &in, room, 65536, &queue, &prepared, &err));
	check(xfp_cuda_multiply(linear, 0, 2, &prepared, &out, &queue, &err));
	assert_int_equal(cu.cuMemcpyDtoH(few, to, sizeof few), SUCCESS);

	assert_int_equal(cu.cuMemsetD8(to, 0, count * 8 * 4), SUCCESS);
	out.count = count;
	check(xfp_cuda_multiply_experts(linear, list, named, &prepared, &out, &queue, &err));
	assert_int_equal(cu.cuMemcpyDtoH(y, to, count * 8 * 4), SUCCESS);
	for (size_t i = 0; i < named; i++)
		assert_memory_equal(y + products[i].y * 8, few + products[i].x * 8, 32);
	for (size_t i = 0; i < count * 8; i++)
		touched += y[i] != 0;
	assert_int_equal(touched, named * 8);

	xfp_cuda_linear_close(linear);
	xfp_bundle_close(bundle);
	fixture_free(&f);
	cu.cuMemFree(memory);
	cu.cuMemFree(room);
	cu.cuMemFree(there);
	cu.cuMemFree(to);
	cu.cuMemFree(list);
	free(x);
	free(y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workspaces),   cmocka_unit_test(again_and_again), cmocka_unit_test(sizes_of_devices),
		cmocka_unit_test(most_workers), cmocka_unit_test(many_results),
	};

	return cmocka_run_group_tests(tests, scene_begin, scene_end);
}
