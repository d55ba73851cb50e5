/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading matrices through views: every layout gives the same rows, for any way of reading.
 */
#include <fcntl.h>

#include "checkpoints/checkpoint.h"
#include "tests/unit/scratch.h"

#define HEADER 24 /* bytes before the tensor, so that a missing offset is detected */

static struct xfp_error err;
static const size_t element_bytes[] = { 1, 2, 4, 8 };
static const enum xfp_dtype dtypes[] = { XFP_F8_E4M3, XFP_BF16, XFP_F32, XFP_F64 };

static void expect(enum xfp_status status, enum xfp_status expected, const char *part)
{
	if (status != expected || (part && !strstr(err.text, part)))
		fail_msg("status %d instead of %d, \"%s\" without \"%s\"", (int)status, (int)expected, err.text,
			 part ? part : "");
}

/* The content of matrix element (r, c): all bytes matter, and neighbours differ. */
static uint64_t element(uint64_t r, uint64_t c)
{
	uint64_t state = r * 1000003 + c;

	return test_random(&state);
}

/* Write the tensor of `elements` elements: the matrix's values in the view's elements, 0xee in the rest. */
static struct xfp_matrix_source store(void **state, const char *name, unsigned kind, uint64_t elements,
				      struct xfp_view view)
{
	size_t size = element_bytes[kind];
	unsigned char *data = malloc(HEADER + elements * size);

	memset(data, 0xee, HEADER + elements * size);
	for (uint64_t r = 0; r < view.rows; r++) {
		for (uint64_t c = 0; c < view.cols; c++) {
			uint64_t at = view.base + r * view.row_stride + c * view.col_stride, value = element(r, c);

			assert_true(at < elements);
			memcpy(data + HEADER + at * size, &value, size);
		}
	}
	scratch_write(state, name, data, HEADER + elements * size);
	free(data);
	return (struct xfp_matrix_source){ .path = scratch_path(state, name),
					   .tensor = "the.tensor",
					   .dtype = dtypes[kind],
					   .offset = HEADER,
					   .bytes = elements * size,
					   .view = view };
}

static void check_rows(struct xfp_matrix_reader *reader, const struct xfp_matrix_source *source, size_t size,
		       uint64_t first, uint64_t count)
{
	uint64_t cols = source->view.cols;
	unsigned char *buf = malloc(count * cols * size + 1);

	buf[count * cols * size] = 0x5a;
	if (xfp_matrix_read(reader, first, count, buf, &err))
		fail_msg("%s", err.text);
	for (uint64_t r = 0; r < count; r++) {
		for (uint64_t c = 0; c < cols; c++) {
			uint64_t value = element(first + r, c);

			assert_memory_equal(buf + (r * cols + c) * size, &value, size);
		}
	}
	assert_int_equal(buf[count * cols * size], 0x5a);
	free(buf);
}

/* All rows, one by one, in blocks, and in blocks of the recommended size. */
static void check(struct xfp_matrix_source source, unsigned kind)
{
	struct xfp_matrix_reader *reader;
	uint64_t rows = source.view.rows, worth = xfp_matrix_block_rows(&source, 1000);
	const uint64_t steps[] = { rows, 1, 3, worth };

	if (xfp_matrix_open(&source, &reader, &err))
		fail_msg("%s", err.text);
	assert_in_range(worth, 1, rows);
	for (size_t i = 0; i < 4; i++) {
		for (uint64_t first = 0; first < rows; first += steps[i])
			check_rows(reader, &source, element_bytes[kind], first,
				   rows - first < steps[i] ? rows - first : steps[i]);
	}
	xfp_matrix_close(reader);
	free((char *)source.path);
}

static void test_layouts(void **state)
{
	const uint64_t R = 13, C = 37, E = 3; /* expert 1 of three */
	const struct {
		const char *what;
		uint64_t elements;
		struct xfp_view view;
	} layouts[] = {
		{ "plain", R * C, { 0, R, C, C, 1 } },
		{ "one expert of [E, R, C]", E * R * C, { R * C, R, C, C, 1 } },
		{ "second half of [E, 2R, C]", E * 2 * R * C, { 3 * R * C, R, C, C, 1 } },
		{ "odd rows of [E, 2R, C]", E * 2 * R * C, { 2 * R * C + C, R, C, 2 * C, 1 } },
		{ "columns of [R, 3C]", 3 * R * C, { C, R, C, 3 * C, 1 } },
		{ "transposed [C, R]", R * C, { 0, R, C, 1, R } },
		{ "transposed expert [E, C, R]", E * R * C, { 2 * R * C, R, C, 1, R } },
		{ "second half of [E, C, 2R]", E * 2 * R * C, { 2 * R * C + R, R, C, 1, 2 * R } },
		{ "even columns of [E, C, 2R]", E * 2 * R * C, { 2 * R * C, R, C, 2, 2 * R } },
		{ "odd columns of [E, C, 2R]", E * 2 * R * C, { 4 * R * C + 1, R, C, 2, 2 * R } },
		{ "a fifth of [C, 5R]", 5 * R * C, { 4 * R, R, C, 1, 5 * R } },
		{ "both strides large", 700 * R * C, { 5, R, C, 700 * C, 700 } },
		{ "both strides large, transposed", 700 * R * C, { 5, R, C, 700, 700 * R } },
		{ "interleaved at both", 6 * R * C, { 3, R, C, 3 * C, 2 } },
		{ "one row", C, { 0, 1, C, 99, 1 } },
		{ "one row, spread", 9 * C, { 4, 1, C, 0, 9 } },
		{ "one column", R, { 0, R, 1, 1, 99 } },
		{ "one column, spread", 9 * R, { 4, R, 1, 9, 0 } },
		{ "one element", 9, { 4, 1, 1, 77, 88 } },
	};

	for (unsigned kind = 0; kind < 4; kind++) {
		for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
			check(store(state, layouts[i].what, kind, layouts[i].elements, layouts[i].view), kind);
	}
}

/* Larger than a tile in each direction. */
static void test_tiles(void **state)
{
	const uint64_t R = 9001, C = 131;

	check(store(state, "t", 1, R * C, (struct xfp_view){ 0, R, C, 1, R }), 1);
	check(store(state, "h", 1, 2 * R * C, (struct xfp_view){ R, R, C, 1, 2 * R }), 1);
	check(store(state, "w", 1, 2 * R * C, (struct xfp_view){ R, C, R, 2 * R, 1 }), 1);
	check(store(state, "e", 3, 2 * R * C, (struct xfp_view){ 1, R, C, 2, 2 * R }), 3);
}

static void test_block_rows(void **state)
{
	struct xfp_matrix_source source = { .dtype = XFP_BF16, .view = { 0, 10000, 100, 100, 1 } };

	(void)state;
	assert_int_equal(xfp_matrix_block_rows(&source, 2000), 10);
	assert_int_equal(xfp_matrix_block_rows(&source, 1), 1);
	assert_int_equal(xfp_matrix_block_rows(&source, UINT64_MAX), 10000);
	source.view = (struct xfp_view){ 0, 10000, 100, 1, 10000 };
	assert_int_equal(xfp_matrix_block_rows(&source, 2000), 2048);
	source.view = (struct xfp_view){ 0, 500, 100, 1, 500 };
	assert_int_equal(xfp_matrix_block_rows(&source, 2000), 500);
	source.view = (struct xfp_view){ 0, 0, 100, 100, 1 };
	assert_int_equal(xfp_matrix_block_rows(&source, 2000), 1);
}

static void test_bounds(void **state)
{
	static const struct xfp_view beyond[] = {
		{ 1, 4, 5, 5, 1 },
		{ 0, 5, 5, 5, 1 },
		{ 0, 4, 6, 5, 1 },
		{ 0, 4, 5, 1, 5 },
		{ 21, 0, 5, 5, 1 },
		{ 0, 2, 1, UINT64_MAX, 1 },
		{ UINT64_MAX, 1, 1, 1, 1 },
		{ 0, UINT64_MAX, 2, UINT64_MAX, 1 },
		{ 0, 1, UINT64_MAX, 1, UINT64_MAX / 2 },
		{ 0, (uint64_t)1 << 32, (uint64_t)1 << 32, 0, 0 },
	};
	struct xfp_matrix_source source = store(state, "a", 1, 20, (struct xfp_view){ 0, 4, 5, 5, 1 });
	struct xfp_matrix_reader *reader = NULL;
	unsigned char buf[40];

	for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
		source.view = beyond[i];
		expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "the.tensor");
		assert_null(reader);
	}
	source.view = (struct xfp_view){ 0, 4, 5, 5, 1 };
	source.offset = UINT64_MAX - 10;
	expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "the.tensor");
	source.offset = HEADER + 1;
	expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "shorter");
	source.offset = HEADER;
	source.dtype = XFP_F4;
	expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "F4");
	source.dtype = XFP_BF16;

	assert_int_equal(xfp_matrix_open(&source, &reader, &err), XFP_OK);
	expect(xfp_matrix_read(reader, 4, 1, buf, &err), XFP_FAILED, "the.tensor");
	expect(xfp_matrix_read(reader, 0, 5, buf, &err), XFP_FAILED, "the.tensor");
	expect(xfp_matrix_read(reader, UINT64_MAX, 2, buf, &err), XFP_FAILED, "the.tensor");
	assert_int_equal(xfp_matrix_read(reader, 4, 0, buf, &err), XFP_OK);
	xfp_matrix_close(reader);
	xfp_matrix_close(NULL);

	/* No rows or no columns: nothing to read, and no error. */
	for (int i = 0; i < 2; i++) {
		source.view = (struct xfp_view){ 20, i, !i, 5, 1 };
		assert_int_equal(xfp_matrix_open(&source, &reader, &err), XFP_OK);
		assert_int_equal(xfp_matrix_read(reader, 0, i, buf, &err), XFP_OK);
		xfp_matrix_close(reader);
	}
	free((char *)source.path);
}

static void test_file_trouble(void **state)
{
	const struct xfp_view views[] = { { 0, 4, 5, 5, 1 }, { 0, 4, 5, 1, 4 } };
	struct xfp_matrix_reader *reader;
	unsigned char buf[40];

	for (int i = 0; i < 2; i++) {
		struct xfp_matrix_source source = store(state, "a", 1, 20, views[i]);

		assert_int_equal(xfp_matrix_open(&source, &reader, &err), XFP_OK);
		assert_int_equal(truncate(source.path, HEADER + 38), 0);
		expect(xfp_matrix_read(reader, 0, 4, buf, &err), XFP_BAD_INPUT, "the.tensor");
		assert_non_null(strstr(err.text, source.path));
		assert_non_null(strstr(err.text, "truncated"));
		xfp_matrix_close(reader);
		expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "shorter");
		assert_int_equal(unlink(source.path), 0);
		expect(xfp_matrix_open(&source, &reader, &err), XFP_FAILED, source.path);
		assert_int_equal(mkfifo(source.path, 0600), 0); /* without a writer */
		alarm(10);
		expect(xfp_matrix_open(&source, &reader, &err), XFP_BAD_INPUT, "is a pipe");
		alarm(0);
		assert_int_equal(unlink(source.path), 0);
		free((char *)source.path);
	}
}

/* A file with another identity is not read. */
static void test_identity(void **state)
{
	struct xfp_matrix_source source = store(state, "a", 1, 20, (struct xfp_view){ 0, 4, 5, 5, 1 });
	struct xfp_matrix_reader *reader = NULL;
	struct xfp_identity identity;
	struct stat st;

	assert_int_equal(stat(source.path, &st), 0);
	identity = xfp_identity_of(&st);
	source.identity = &identity;
	assert_int_equal(xfp_matrix_open(&source, &reader, &err), XFP_OK);
	xfp_matrix_close(reader);
	for (int field = 0; field < 5; field++) {
		identity = xfp_identity_of(&st);
		if (field < 3)
			(field == 0 ? &identity.device : field == 1 ? &identity.inode : &identity.size)[0]++;
		else
			(field == 3 ? &identity.mtime_ns : &identity.ctime_ns)[0]++;
		reader = NULL;
		expect(xfp_matrix_open(&source, &reader, &err), XFP_FAILED, source.path);
		assert_null(reader);
	}
	free((char *)source.path);
}

PROGRAM("test_matrix")
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_layouts), scratch_test(test_tiles),        cmocka_unit_test(test_block_rows),
		scratch_test(test_bounds),  scratch_test(test_file_trouble), scratch_test(test_identity),
	};

	return cmocka_run_group_tests_name("matrix", tests, NULL, NULL);
}
