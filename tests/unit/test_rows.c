/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a matrix: every row once, and a digest that detects changes between passes.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cache/key.h"
#include "schemas/digest.h"
#include "stages/quantize/rows.h"
#include "tests/unit/scratch.h"

#define COLS 1000
#define ROWS 1500 /* several blocks */
#define OFFSET 24

static struct xfp_error err;

struct subject {
	uint8_t *weights;
	struct xfp_matrix_source source;
	uint8_t digest[16];
};

static void subject_make(struct subject *s, void **state, uint64_t rows, uint64_t cols)
{
	size_t bytes = rows * cols * 2;
	struct xfp_digest *digest = xfp_digest_new();
	uint64_t random = 7;
	uint8_t *file = calloc(1, OFFSET + bytes);

	assert_non_null(file);
	for (size_t i = 0; i < bytes; i++)
		file[OFFSET + i] = (uint8_t)test_random(&random);
	scratch_write(state, "weights", file, OFFSET + bytes);
	s->weights = file;
	s->source = (struct xfp_matrix_source){ .path = scratch_path(state, "weights"),
						.tensor = "the.tensor",
						.dtype = XFP_BF16,
						.offset = OFFSET,
						.bytes = bytes,
						.view = { 0, rows, cols, cols, 1 } };
	xfp_digest_update(digest, file + OFFSET, bytes);
	xfp_digest_final(digest, s->digest);
}

static void subject_free(struct subject *s)
{
	free((char *)s->source.path);
	free(s->weights);
}

/* Read to the end, or to the first failure. */
static enum xfp_status walk(struct xfp_rows *rows, uint64_t *seen)
{
	enum xfp_status status;

	for (*seen = 0; !(status = xfp_rows_next(rows, &err)) && rows->count; *seen += rows->count)
		assert_int_equal(rows->first, *seen);
	return status;
}

static void a_walk_tells_its_digest(void **state)
{
	static const uint64_t shapes[][2] = { { ROWS, COLS }, { 1, COLS }, { 64, 1 }, { 0, COLS } };
	struct xfp_rows rows;
	struct subject s;
	uint64_t seen;

	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		uint8_t told[16] = { 0 };

		subject_make(&s, state, shapes[i][0], shapes[i][1]);
		assert_int_equal(xfp_rows_open_first(&s.source, told, &rows, &err), XFP_OK);
		assert_int_equal(walk(&rows, &seen), XFP_OK);
		assert_int_equal(seen, shapes[i][0]);
		assert_memory_equal(told, s.digest, 16);
		/* and no more rows after the end */
		assert_int_equal(xfp_rows_next(&rows, &err), XFP_OK);
		assert_int_equal(rows.count, 0);
		xfp_rows_close(&rows);
		assert_int_equal(xfp_rows_open_again(&s.source, told, &rows, &err), XFP_OK);
		assert_int_equal(walk(&rows, &seen), XFP_OK);
		xfp_rows_close(&rows);
		subject_free(&s);
	}
}

/* Flip one bit of any block, and one of the digest. */
static void other_weights_are_told_at_the_end(void **state)
{
	static const size_t places[] = { 0, (size_t)ROWS * COLS, (size_t)ROWS * COLS * 2 - 1 };
	struct xfp_rows rows;
	struct subject s;
	uint64_t seen;

	subject_make(&s, state, ROWS, COLS);
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		s.weights[OFFSET + places[i]] ^= 1;
		scratch_write(state, "weights", s.weights, OFFSET + s.source.bytes);
		s.weights[OFFSET + places[i]] ^= 1;
		assert_int_equal(xfp_rows_open_again(&s.source, s.digest, &rows, &err), XFP_OK);
		assert_int_equal(walk(&rows, &seen), XFP_CHANGED);
		assert_int_equal(seen, ROWS);
		assert_non_null(strstr(err.text, "the.tensor"));
		assert_non_null(strstr(err.text, s.source.path));
		xfp_rows_close(&rows);
	}
	scratch_write(state, "weights", s.weights, OFFSET + s.source.bytes);
	s.digest[15] ^= 128;
	assert_int_equal(xfp_rows_open_again(&s.source, s.digest, &rows, &err), XFP_OK);
	assert_int_equal(walk(&rows, &seen), XFP_CHANGED);
	xfp_rows_close(&rows);
	subject_free(&s);
}

/* An incomplete pass reports nothing, and neither does one without a digest to compare with. */
static void what_is_not_walked_is_not_told(void **state)
{
	uint8_t other[16] = { 1 };
	struct xfp_rows rows;
	struct subject s;
	uint64_t seen;

	subject_make(&s, state, ROWS, COLS);
	assert_int_equal(xfp_rows_open_again(&s.source, other, &rows, &err), XFP_OK);
	assert_int_equal(xfp_rows_next(&rows, &err), XFP_OK);
	xfp_rows_close(&rows);
	assert_int_equal(xfp_rows_open(&s.source, &rows, &err), XFP_OK);
	assert_int_equal(walk(&rows, &seen), XFP_OK);
	xfp_rows_close(&rows);
	subject_free(&s);
}

/* The fingerprint of a row is that of its bytes, wherever it was read. */
static void rows_have_prints(void **state)
{
	struct xfp_rows rows, one;
	struct subject s;

	subject_make(&s, state, ROWS, COLS);
	assert_int_equal(xfp_rows_open(&s.source, &rows, &err), XFP_OK);
	assert_int_equal(xfp_rows_open(&s.source, &one, &err), XFP_OK);
	while (!xfp_rows_next(&rows, &err) && rows.count)
		for (uint64_t r = 0; r < rows.count; r += 97) {
			uint64_t print = xfp_rows_print(&rows, r);
			uint8_t *byte = (uint8_t *)one.raw + COLS * 2 - 1;

			assert_int_equal(xfp_rows_one(&one, rows.first + r, &err), XFP_OK);
			assert_true(xfp_rows_print(&one, 0) == print);
			*byte ^= 1;
			assert_true(xfp_rows_print(&one, 0) != print);
		}
	xfp_rows_close(&rows);
	xfp_rows_close(&one);
	subject_free(&s);
}

/* With and without the instructions of newer processors, in pieces of any size: XXH3-128 as libxxhash computes it. */
static void digests_are_those_of_libxxhash(void **state)
{
	static const size_t sizes[] = { 0, 1, 16, 17, 240, 241, 255, 256, 1023, 1024, 1025, 5000, 70000 };
	static const size_t parts[] = { 1, 63, 64, 256, 257, 4096, 70000 };
	uint8_t *data = malloc(70000);

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < 70000; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes * 2 * (sizeof parts / sizeof *parts); i++) {
		size_t size = sizes[i / 2 % (sizeof sizes / sizeof *sizes)];
		size_t part = parts[i / 2 / (sizeof sizes / sizeof *sizes)];
		struct xfp_digest *digest = i % 2 ? xfp_digest_new() : xfp_digest_new_plain();
		XXH128_canonical_t expected;
		uint8_t found[16];

		XXH128_canonicalFromHash(&expected, XXH3_128bits(data, size));
		assert_non_null(digest);
		for (size_t at = 0; at < size; at += part)
			xfp_digest_update(digest, data + at, size - at < part ? size - at : part);
		xfp_digest_final(digest, found);
		assert_memory_equal(found, expected.digest, sizeof found);
	}
	free(data);
}

PROGRAM("test_rows")
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_walk_tells_its_digest),
		scratch_test(other_weights_are_told_at_the_end),
		scratch_test(what_is_not_walked_is_not_told),
		scratch_test(rows_have_prints),
		cmocka_unit_test(digests_are_those_of_libxxhash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
