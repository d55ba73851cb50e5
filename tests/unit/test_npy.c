/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token ids from .npy files: accepted types, shapes and versions, and refused headers.
 */
#include "model/npy.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

/* A file of this header and content, as numpy.save writes it; `version` 2 and 3 have a longer length. */
static enum xfp_status read_npy(void **state, unsigned version, const char *header, const void *content, size_t size,
				struct xfp_tokens *tokens)
{
	unsigned char file[400] = "\x93NUMPY";
	size_t length = strlen(header), begin = version == 1 ? 10 : 12;
	char *path = scratch_path(state, "t.npy");
	enum xfp_status status;

	file[6] = (unsigned char)version;
	file[8] = (unsigned char)length;
	file[9] = (unsigned char)(length >> 8);
	memcpy(file + begin, header, length);
	memcpy(file + begin + length, content, size);
	scratch_write(state, "t.npy", file, begin + length + size);
	status = xfp_tokens_read(path, tokens, &err);
	free(path);
	return status;
}

#define HEADER(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': (" shape "), }"

static void types_and_shapes(void **state)
{
	static const struct {
		const char *header;
		unsigned version;
		size_t size, sequences, length;
		uint32_t first, last;
	} cases[] = {
		{ HEADER("|u1", "3,"), 1, 3, 1, 3, 1, 3 },
		{ HEADER("|u1", "2, 2"), 1, 4, 2, 2, 1, 4 },
		{ HEADER("|i1", "2,2,"), 2, 4, 2, 2, 1, 4 },
		{ HEADER("<u2", "1, 2"), 3, 4, 1, 2, 0x201, 0x403 },
		{ HEADER("<i4", "2"), 1, 8, 1, 2, 0x4030201, 0x8070605 },
		{ HEADER("<u8", "2,"), 1, 16, 1, 2, UINT32_MAX, UINT32_MAX },
		{ "{'shape':(2,),'descr':'|u1','fortran_order':False}", 1, 2, 1, 2, 1, 2 },
		{ "{'descr'  :  '|u1', 'fortran_order' : False, 'shape' : (2,), }", 1, 2, 1, 2, 1, 2 },
	};
	static const unsigned char content[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *header = cases[i].header;
		struct xfp_tokens t;

		if (read_npy(state, cases[i].version, header, content, cases[i].size, &t))
			fail_msg("%s: %s", header, err.text);
		if (t.sequences != cases[i].sequences || t.length != cases[i].length || t.left_out ||
		    t.ids[0] != cases[i].first || t.ids[t.sequences * t.length - 1] != cases[i].last)
			fail_msg("%s: %zu x %zu", header, t.sequences, t.length);
		free(t.ids);
		/* One byte less is too few. */
		assert_int_equal(read_npy(state, cases[i].version, header, content, cases[i].size - 1, &t),
				 XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "t.npy: is truncated"));
	}
}

/* Numbers beyond 32 bits become UINT32_MAX; negative numbers of each size are refused. */
static void limits_of_numbers(void **state)
{
	static const char *const types[] = { HEADER("|i1", "2,"), HEADER("<i2", "2,"), HEADER("<i4", "2,"),
					     HEADER("<i8", "2,") };
	unsigned char content[16];
	struct xfp_tokens t;

	for (unsigned i = 0; i < 4; i++) {
		unsigned size = 1u << i;

		memset(content, 0xff, sizeof content);
		content[size - 1] = content[2 * size - 1] = 0x7f;
		assert_int_equal(read_npy(state, 1, types[i], content, 2 * size, &t), XFP_OK);
		assert_int_equal(t.ids[1], i == 3 ? UINT32_MAX : UINT32_MAX >> (33 - 8 * size));
		free(t.ids);
		content[2 * size - 1] = 0x80;
		assert_int_equal(read_npy(state, 1, types[i], content, 2 * size, &t), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, "has a negative number"));
		assert_null(t.ids);
	}
	memset(content, 0, sizeof content);
	memset(content, 0xff, 4);
	content[0] = 0xfe;
	content[12] = 1; /* 2^32 */
	assert_int_equal(read_npy(state, 1, HEADER("<u8", "2,"), content, 16, &t), XFP_OK);
	assert_int_equal(t.ids[0], UINT32_MAX - 1);
	assert_int_equal(t.ids[1], UINT32_MAX);
	free(t.ids);
}

static void headers_that_are_refused(void **state)
{
	static const struct {
		const char *header, *message;
		unsigned version;
	} cases[] = {
		{ HEADER("|u1", "2,"), ".npy file", 0 },
		{ HEADER("|u1", "2,"), ".npy file", 4 },
		{ HEADER(">u2", "2,"), "integers of one or two dimensions", 1 },
		{ HEADER("<f4", "2,"), "integers of one or two dimensions", 1 },
		{ HEADER("<u3", "2,"), "integers of one or two dimensions", 1 },
		{ HEADER("<u16", "2,"), "integers of one or two dimensions", 1 },
		{ HEADER("|u1", ""), "integers of one or two dimensions", 1 },
		{ HEADER("|u1", "1, 2, 1"), "integers of one or two dimensions", 1 },
		{ HEADER("|u1", "2, x"), "integers of one or two dimensions", 1 },
		{ HEADER("|u1", "-2,"), "integers of one or two dimensions", 1 },
		{ HEADER("|u1", "99999999999999999999,"), "integers of one or two dimensions", 1 },
		{ HEADER("|u1", "18446744073709551616,"), "integers of one or two dimensions", 1 },
		{ HEADER("|u1", "18446744073709551615,"), "is truncated", 1 },
		{ HEADER("|u1", "4294967296, 4294967296"), "is truncated", 1 },
		{ HEADER("<u8", "1, 2305843009213693953"), "is truncated", 1 },
		{ HEADER("|u1", "2, 1"), "fewer than two tokens per sequence", 1 },
		{ HEADER("|u1", "0, 2"), "fewer than two tokens per sequence", 1 },
		{ HEADER("|u1", "1,"), "fewer than two tokens per sequence", 1 },
		{ "{'descr': '|u1', 'fortran_order': True, 'shape': (2,), }", "integers of one or two dimensions", 1 },
		{ "{'fortran_order': False, 'shape': (2,), }", "integers of one or two dimensions", 1 },
		{ "{'descr': '|u1', 'shape': (2,), }", "integers of one or two dimensions", 1 },
		{ "{'descr': '|u1', 'fortran_order': False}", "integers of one or two dimensions", 1 },
		{ "{'descr': '|u1', 'fortran_order': False, 'shape': [2]}", "integers of one or two dimensions", 1 },
		{ "{'descr': |u1', 'fortran_order': False, 'shape': (2,)}", "integers of one or two dimensions", 1 },
		{ "{'descr': '", "integers of one or two dimensions", 1 },
	};
	static const unsigned char content[16] = { 0 };
	struct xfp_tokens t;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum xfp_status status =
			read_npy(state, cases[i].version, cases[i].header, content, sizeof content, &t);

		if (status != XFP_BAD_INPUT || !strstr(err.text, cases[i].message))
			fail_msg("%s: status %d: %s", cases[i].header, (int)status, status ? err.text : "");
		assert_null(t.ids);
	}
}

/* Truncated files: in the magic, before the header and in it. */
static void files_that_end(void **state)
{
	static const unsigned char file[] = "\x93NUMPY\1\0\4\0{'a'}";
	char *path = scratch_path(state, "t.npy");
	struct xfp_tokens t;

	for (size_t size = 0; size < 14; size++) {
		scratch_write(state, "t.npy", file, size);
		assert_int_equal(xfp_tokens_read(path, &t, &err), XFP_BAD_INPUT);
		assert_non_null(strstr(err.text, size < 12 ? ".npy file" : "is truncated"));
	}
	scratch_write(state, "t.npy", file, 14);
	assert_int_equal(xfp_tokens_read(path, &t, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "integers of one or two dimensions"));
	free(path);
	path = scratch_path(state, "missing.npy");
	assert_int_equal(xfp_tokens_read(path, &t, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "missing.npy: "));
	free(path);
}

PROGRAM("test_npy")
{
	const struct CMUnitTest tests[] = {
		scratch_test(types_and_shapes),
		scratch_test(limits_of_numbers),
		scratch_test(headers_that_are_refused),
		scratch_test(files_that_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
