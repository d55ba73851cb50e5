/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pickles of torch.save: extracted tensors, refusals, and memory limits.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoints/pytorch/pickle.h"
#include "tests/unit/unit.h"

static struct xfp_error err;

/* "name", FloatStorage "0" of 6 elements, [2, 3], in a dict. */
#define STORAGE                                            \
	"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" \
	"0X\3\0\0\0cpuK\6tQ"
#define TENSOR                                                                       \
	"ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE "K\0K\2K\3\x86K\3K\1\x86\x89" \
	"ccollections\nOrderedDict\n)RtR"
#define NAME "X\4\0\0\0name"

/* Text of a literal that has zeros in it. */
#define READ(literal, pickle) xfp_pickle_read(literal, sizeof literal - 1, "x.pth", pickle, &err)

static void expect(enum xfp_status status, const char *part)
{
	if (status != XFP_BAD_INPUT || !strstr(err.text, part) || !strstr(err.text, "x.pth: "))
		fail_msg("status %d, \"%s\" without \"%s\"", (int)status, err.text, part);
}

static void takes_tensors(void **state)
{
	struct xfp_pickle *pickle = NULL;
	struct xfp_pickle_tensor t;
	const char *first;
	size_t length;

	(void)state;
	assert_int_equal(READ("\x80\2}(" NAME TENSOR "X\1\0\0\0nNu.", &pickle), XFP_OK);
	assert_int_equal(xfp_pickle_count(pickle), 1);
	assert_int_equal(xfp_pickle_tensor(pickle, 0, &t, &err), XFP_OK);
	assert_int_equal(t.name_length, 4);
	assert_memory_equal(t.name, "name", 4);
	assert_int_equal(t.key_length, 1);
	assert_memory_equal(t.key, "0", 1);
	assert_int_equal(t.dtype, XFP_F32);
	assert_int_equal(t.storage_bytes, 24);
	assert_int_equal(t.rank, 2);
	assert_int_equal(t.shape[0], 2);
	assert_int_equal(t.shape[1], 3);
	assert_int_equal(t.stride[0], 3);
	assert_int_equal(t.stride[1], 1);
	assert_int_equal(t.offset, 0);
	assert_false(t.absent);
	assert_int_equal(xfp_pickle_ignored(pickle, &first, &length), 1);
	assert_int_equal(length, 1);
	assert_int_equal(*first, 'n');
	xfp_pickle_close(pickle);
	xfp_pickle_close(NULL);
}

/* Under the names that tools use; attributes of the dict, and values next to it, are ignored. */
static void finds_the_model(void **state)
{
	struct xfp_pickle *pickle = NULL;
	const char *first;
	size_t length;

	(void)state;
	assert_int_equal(READ("\x80\2}(X\5\0\0\0modelccollections\nOrderedDict\n)R(" NAME TENSOR
			      "u}X\1\0\0\0ms]sbX\2\0\0\0loG\0\0\0\0\0\0\0\0K\7]u.",
			      &pickle),
			 XFP_BAD_INPUT); /* an attribute's name is not a container */
	assert_int_equal(READ("\x80\2}(X\5\0\0\0modelccollections\nOrderedDict\n)R(" NAME TENSOR
			      "u}X\1\0\0\0m]sbX\2\0\0\0loG\0\0\0\0\0\0\0\0K\7]u.",
			      &pickle),
			 XFP_OK);
	assert_int_equal(xfp_pickle_count(pickle), 1);
	assert_int_equal(xfp_pickle_ignored(pickle, &first, &length), 2);
	assert_memory_equal(first, "lo", 2);
	xfp_pickle_close(pickle);
	/* One value under two names, by the memo: both are the tensor. */
	assert_int_equal(READ("\x80\2}(" NAME TENSOR "q\1X\1\0\0\0bh\1u.", &pickle), XFP_OK);
	assert_int_equal(xfp_pickle_count(pickle), 2);
	xfp_pickle_close(pickle);
	/* A number is not a name. */
	assert_int_equal(READ("\x80\2}(" NAME TENSOR "K\1" TENSOR "u.", &pickle), XFP_OK);
	assert_int_equal(xfp_pickle_count(pickle), 1);
	xfp_pickle_close(pickle);
	expect(READ("\x80\2}(X\5\0\0\0otherccollections\nOrderedDict\n)R(" NAME TENSOR "uu.", &pickle),
	       "no tensor has a name");
	/* A dict that contains itself under such a name has no tensors. */
	expect(READ("\x80\2}q\0X\5\0\0\0modelh\0s.", &pickle), "may contain itself");
	expect(READ("\x80\2}.", &pickle), "no tensor has a name");
	expect(READ("\x80\2N.", &pickle), "not contain a dict of tensors");
	expect(READ("\x80\2" TENSOR ".", &pickle), "one tensor without a name");
}

static void refuses_the_rest(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *words;
	} cases[] = {
#define CASE(literal, words) { literal, sizeof literal - 1, words }
		CASE("", "does not begin like a pickle"),
		CASE("}.", "does not begin like a pickle"),
		CASE("\x80", "ends within an opcode"),
		CASE("\x80\4", "has protocol 4"),
		CASE("\x80\2", "ends before it is finished"),
		CASE("\x80\2\x80\2}.", "another pickle begins at its byte 2"),
		CASE("\x80\2.", "does not leave exactly one value"),
		CASE("\x80\2NN.", "does not leave exactly one value"),
		CASE("\x80\2(.", "does not leave exactly one value"),
		CASE("\x80\2}.N", "bytes follow its end"),
		CASE("\x80\2cos\nsystem\n", "refers to os.system at its byte 2"),
		CASE("\x80\2c__builtin__\neval\n", "refers to __builtin__.eval"),
		CASE("\x80\2ctorch\nFloat", "ends within a name"),
		CASE("\x80\2X\5\0\0\0abc", "ends within an opcode"),
		CASE("\x80\2X\1\0\0\0\xff.", "not UTF-8"),
		CASE("\x80\2\x8a\1", "ends within an opcode"),
		CASE("\x80\2\x8a\x09", "more than 64 bits"),
		CASE("\x80\2\x93", "opcode 0x93 (STACK_GLOBAL) at its byte 2"),
		CASE("\x80\2o", "(OBJ)"),
		CASE("\x80\2i", "(INST)"),
		CASE("\x80\2\x81", "(NEWOBJ)"),
		CASE("\x80\2\x01", "opcode 0x01 (unknown)"),
		CASE("\x80\2R", "stack underflow"),
		CASE("\x80\2N)R", "REDUCE of a value"),
		CASE("\x80\2ctorch\nfloat32\n)R", "REDUCE of a value"),
		CASE("\x80\2"
		     "ccollections\nOrderedDict\nNR",
		     "REDUCE of a value"),
		CASE("\x80\2"
		     "ccollections\nOrderedDict\nN\x85R",
		     "an OrderedDict has arguments"),
		CASE("\x80\2ctorch\nSize\n)R", "a torch.Size"),
		CASE("\x80\2ctorch._utils\n_rebuild_tensor_v2\n)R", "has invalid arguments"),
		CASE("\x80\2ctorch._utils\n_rebuild_tensor_v3\n(" STORAGE "K\0))\x89N)tR", "has invalid arguments"),
		CASE("\x80\2ctorch._utils\n_rebuild_parameter\n)R", "is not made from a tensor"),
		CASE("\x80\2)Q", "not that of a storage"),
		CASE("\x80\2K", "ends within an opcode"),
		CASE("\x80\2q\0", "stack underflow"),
		CASE("\x80\2(q\0", "a mark is used as a value"),
		CASE("\x80\2Nq\xff", "PUT of an invalid memo slot"),
		CASE("\x80\2h\0", "GET of an empty memo slot"),
		CASE("\x80\2j\xff\xff\xff\xff", "GET of an empty memo slot"),
		CASE("\x80\2t", "a mark is missing"),
		CASE("\x80\2u", "a mark is missing"),
		CASE("\x80\2(u", "not a container"),
		CASE("\x80\2N(Nu", "not a container"),
		CASE("\x80\2}(Nu", "a key without a value"),
		CASE("\x80\2}NNs", "" /* ends */),
		CASE("\x80\2]NNs", "not a container"),
		CASE("\x80\2s", "stack underflow"),
		CASE("\x80\2}Na", "not a container"),
		CASE("\x80\2](s", "stack underflow"),
		CASE("\x80\2}(Ns", "a mark is used as a value"),
		CASE("\x80\2Nb", "stack underflow"),
		CASE("\x80\2NNb", "a value that is not a dict"),
		/* Containers in themselves: directly, through a list, through a memoized tuple. */
		CASE("\x80\2]q\0h\0a.", "may contain itself"),
		CASE("\x80\2]q\0]q\1h\0ah\1a.", "may contain itself"),
		CASE("\x80\2]q\0h\0\x85q\1"
		     "0",
		     "(POP)"),
		CASE("\x80\2]q\0h\0\x85"
		     "a.",
		     "may contain itself"),
	};
	struct xfp_pickle *pickle = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *copy = malloc(cases[i].size + 1); /* so that sanitizers detect reads past the end */

		memcpy(copy, cases[i].text, cases[i].size);
		expect(xfp_pickle_read(copy, cases[i].size, "x.pth", &pickle, &err), cases[i].words);
		free(copy);
	}
}

/* Invalid numbers of a tensor. */
static void checks_numbers(void **state)
{
#define WITH(offset, sizes, strides) \
	"\x80\2}(" NAME "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE offset sizes strides "\x89)tRu."
	struct xfp_pickle *pickle = NULL;
	struct xfp_pickle_tensor t;
	static const struct {
		const char *text;
		size_t size;
		bool fine;
	} cases[] = {
#define NUMBERS(literal, fine) { literal, sizeof literal - 1, fine }
		NUMBERS(WITH("K\1", ")", ")"), true),
		NUMBERS(WITH("J\xff\xff\xff\xff", ")", ")"), false),
		NUMBERS(WITH("N", ")", ")"), false),
		NUMBERS(WITH("K\1", "]", ")"), false),
		NUMBERS(WITH("K\1", "K\1\x85", ")"), false),
		NUMBERS(WITH("K\1", "N\x85", "K\1\x85"), false),
		NUMBERS(WITH("K\1", "\x8a\1\xff\x85", "K\1\x85"), false),
		NUMBERS(WITH("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "M\1\2\x85", "K\1\x85"), true),
		/* Too many dimensions. */
		NUMBERS(WITH("K\1", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"), true),
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(xfp_pickle_read(cases[i].text, cases[i].size, "x.pth", &pickle, &err), XFP_OK);
		if (cases[i].fine)
			assert_int_equal(xfp_pickle_tensor(pickle, 0, &t, &err), XFP_OK);
		else
			expect(xfp_pickle_tensor(pickle, 0, &t, &err), "tensor name: ");
		xfp_pickle_close(pickle);
	}
}

/* Any flood of opcodes ends before it needs more than the limit of memory. */
static void bounds_memory(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *words;
	} floods[] = {
		{ "N", 1, "ends before" },      { "(", 1, "ends before" },          { "}", 1, "more memory than" },
		{ "]", 1, "more memory than" }, { ")", 1, "more memory than" },     { "K\1", 2, "it ends" },
		{ "h\0", 2, "it ends" },        { "K\1\x85", 3, "it ends within" }, { "Nq\7", 3, "it ends" },
		{ "}NNs", 4, "it ends" },       { ")\x85", 2, "more memory than" },
	};
	size_t size = (size_t)1 << 20;
	struct xfp_pickle *pickle = NULL;
	char *text = malloc(size);

	(void)state;
	for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
		memcpy(text, "\x80\2}q\0(", 6);
		for (size_t at = 6; at < size; at++)
			text[at] = floods[i].text[(at - 6) % floods[i].size];
		expect(xfp_pickle_read(text, size, "x.pth", &pickle, &err), floods[i].words);
	}
	free(text);
}

PROGRAM("test_pickle")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(takes_tensors), cmocka_unit_test(finds_the_model),
					    cmocka_unit_test(refuses_the_rest), cmocka_unit_test(checks_numbers),
					    cmocka_unit_test(bounds_memory) };

	return cmocka_run_group_tests_name("pickle", tests, NULL, NULL);
}
