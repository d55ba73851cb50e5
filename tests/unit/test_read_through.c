/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file read in blocks, and its digest.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/system/read_through.h"

#define BYTES ((size_t)5 << 19) /* two blocks and a half */

struct heard {
	uint8_t bytes[BYTES + 1];
	size_t count, calls;
};

static void hear(void *context, const void *data, size_t size)
{
	struct heard *heard = context;

	assert_true(size && heard->count + size <= sizeof heard->bytes);
	memcpy(heard->bytes + heard->count, data, size);
	heard->count += size;
	heard->calls++;
}

static void pieces_are_what_the_file_has(void **state)
{
	static const struct {
		uint64_t offset, bytes;
		size_t first, count, calls;
	} cases[] = {
		{ 0, XFP_TO_THE_END, 0, BYTES, 3 },
		{ 0, BYTES, 0, BYTES, 3 },
		{ 100, 1 << 20, 100, 1 << 20, 1 },
		{ 100, (1 << 20) + 1, 100, (1 << 20) + 1, 2 },
		{ 7, 1, 7, 1, 1 },
		{ 7, 0, 7, 0, 0 },
		{ BYTES - 3, XFP_TO_THE_END, BYTES - 3, 3, 1 },
	};
	char path[] = "/tmp/xfp-test-XXXXXX";
	struct heard *heard = malloc(sizeof *heard);
	uint8_t *bytes = malloc(BYTES);
	struct xfp_error err = { .text = "" };
	int fd = mkstemp(path);

	(void)state;
	assert_true(heard && bytes && fd >= 0);
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	assert_int_equal(write(fd, bytes, BYTES), BYTES);
	close(fd);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		heard->count = heard->calls = 0;
		assert_int_equal(xfp_read_through(path, cases[i].offset, cases[i].bytes, NULL, hear, heard, &err),
				 XFP_OK);
		assert_int_equal(heard->count, cases[i].count);
		assert_int_equal(heard->calls, cases[i].calls);
		assert_memory_equal(heard->bytes, bytes + cases[i].first, cases[i].count);
	}
	/* A short file is reported with its name. */
	assert_int_equal(xfp_read_through(path, BYTES - 3, 4, NULL, hear, heard, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, path));
	unlink(path);
	assert_int_equal(xfp_read_through(path, 0, 1, NULL, hear, heard, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, path));
	free(bytes);
	free(heard);
}

static void bytes_have_two_digits_each(void **state)
{
	char text[9] = "--------";

	(void)state;
	xfp_hex((const uint8_t[]){ 0x00, 0x0f, 0xa0 }, 3, text);
	assert_string_equal(text, "000fa0");
	xfp_hex(NULL, 0, text);
	assert_string_equal(text, "");
}

PROGRAM("test_read_through")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_what_the_file_has),
		cmocka_unit_test(bytes_have_two_digits_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
