/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One safetensors file: every rule of the format, all sorts of damage, and the files next to it.
 */
#include "tests/unit/model.h"

#define ONE(name, rest) "{\"" name "\":{" rest "}}"
#define WHOLE "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]"

static const char good[] = "{\"__metadata__\":{\"format\":\"pt\"},"
			   "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
			   "\"a.scalar\":{\"shape\":[],\"dtype\":\"F32\",\"data_offsets\":[0,4]},"
			   "\"empty\":{\"data_offsets\":[16,16],\"dtype\":\"F64\",\"shape\":[0,7]},"
			   "\"F4\":{\"data_offsets\":[16,19],\"dtype\":\"F4\",\"shape\":[6]}}";

static void test_reads_a_good_one(void **state)
{
	const struct xfp_source_tensor *t;
	struct xfp_checkpoint *c;
	struct stat st;

	write_model(state, "model.safetensors", good, 19);
	c = open_good(state, "");
	assert_string_equal(c->format, "safetensors");
	assert_string_equal(c->folder, *state);
	assert_null(c->config);
	assert_int_equal(c->file_count, 1);
	assert_string_equal(c->files[0].name, "model.safetensors");
	assert_int_equal(stat(c->files[0].path, &st), 0);
	assert_int_equal(c->files[0].identity.inode, st.st_ino);
	assert_int_equal(c->files[0].identity.size, st.st_size);
	assert_int_equal(c->note_count, 0);
	assert_int_equal(c->extra_count, 0);

	assert_int_equal(c->tensor_count, 4);
	assert_string_equal(c->tensors[0].name, "F4");
	assert_string_equal(c->tensors[1].name, "a.scalar");
	assert_string_equal(c->tensors[2].name, "b.weight");
	assert_string_equal(c->tensors[3].name, "empty");
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(xfp_checkpoint_find(c, c->tensors[i].name), i);
	assert_int_equal(xfp_checkpoint_find(c, "b"), -1);
	assert_int_equal(xfp_checkpoint_find(c, "zzz"), -1);
	assert_int_equal(xfp_checkpoint_find(c, ""), -1);

	t = &c->tensors[2];
	assert_int_equal(t->dtype, XFP_BF16);
	assert_int_equal(t->rank, 2);
	assert_int_equal(t->shape[0], 2);
	assert_int_equal(t->shape[1], 3);
	assert_int_equal(t->offset, 8 + strlen(good) + 4);
	assert_int_equal(t->bytes, 12);
	assert_int_equal(c->tensors[1].rank, 0);
	assert_int_equal(c->tensors[3].bytes, 0);
	assert_int_equal(c->tensors[0].bytes, 3);
	xfp_checkpoint_close(c);
	xfp_checkpoint_close(NULL);
}

/* Valid files that a careless reader would refuse. */
static void test_accepts(void **state)
{
	static const struct {
		const char *header;
		size_t data;
	} fine[] = {
		{ " \t\r\n" ONE("a", WHOLE) " \n\t\r   ", 4 },
		{ ONE("a", WHOLE ",\"more\":{\"x\":[1.5e3,null,true,false,\"\\u0000\",{}]},\"more\":-0"), 4 },
		{ "{\"__metadata__\":null,\"a\":{" WHOLE "}}", 4 },
		{ "{\"__metadata__\":{},\"a\":{" WHOLE "}}", 4 },
		{ "{\"a\":{" WHOLE "},\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}}", 4 },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[0,9223372036854775808,4],\"data_offsets\":[0,0]"), 0 },
		{ ONE("a", "\"d\\u0074ype\":\"U8\",\"shape\":[1,1,1,1,1,1,2,2],\"data_offsets\":[0,4]"), 4 },
		{ "{\"a\":{" WHOLE "},\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},"
		  "\"d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
		  4 },
		{ ONE("", WHOLE), 4 },
	};

	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
		write_model(state, "model.safetensors", fine[i].header, fine[i].data);
		xfp_checkpoint_close(open_good(state, ""));
	}
}

static void test_names(void **state)
{
	struct xfp_checkpoint *c;
	char header[2000], name[1026];

	write_model(state, "model.safetensors",
		    ONE("$(x)\\n\\\"\\\\\\/\\u00fc\\ud83d\\ude00\xc3\xbc\\b\\f\\r\\t", WHOLE), 4);
	c = open_good(state, "");
	assert_string_equal(c->tensors[0].name, "$(x)\n\"\\/\xc3\xbc\xf0\x9f\x98\x80\xc3\xbc\b\f\r\t");
	xfp_checkpoint_close(c);

	memset(name, 'n', sizeof name);
	snprintf(header, sizeof header, "{\"%.1024s\":{" WHOLE "}}", name);
	write_model(state, "model.safetensors", header, 4);
	xfp_checkpoint_close(open_good(state, ""));
	snprintf(header, sizeof header, "{\"%.1025s\":{" WHOLE "}}", name);
	write_model(state, "model.safetensors", header, 4);
	expect_bad(state, "", "model.safetensors", "nnnn", "1025");
}

static void test_refuses(void **state)
{
	static const struct {
		const char *header;
		size_t data;
		const char *tensor, *why;
	} bad[] = {
		/* JSON */
		{ "", 0, "model.safetensors", "object" },
		{ "[]", 0, "model.safetensors", "object" },
		{ "\xef\xbb\xbf" ONE("a", WHOLE), 4, "model.safetensors", "object" },
		{ ONE("a", WHOLE) " x", 4, "model.safetensors", "follows" },
		{ ONE("a", WHOLE) "{}", 4, "model.safetensors", "follows" },
		{ "{\"a\":{" WHOLE "},}", 4, "model.safetensors", "string is expected" },
		{ "{\"a\" {" WHOLE "}}", 4, "model.safetensors", "':'" },
		{ "{\"a\":{" WHOLE "} \"b\":1}", 4, "model.safetensors", "','" },
		{ "{\"a\":{" WHOLE, 4, "tensor a", "'}'" },
		{ ONE("a\xff", WHOLE), 4, "model.safetensors", "UTF-8" },
		{ ONE("a\xc0\x80", WHOLE), 4, "model.safetensors", "UTF-8" },
		{ ONE("a\xed\xa0\x80", WHOLE), 4, "model.safetensors", "UTF-8" },
		{ ONE("a\xf4\x90\x80\x80", WHOLE), 4, "model.safetensors", "UTF-8" },
		{ ONE("a\xe0\x9f\xbf", WHOLE), 4, "model.safetensors", "UTF-8" },
		{ ONE("a\\u0000b", WHOLE), 4, "model.safetensors", "NUL" },
		{ ONE("a\\ud800", WHOLE), 4, "model.safetensors", "surrogate" },
		{ ONE("a\\udc00", WHOLE), 4, "model.safetensors", "surrogate" },
		{ ONE("a\\ud800\\u0041", WHOLE), 4, "model.safetensors", "surrogate" },
		{ ONE("a\\u00g0", WHOLE), 4, "model.safetensors", "hex" },
		{ ONE("a\\x", WHOLE), 4, "model.safetensors", "escape" },
		{ ONE("a\nb", WHOLE), 4, "model.safetensors", "control" },
		{ "{\"a", 4, "model.safetensors", "does not end" },
		{ "{\"a\\", 4, "model.safetensors", "does not end" },
		{ "{\"a\\u00", 4, "model.safetensors", "cut short" },
		/* the form of an entry */
		{ "{\"a\":[\"U8\",[4],[0,4]]}", 4, "tensor a", "object" },
		{ "{\"a\":null}", 4, "tensor a", "object" },
		{ ONE("a", "\"shape\":[4],\"data_offsets\":[0,4]"), 4, "tensor a", "no dtype" },
		{ ONE("a", "\"dtype\":\"U8\",\"data_offsets\":[0,4]"), 4, "tensor a", "no shape" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4]"), 4, "tensor a", "no data_offsets" },
		{ ONE("a", WHOLE ",\"shape\":[4]"), 4, "tensor a", "shape is given twice" },
		{ ONE("a", WHOLE ",\"dtype\":\"U8\""), 4, "tensor a", "dtype is given twice" },
		{ ONE("a", "\"dtype\":\"u8\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, "tensor a", "dtype u8" },
		{ ONE("a", "\"dtype\":\"F7\\n\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, "tensor a", "F7\\x0a" },
		{ ONE("a", "\"dtype\":8,\"shape\":[4],\"data_offsets\":[0,4]"), 4, "tensor a", "string" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4.0],\"data_offsets\":[0,4]"), 4, "tensor a", "whole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4e0],\"data_offsets\":[0,4]"), 4, "tensor a", "whole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[-4],\"data_offsets\":[0,4]"), 4, "tensor a", "whole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[04],\"data_offsets\":[0,4]"), 4, "tensor a", "whole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[\"4\"],\"data_offsets\":[0,4]"), 4, "tensor a", "whole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]"), 4, "tensor a",
		  "whole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,4]"), 4, "tensor a", "array" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4,],\"data_offsets\":[0,4]"), 4, "tensor a", "whole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,2,2],\"data_offsets\":[0,4]"), 4, "tensor a",
		  "dimensions" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]"), 4, "tensor a", "two numbers" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4,4]"), 4, "tensor a", "two numbers" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[]"), 4, "tensor a", "two numbers" },
		{ "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__", "string" },
		{ "{\"__metadata__\":[]}", 0, "__metadata__", "object" },
		{ "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__", "twice" },
		{ "{\"__metadata__\":{\"a\":\"\xff\"}}", 0, "__metadata__", "UTF-8" },
		/* names */
		{ "{\"a\":{" WHOLE "},\"a\":{" WHOLE "}}", 4, "tensor a", "twice" },
		{ "{\"a\":{" WHOLE "},\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}", 4,
		  "tensor a", "twice" },
		/* the layout */
		{ "{\"a\":{" WHOLE "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}", 7, "tensor b",
		  "overlaps a" },
		{ "{\"a\":{" WHOLE "},\"b\":{" WHOLE "}}", 4, "tensor b", "overlaps a" },
		{ "{\"a\":{" WHOLE "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5,9]}}", 9, "tensor b",
		  "hole" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]"), 5, "tensor a", "hole" },
		{ "{\"a\":{" WHOLE "},\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", 4, "tensor e",
		  "overlaps a" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]"), 4, "tensor a", "ends before" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,4]"), 4, "tensor a", "5 bytes" },
		{ ONE("a", "\"dtype\":\"U16\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, "tensor a", "8 bytes" },
		{ ONE("a", "\"dtype\":\"F4\",\"shape\":[7],\"data_offsets\":[0,4]"), 4, "tensor a", "whole bytes" },
		{ ONE("a", "\"dtype\":\"U8\",\"shape\":[9223372036854775808,4,0],\"data_offsets\":[0,0]"), 0,
		  "tensor a", "2^64" },
		{ ONE("a", "\"dtype\":\"U16\",\"shape\":[1152921504606846976],\"data_offsets\":[0,0]"), 0, "tensor a",
		  "2^64" },
		{ ONE("a", WHOLE), 3, "truncated", "download it again" },
		{ ONE("a", WHOLE), 5, "1 bytes follow", "download it again" },
		{ "{}", 0, "contains no tensors", NULL },
		{ "{}", 1, "1 bytes follow", NULL },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_model(state, "model.safetensors", bad[i].header, bad[i].data);
		expect_bad(state, "", *state, bad[i].tensor, bad[i].why);
	}
}

static void test_refuses_nul_between_tokens(void **state)
{
	static const char header[] = "{\"a\":{" WHOLE "}}\0";

	write_raw(state, "model.safetensors", header, sizeof header, 4);
	expect_bad(state, "", "model.safetensors", "follows", NULL);
}

/* Deep nesting costs neither stack nor memory. */
static void test_depth(void **state)
{
	static const char lead[] = "{\"a\":{" WHOLE ",\"more\":";
	const size_t depth[] = { 128, 129, 1000000 };

	for (int i = 0; i < 3; i++) {
		size_t length = sizeof lead - 1 + 2 * depth[i] + 2;
		char *header = malloc(length);

		memcpy(header, lead, sizeof lead - 1);
		memset(header + sizeof lead - 1, '[', depth[i]);
		memset(header + sizeof lead - 1 + depth[i], ']', depth[i]);
		memcpy(header + length - 2, "}}", 2);
		write_raw(state, "model.safetensors", header, length, 4);
		if (i)
			expect_bad(state, "", "tensor a", "deep", NULL);
		else
			xfp_checkpoint_close(open_good(state, ""));
		free(header);
	}
}

static void test_lengths(void **state)
{
	unsigned char file[100] = { 0 };
	char *path = scratch_path(state, "model.safetensors");

	for (size_t size = 0; size < 8; size++) {
		scratch_write(state, "model.safetensors", file, size);
		expect_bad(state, "", "model.safetensors", "truncated", "download it again");
	}
	/* A header of 100,000,000 bytes is allowed, and one byte more is not. The file is sparse. */
	scratch_write(state, "model.safetensors", "\0\xe1\xf5\x05\0\0\0\0 ", 9);
	assert_int_equal(truncate(path, 8 + 100000000), 0);
	expect_bad(state, "", "model.safetensors", "object is expected", NULL);
	scratch_write(state, "model.safetensors", "\x01\xe1\xf5\x05\0\0\0\0 ", 9);
	assert_int_equal(truncate(path, 8 + 100000001), 0);
	expect_bad(state, "", "model.safetensors", "100000001", NULL);
	xfp_store64(file, 93);
	scratch_write(state, "model.safetensors", file, 100);
	expect_bad(state, "", "model.safetensors", "truncated", "93");
	xfp_store64(file, UINT64_MAX);
	scratch_write(state, "model.safetensors", file, 100);
	expect_bad(state, "", "model.safetensors", "18446744073709551615", NULL);
	write_text(state, "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
	expect_bad(state, "", "model.safetensors", "git lfs pull", NULL);
	free(path);
}

static void test_damage(void **state)
{
	uint64_t random = 1;
	size_t length = strlen(good), refused = 0;
	char header[sizeof good];

	for (int round = 0; round < 1000; round++) {
		struct xfp_checkpoint *c = NULL;
		struct xfp_error err = { 0 };
		enum xfp_status status;

		memcpy(header, good, sizeof good);
		for (uint64_t flips = 1 + test_random(&random) % 3; flips; flips--)
			header[test_random(&random) % length] ^= (char)(1 + test_random(&random) % 255);
		write_raw(state, "model.safetensors", header, length - (round % 4 ? 0 : test_random(&random) % length),
			  19);
		status = open_model(state, "", &c, &err);
		assert_true(status == XFP_OK || status == XFP_BAD_INPUT);
		refused += status == XFP_BAD_INPUT;
		xfp_checkpoint_close(c);
	}
	assert_in_range(refused, 700, 1000); /* the rest is in names and metadata */
}

static void test_many_tensors(void **state)
{
	const unsigned count = 20000;
	char *header = malloc(count * 80), *at = header;
	struct xfp_checkpoint *c;

	/* Names neither in the order of the file nor in that of the data. */
	at += sprintf(at, "{");
	for (unsigned i = 0; i < count; i++) {
		unsigned k = i * 7919u % count;

		at += sprintf(at, "%s\"t.%u\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[%u,%u]}", i ? "," : "",
			      k, 2 * k, 2 * k + 2);
	}
	at += sprintf(at, "}");
	write_model(state, "model.safetensors", header, 2 * count);
	c = open_good(state, "");
	assert_int_equal(c->tensor_count, count);
	for (unsigned i = 0; i < count; i += 97) {
		char name[32];
		int64_t found;

		sprintf(name, "t.%u", i);
		found = xfp_checkpoint_find(c, name);
		assert_true(found >= 0);
		assert_int_equal(c->tensors[found].offset, 8 + strlen(header) + 2 * i);
	}
	xfp_checkpoint_close(c);
	free(header);
}

/* ---- files next to it --------------------------------------------------------------------------- */

static void test_config(void **state)
{
	struct xfp_checkpoint *c;

	write_model(state, "model.safetensors", good, 19);
	write_text(state, "config.json", "{\"model_type\": \"llama\"}\n");
	c = open_good(state, "");
	assert_string_equal(c->config, "{\"model_type\": \"llama\"}\n");
	assert_int_equal(c->extra_count, 1);
	xfp_checkpoint_close(c);
	scratch_write(state, "config.json", "{\0}", 3);
	expect_bad(state, "", "config.json", "NUL", NULL);
}

static void test_extras(void **state)
{
	static const char *const carried[] = {
		"1_Pooling/config.json",
		"LICENSE",
		"LICENSE.txt",
		"README.md",
		"added_tokens.json",
		"additional_chat_templates/tools.jinja",
		"chat_template.jinja",
		"config.json",
		"config_sentence_transformers.json",
		"generation_config.json",
		"merges.txt",
		"modeling_own.py",
		"modules.json",
		"params.json",
		"preprocessor_config.json",
		"sentence_bert_config.json",
		"special_tokens_map.json",
		"spiece.model",
		"tekken.json",
		"tokenizer.json",
		"tokenizer.model",
		"tokenizer_config.json",
		"video_preprocessor_config.json",
		"vocab.json",
		"vocab.txt",
	};
	static const char *const left[] = {
		".hidden.py", ".gitattributes",       "pytorch_model.bin",
		"vocab.bin",  "tokenizer.gguf",       "tokenizer.index.json",
		"onnx.pth",   "1_Pooling/other.json", "1_Pooling/x.safetensors",
		"notes.txt",
	};
	const size_t count = sizeof carried / sizeof *carried;
	struct xfp_checkpoint *c;
	char *path;

	scratch_mkdir(state, "1_Pooling");
	scratch_mkdir(state, "2_Normalize");
	scratch_mkdir(state, "additional_chat_templates");
	scratch_mkdir(state, "tokenizer.d");
	write_model(state, "model.safetensors", good, 19);
	for (size_t i = 0; i < count; i++)
		write_text(state, carried[i], "{}");
	for (size_t i = 0; i < sizeof left / sizeof *left; i++)
		write_text(state, left[i], "{}");
	write_text(state, "vocab.big", "");
	path = scratch_path(state, "vocab.big");
	assert_int_equal(truncate(path, (256 << 20) + 1), 0);
	c = open_good(state, "");
	assert_int_equal(c->extra_count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(c->extras[i], carried[i]);
	assert_true(has_note(c, "vocab.big", "268 MB"));
	assert_true(has_note(c, "1_Pooling/x.safetensors", "not carried"));
	assert_true(has_note(c, "tokenizer.d", "is a folder"));
	assert_int_equal(c->note_count, 3);
	assert_int_equal(c->left_out_count, 1);
	assert_string_equal(c->left_out[0], "notes.txt");
	xfp_checkpoint_close(c);
	free(path);
}

PROGRAM("test_safetensors")
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_reads_a_good_one),
		scratch_test(test_accepts),
		scratch_test(test_names),
		scratch_test(test_refuses),
		scratch_test(test_refuses_nul_between_tokens),
		scratch_test(test_depth),
		scratch_test(test_lengths),
		scratch_test(test_damage),
		scratch_test(test_many_tensors),
		scratch_test(test_config),
		scratch_test(test_extras),
	};

	return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
