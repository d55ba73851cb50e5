/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of opening a large bundle: it reads only the index and the end of the file, in time proportional to the
 * index.
 *
 * Weights are holes of a file in memory. Reading one allocates a page, so the file shows what was read.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/xfp.h"
#include "tests/unit/many_members.h"

static struct xfp_error err;

static struct xfp_bundle *open_file(int file)
{
	struct xfp_bundle *bundle;
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if (xfp_bundle_open(path, &bundle, &err))
		fail_msg("%s", err.text);
	return bundle;
}

static blkcnt_t pages_of(int file)
{
	struct stat st;

	assert_int_equal(fstat(file, &st), 0);
	return st.st_blocks;
}

static void no_weight_is_read_before_it_is_used(void **state)
{
	const struct many many = { .units = 1000, .experts = 2, .tensors = 1000, .rows = 1024, .cols = 4096 };
	int file = memfd_create("many", MFD_CLOEXEC);
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_matrix_info matrix;
	struct xfp_tensor_info tensor;
	uint64_t index_bytes;
	float *row = malloc(many.cols * sizeof *row);
	blkcnt_t before;

	(void)state;
	assert_int_equal(many_members(file, &many, &index_bytes), 5000);
	before = pages_of(file);
	assert_true((uint64_t)before * 512 < index_bytes + 100000);
	bundle = open_file(file);
	xfp_bundle_describe(bundle, &info);
	for (uint32_t m = 0; m < info.matrices; m++)
		assert_true(xfp_bundle_matrix(bundle, m, &matrix));
	for (uint32_t t = 0; t < info.tensors; t++)
		assert_true(xfp_bundle_tensor(bundle, t, &tensor));
	assert_int_equal(pages_of(file), before);
	assert_int_equal(xfp_bundle_dequantize(bundle, 1234, 5, 1, XFP_FLOAT32, row, &err), XFP_OK);
	assert_true(pages_of(file) >
		    before); /* pages of the index, codebook, balance and outliers, and possibly a few around them */
	assert_true(pages_of(file) < before + 4 * 2 * 64 * 8);
	xfp_bundle_close(bundle);
	close(file);
	free(row);
}

/* Processor time: other processes do not count. */
static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Bundles of 10 MB: many records, or few long names that differ at their ends only, sorted and not. The limit is ten
 * times the time with sanitizers; quadratic time would take minutes. */
static void a_large_index_takes_no_time(void **state)
{
	static const struct many sizes[] = {
		{ .units = 1, .experts = 100000, .rows = 8, .cols = 16 },
		{ .units = 14000, .experts = 1, .tensors = 6000, .rows = 8, .cols = 16, .backwards = true },
		{ .tensors = 45000, .cols = 16, .backwards = true },
		{ .tensors = 3000, .cols = 16, .prefix = 3000, .backwards = true },
		{ .tensors = 30, .cols = 16, .prefix = 300000 },
	};
	int file = memfd_create("many", MFD_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t index_bytes;
		double begin;

		many_members(file, &sizes[i], &index_bytes);
		assert_true(index_bytes > 8000000 && index_bytes < 12000000);
		begin = seconds();
		xfp_bundle_close(open_file(file));
		begin = seconds() - begin;
		printf("# %.1f MB: %.1f ms\n", (double)index_bytes / 1e6, begin * 1e3);
		assert_true(begin < 10);
	}
	close(file);
}

PROGRAM("test_bundle_open")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_weight_is_read_before_it_is_used),
		cmocka_unit_test(a_large_index_takes_no_time),
	};

	return cmocka_run_group_tests_name("bundle_open", tests, NULL, NULL);
}
