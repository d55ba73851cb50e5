/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bundle_parts.c - invalid parts behind a valid index: opening does not detect them, decoding rejects them.
 */
#include "tests/unit/unit.h"

#include "tests/unit/bundle_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct xfp_error err;

/* A number of OUTLIER that is changed in the mapped bundle while it is open. */
struct outlier_lie {
	size_t at;
	uint64_t value;
	size_t bytes;
};

/* Multiplication detects a column outside the matrix with every instruction set, including the first such column. */
static void refuse_products(const struct xfp_bundle *bundle)
{
	static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };
	const char *best = xfp_instructions();
	float x[11] = { 0 }, y[3];
	struct xfp_input in = { x, XFP_FLOAT32, 1, 11 };
	struct xfp_output out = { y, XFP_FLOAT32, 1, 3 };
	struct xfp_linear *linear;

	assert_int_equal(xfp_linear_open(bundle, 0, NULL, &linear, &err), XFP_OK);
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		if (!xfp_use_instructions(sets[i]))
			continue;
		err.text[0] = '\0';
		if (xfp_multiply(NULL, linear, 0, 1, &in, &out, &err) != XFP_BAD_INPUT)
			fail_msg("%s multiplies by an outlier outside the matrix", sets[i]);
		assert_non_null(strstr(err.text, "outliers outside the matrix"));
	}
	assert_true(xfp_use_instructions(best));
	xfp_linear_close(linear);
}

static void refuse_outliers(int small, uint64_t outliers, const struct outlier_lie *lies, size_t count)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_matrix_info matrix;
	float out[33];

	fixture_make_bundle(&f, small);
	bundle = fixture_open(f.out);
	xfp_bundle_matrix(bundle, 0, &matrix);
	assert_int_equal(matrix.outliers, outliers);
	for (size_t i = 0; i < count; i++) {
		size_t size;
		uint8_t *data = fixture_read(f.out, &size), before[8];
		uint8_t *at = memmem(data, size, matrix.outlier, matrix.outlier_bytes);
		enum xfp_status row[3];
		int fd = open(f.out, O_WRONLY);

		assert_non_null(at);
		memcpy(before, at + lies[i].at, sizeof before);
		assert_true(pwrite(fd, &lies[i].value, lies[i].bytes, at - data + (off_t)lies[i].at) > 0);
		assert_int_equal(xfp_bundle_dequantize(bundle, 0, 0, 3, XFP_FLOAT32, out, &err), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "q.weight"));
		if (lies[i].bytes == 2 && lies[i].value >= 11) /* a column */
			refuse_products(bundle);
		/* Reading all rows, in any pieces, finds it. */
		for (uint64_t r = 0; r < 3; r++)
			row[r] = xfp_bundle_dequantize(bundle, 0, r, 1, XFP_FLOAT32, out, &err);
		assert_true(row[0] == XFP_BAD_INPUT || row[1] == XFP_BAD_INPUT || row[2] == XFP_BAD_INPUT);
		assert_true(pwrite(fd, before, sizeof before, at - data + (off_t)lies[i].at) > 0);
		assert_int_equal(xfp_bundle_dequantize(bundle, 0, 0, 3, XFP_FLOAT32, out, &err), XFP_OK);
		close(fd);
		free(data);
	}
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void outliers_outside_the_matrix_are_refused(void **state)
{
	/* 3 rows of 11: rows 1, 2, 2; columns 10, 7, 10 */
	static const struct outlier_lie list[] = {
		{ 0, 3, 4 },   { 0, UINT32_MAX, 4 }, { 4, 0, 4 },          { 4, 3, 4 },   { 8, 1, 4 },
		{ 8, 0, 4 },   { 8, 3, 4 },          { 8, UINT32_MAX, 4 }, { 12, 11, 2 }, { 12, 0xffff, 2 },
		{ 14, 10, 2 }, { 14, 11, 2 },        { 16, 11, 2 },        { 16, 7, 2 },  { 16, 0, 2 },
	};
	/* row pointers 0, 0, 2, 6; columns 7, 10; 4, 6, 8, 10 */
	static const struct outlier_lie pointers[] = {
		{ 0, 1, 4 },          { 0, UINT64_C(0x100000001), 8 },
		{ 4, 3, 4 },          { 4, 7, 4 },
		{ 4, UINT32_MAX, 4 }, { 8, 7, 4 },
		{ 8, UINT32_MAX, 4 }, { 12, 5, 4 },
		{ 12, 7, 4 },         { 16, 11, 2 },
		{ 18, 0xffff, 2 },    { 18, 7, 2 },
		{ 20, 11, 2 },        { 22, 4, 2 },
		{ 26, 8, 2 },
	};

	(void)state;
	refuse_outliers(1, 3, list, sizeof list / sizeof *list);
	refuse_outliers(4, 6, pointers, sizeof pointers / sizeof *pointers);
}

/* Change one byte of the mapped bundle's GROUP part, decode, and restore it. */
static enum xfp_status decode_with(const struct fixture *f, size_t at, uint8_t value)
{
	struct xfp_bundle *bundle = fixture_open(f->out);
	struct xfp_matrix_info matrix;
	enum xfp_status status;
	size_t size;
	uint8_t *data = fixture_read(f->out, &size), *group, before;
	float out[33];
	int fd;

	assert_true(xfp_bundle_matrix(bundle, 0, &matrix));
	group = memmem(data, size, matrix.group, matrix.group_bytes);
	assert_true(group && at < matrix.group_bytes);
	before = group[at];
	fd = open(f->out, O_WRONLY);
	assert_int_equal(pwrite(fd, &value, 1, group - data + (off_t)at), 1);
	status = xfp_bundle_dequantize(bundle, 0, 0, 3, XFP_FLOAT32, out, &err);
	assert_int_equal(pwrite(fd, &before, 1, group - data + (off_t)at), 1);
	assert_int_equal(xfp_bundle_dequantize(bundle, 0, 0, 3, XFP_FLOAT32, out, NULL), XFP_OK);
	close(fd);
	free(data);
	xfp_bundle_close(bundle);
	return status;
}

/* A digest is compared up to its last byte. */
static void digests_are_compared_whole(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	uint8_t *data;
	size_t size;
	int fd;

	(void)state;
	fixture_make_bundle(&f, 1);
	bundle = fixture_open(f.out);
	data = fixture_read(f.out, &size);
	fd = open(f.out, O_WRONLY);
	for (int p = 0; p < XFP_PARTS; p++) {
		const uint8_t *sha256 = f.packed[0].digest[p].sha256, *at;

		if (!f.packed[0].bytes[p])
			continue;
		at = memmem(data, size, sha256, 32);
		assert_non_null(at);
		for (int byte = 0; byte < 32; byte += 31) {
			uint8_t other = sha256[byte] ^ 1;

			assert_int_equal(xfp_bundle_check(bundle, NULL, NULL, &err), XFP_OK);
			assert_int_equal(pwrite(fd, &other, 1, at - data + byte), 1);
			assert_int_equal(xfp_bundle_check(bundle, NULL, NULL, &err), XFP_BAD_INPUT);
			assert_int_equal(pwrite(fd, &sha256[byte], 1, at - data + byte), 1);
		}
	}
	close(fd);
	free(data);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void codebooks_beyond_the_library_are_refused(void **state)
{
	struct fixture f;

	(void)state;
	fixture_make_bundle(&f, 2); /* 3 rows of one group each: three pairs, then three numbers below 4 */
	for (size_t r = 0; r < 3; r++) {
		assert_int_equal(decode_with(&f, 12 + r, 3), XFP_OK);
		assert_int_equal(decode_with(&f, 12 + r, 4), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "q.weight"));
		assert_non_null(strstr(err.text, "codebook"));
		assert_int_equal(decode_with(&f, 12 + r, 255), XFP_BAD_INPUT);
	}
	fixture_free(&f);
	fixture_make_bundle(&f, 3); /* every byte is valid: both of its numbers are in range */
	for (unsigned value = 0; value < 256; value++)
		for (size_t at = 0; at < 6; at++)
			assert_int_equal(decode_with(&f, at, (uint8_t)value), XFP_OK);
	fixture_free(&f);
}

PROGRAM("test_bundle_parts")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outliers_outside_the_matrix_are_refused),
		cmocka_unit_test(digests_are_compared_whole),
		cmocka_unit_test(codebooks_beyond_the_library_are_refused),
	};

	return cmocka_run_group_tests_name("bundle_parts", tests, NULL, NULL);
}
