/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads many times larger than the copy buffers arrive completely and in place; a failure at any point is reported,
 * leaves no copy in flight, and the next upload works.
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kernels/common/lane_index.h"
#include "runtime/cuda/image.h"
#include "runtime/xfp_cuda.h"
#include "tests/cuda/machine.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/lane_bits.h"
#include "tests/unit/many_members.h"

static struct xfp_error err;
static struct machine cu;

struct scene {
	char *path;
	struct xfp_bundle *bundle;
	struct xfp_cuda *cuda;
	uint64_t memory, bytes;
};

static void check(enum xfp_status status)
{
	if (status)
		fail_msg("%s", err.text);
}

/* Random indices, and an outlier in the first rows. */
static void fill(int file, const struct xfp_bundle *bundle)
{
	struct xfp_matrix_info matrix;
	struct xfp_bundle_info info;
	uint64_t seed = 1;

	xfp_bundle_describe(bundle, &info);
	for (uint32_t e = 0; xfp_bundle_matrix(bundle, e, &matrix); e++) {
		uint64_t *index = malloc(matrix.index_bytes);
		uint32_t *row = malloc(matrix.outliers * 4);

		for (uint64_t i = 0; i < matrix.index_bytes / 8; i++)
			index[i] = test_random(&seed);
		for (uint32_t i = 0; i < matrix.outliers; i++)
			row[i] = 2 * i;
		assert_int_equal(
			pwrite(file, index, matrix.index_bytes, (const char *)matrix.index - (info.json - 512)),
			matrix.index_bytes);
		assert_int_equal(
			pwrite(file, row, matrix.outliers * 4, (const char *)matrix.outlier - (info.json - 512)),
			matrix.outliers * 4);
		free(index);
		free(row);
	}
}

static int begin(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	struct many many = { .units = 1, .experts = 2, .rows = 1024, .cols = 16384 };
	uint64_t index_bytes;
	char name[] = "/tmp/xfp-test-upload-XXXXXX";
	int file = mkstemp(name);

	machine_load(&cu, "90");
	machine_begin(&cu);
	s->path = strdup(name);
	many_members(file, &many, &index_bytes);
	s->bundle = fixture_open(s->path);
	fill(file, s->bundle);
	close(file);
	check(xfp_cuda_open(&s->cuda, &err));
	check(xfp_cuda_linear_bytes(s->bundle, 0, NULL, &s->bytes, &err));
	assert_true(s->bytes > 16 << 20);
	s->memory = machine_alloc(&cu, s->bytes);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct scene *s = *state;

	xfp_cuda_close(s->cuda);
	cu.cuMemFree(s->memory);
	cu.cuCtxDestroy(cu.context);
	xfp_bundle_close(s->bundle);
	unlink(s->path);
	free(s->path);
	free(s);
	return 0;
}

static enum xfp_status only(struct xfp_cuda_sink *sink, struct xfp_error *error)
{
	(void)sink;
	return xfp_fail(error, XFP_FAILED, "the image is larger than it says");
}

/* Indices of the host image are converted to the device order chunk by chunk, including the padding rows of the last
 * tile. */
static void reorder(const struct xfp_cuda_plan *plan, uint8_t *image)
{
	for (uint32_t e = 0; e < plan->experts; e++) {
		unsigned k = plan->expert[e].k;
		struct xfp_cuda_weights w = xfp_cuda_plan_weights(plan, k, 0);
		size_t cols = xfp_chunk_columns(k), size = cols / 8 * k;
		uint8_t *chunk = image + plan->expert[e].index, *now = malloc(size);
		uint64_t chunks = (uint64_t)((w.rows + 15) / 16 * 16) * w.chunks;

		assert_true(k <= 4);
		for (uint64_t i = 0; i < chunks; i++, chunk += size) {
			memset(now, 0, size);
			for (size_t c = 0; c < cols; c++)
				for (unsigned b = 0; b < k; b++) {
					size_t from = lane_bit(k, cols, c, b), to = device_bit(k, c, b);

					now[to / 8] |= (uint8_t)((chunk[from / 8] >> from % 8 & 1) << to % 8);
				}
			memcpy(chunk, now, size);
		}
		free(now);
	}
}

static void expect_all(struct scene *s, const struct xfp_slice *slice)
{
	uint8_t *image = malloc(s->bytes), *there = malloc(s->bytes);
	struct xfp_cuda_sink sink = { .at = image, .left = s->bytes, .next = only };
	struct xfp_cuda_linear *linear;
	struct xfp_cuda_plan plan;

	assert_int_equal(cu.cuMemsetD8(s->memory, 0x5a, s->bytes), SUCCESS);
	check(xfp_cuda_linear_open(s->cuda, s->bundle, 0, slice, s->memory, s->bytes, NULL, &linear, &err));
	check(xfp_cuda_plan_unit(s->bundle, 0, slice, &plan, &err));
	check(xfp_cuda_image_write(&plan, s->memory, &sink, &err));
	assert_int_equal(sink.done, plan.bytes);
	assert_int_equal(cu.cuMemcpyDtoH(there, s->memory, s->bytes), SUCCESS);
	reorder(&plan, image);
	assert_memory_equal(there, image, plan.bytes);
	for (uint64_t i = plan.bytes; i < s->bytes; i++)
		assert_int_equal(there[i], 0x5a);
	xfp_cuda_plan_free(&plan);
	xfp_cuda_linear_close(linear);
	free(image);
	free(there);
}

static void arrives(void **state)
{
	/* 947 rows, and columns that begin inside a chunk */
	static const struct xfp_slice slice = { .first_row = 77, .first_col = 300 };

	expect_all(*state, NULL);
	expect_all(*state, &slice);
}

/* Nothing is in flight on return, and the buffers stay pinned. */
static void calls_fail(void **state)
{
	static const char *const cases[][2] = {
		{ "cuMemHostAlloc 1 2",
		  "cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; 4194304 bytes of "
		  "host memory could not be pinned: free memory, or raise ulimit -l" },
		{ "cuMemHostAlloc 2 2", "4194304 bytes of host memory" },
		{ "cuEventCreate 1 2", "cuEventCreate failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; " },
		{ "cuMemcpyHtoDAsync 1 1", "cuMemcpyHtoDAsync failed: CUDA_ERROR_INVALID_VALUE (1)" },
		{ "cuEventRecord 1 400", "cuEventRecord failed: CUDA_ERROR_INVALID_HANDLE (400)" },
		{ "cuEventSynchronize 1 700",
		  "cuEventSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal "
		  "memory access was encountered; an earlier launch failed, and the context cannot be used any more" },
		{ "cuEventSynchronize 4 700", "cuEventSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)" },
		{ "cuEventRecord 3 400", "cuEventRecord failed: CUDA_ERROR_INVALID_HANDLE (400)" },
		{ "cuMemcpyHtoDAsync 4 1", "cuMemcpyHtoDAsync failed: CUDA_ERROR_INVALID_VALUE (1)" },
		{ "cuStreamIsCapturing 1 400", "cuStreamIsCapturing failed: CUDA_ERROR_INVALID_HANDLE (400)" },
	};
	struct scene *s = *state;
	uint64_t there = UINT64_C(0x5a5a5a5a5a5a5a5a);

	setenv("STAND_IN_PINNED", "8388608", 1);
	assert_int_equal(cu.cuMemsetD8(s->memory, 0x5a, s->bytes), SUCCESS);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_cuda_linear *linear = (struct xfp_cuda_linear *)s;

		setenv("STAND_IN_FAIL", cases[i][0], 1);
		if (xfp_cuda_linear_open(s->cuda, s->bundle, 0, NULL, s->memory, s->bytes, NULL, &linear, &err) !=
		    XFP_FAILED)
			fail_msg("%s: did not fail", cases[i][0]);
		unsetenv("STAND_IN_FAIL");
		assert_null(linear);
		if (strncmp(err.text, "model.layers.000000.mlp.experts.*.gate_proj.weight: ", 52) ||
		    !strstr(err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.text);
		if (cu.cuStreamQuery(NULL) != SUCCESS)
			fail_msg("%s: a copy is left under way", cases[i][0]);
		/* When the first copy is waited for, the next one is already queued. */
		if (!strcmp(cases[i][0], "cuEventSynchronize 1 700"))
			assert_int_equal(cu.cuMemcpyDtoH(&there, s->memory + (6 << 20), sizeof there), SUCCESS);
	}
	assert_int_not_equal(there, UINT64_C(0x5a5a5a5a5a5a5a5a));
	expect_all(s, NULL);
	unsetenv("STAND_IN_PINNED");
}

struct one {
	struct scene *s;
	pthread_t thread;
	pthread_barrier_t *begin;
	struct xfp_slice slice;
	uint64_t memory, bytes;
	uint8_t *expected;
	enum xfp_status status;
};

static void *open_one(void *argument)
{
	struct one *one = argument;
	const struct scene *s = one->s;
	struct xfp_cuda_linear *linear;
	struct xfp_error error;

	one->status = cu.cuCtxSetCurrent(cu.context) ? XFP_FAILED : XFP_OK;
	for (int i = 0; !one->status && i < 4; i++) {
		if (one->begin)
			pthread_barrier_wait(one->begin);
		one->status = xfp_cuda_linear_open(s->cuda, s->bundle, 0, &one->slice, one->memory, one->bytes, NULL,
						   &linear, &error);
		xfp_cuda_linear_close(linear);
	}
	return NULL;
}

static uint8_t *download(const struct one *one)
{
	uint8_t *there = malloc(one->bytes);

	assert_int_equal(cu.cuMemcpyDtoH(there, one->memory, one->bytes), SUCCESS);
	return there;
}

/* Two concurrent uploads through the same buffers arrive like separate ones. */
static void threads(void **state)
{
	struct scene *s = *state;
	struct one one[2] = { { .s = s }, { .s = s, .slice = { .first_row = 77 } } };
	pthread_barrier_t begin;

	pthread_barrier_init(&begin, NULL, 2);
	for (int i = 0; i < 2; i++) {
		check(xfp_cuda_linear_bytes(s->bundle, 0, &one[i].slice, &one[i].bytes, &err));
		one[i].memory = machine_alloc(&cu, one[i].bytes);
		open_one(&one[i]);
		assert_int_equal(one[i].status, XFP_OK);
		one[i].expected = download(&one[i]);
		one[i].begin = &begin;
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&one[i].thread, NULL, open_one, &one[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(one[i].thread, NULL), 0);
	for (int i = 0; i < 2; i++) {
		uint8_t *there = download(&one[i]);

		assert_int_equal(one[i].status, XFP_OK);
		assert_memory_equal(there, one[i].expected, one[i].bytes);
		free(there);
		free(one[i].expected);
		cu.cuMemFree(one[i].memory);
	}
	pthread_barrier_destroy(&begin);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(calls_fail), cmocka_unit_test(arrives),
					    cmocka_unit_test(threads) };

	return cmocka_run_group_tests(tests, begin, end);
}
