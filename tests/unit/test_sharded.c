/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a checkpoint: shards and their index, unrelated files, links, and every form of MODEL.
 */
#include "checkpoints/hub.h"
#include "checkpoints/open/fold.h"
#include "tests/unit/model.h"

#define INDEX "model.safetensors.index.json"
#define S1 "model-00001-of-00002.safetensors"
#define S2 "model-00002-of-00002.safetensors"
#define U8(name, begin, end) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[" #begin "," #end "]}"

/* a, b and c in the first shard, d and e in the second. */
static void write_shards(void **state)
{
	write_model(state, S1, "{" U8("c", 0, 2) "," U8("a", 2, 4) "," U8("b", 4, 6) "}", 6);
	write_model(state, S2, "{" U8("e", 0, 2) "," U8("d", 2, 4) "}", 4);
}

static void write_index(void **state, const char *map)
{
	char *text = xfp_formatted("{\"metadata\": {\"total_size\": 1e3}, \"weight_map\": {%s}}\n", map);

	write_text(state, INDEX, text);
	free(text);
}

#define ALL_BUT_E "\"d\":\"" S2 "\",\"a\":\"" S1 "\",\"b\":\"" S1 "\",\"c\":\"" S1 "\""
#define ALL ALL_BUT_E ",\"e\":\"" S2 "\""

static void test_reads_all(void **state)
{
	static const uint32_t file[] = { 0, 0, 0, 1, 1 };
	struct xfp_checkpoint *c;

	write_shards(state);
	write_index(state, ALL);
	for (int i = 0; i < 2; i++) {
		c = open_good(state, i ? INDEX : "");
		assert_int_equal(c->file_count, 2);
		assert_string_equal(c->files[0].name, S1);
		assert_string_equal(c->files[1].name, S2);
		assert_int_equal(c->tensor_count, 5);
		for (uint32_t k = 0; k < 5; k++) {
			assert_int_equal(c->tensors[k].name[0], 'a' + (int)k);
			assert_int_equal(c->tensors[k].file, file[k]);
		}
		assert_int_equal(c->note_count, 0);
		assert_int_equal(c->extra_count, 0);
		xfp_checkpoint_close(c);
	}
}

/* Shards may have any name, and their order in the index does not matter. */
static void test_odd_shard_names(void **state)
{
	struct xfp_checkpoint *c;

	write_model(state, "z \xc3\xbc.safetensors", "{" U8("a", 0, 2) "}", 2);
	write_model(state, "b.safetensors", "{" U8("z", 0, 2) "}", 2);
	write_index(state, "\"a\":\"z \\u00fc.safetensors\",\"z\":\"b.safetensors\"");
	c = open_good(state, "");
	assert_string_equal(c->files[0].name, "b.safetensors");
	assert_int_equal(c->tensors[0].file, 1);
	assert_int_equal(c->tensors[1].file, 0);
	xfp_checkpoint_close(c);
}

static void test_index_omits(void **state)
{
	struct xfp_checkpoint *c;

	write_shards(state);
	write_index(state, ALL_BUT_E);
	c = open_good(state, "");
	assert_int_equal(c->tensor_count, 5);
	assert_int_equal(xfp_checkpoint_find(c, "e"), 4);
	assert_int_equal(c->note_count, 1);
	assert_true(has_note(c, S2, "first: e"));
	xfp_checkpoint_close(c);
}

/* The same name in two shards: the index decides; without one, it is an error. */
static void test_overlay(void **state)
{
	struct xfp_checkpoint *c;

	write_shards(state);
	write_model(state, S1, "{" U8("c", 0, 2) "," U8("a", 2, 4) "," U8("b", 4, 6) "," U8("e", 6, 8) "}", 8);
	write_index(state, ALL);
	c = open_good(state, "");
	assert_int_equal(c->tensor_count, 5);
	assert_int_equal(c->tensors[4].file, 1);
	assert_int_equal(c->note_count, 1);
	assert_true(has_note(c, S1, "first: e"));
	xfp_checkpoint_close(c);
	write_index(state, ALL_BUT_E);
	expect_bad(state, "", "tensor e", S1, S2);
}

static void test_strays(void **state)
{
	struct xfp_checkpoint *c;

	write_shards(state);
	write_index(state, ALL);
	write_text(state, "model.safetensors", "whatever");
	write_text(state, "adapter\n.safetensors", "whatever");
	write_text(state, "._" S1, "whatever");
	c = open_good(state, "");
	assert_int_equal(c->tensor_count, 5);
	assert_int_equal(c->note_count, 2);
	assert_true(has_note(c, "model.safetensors:", "not listed"));
	assert_true(has_note(c, "adapter\\x0a.safetensors:", "not listed"));
	xfp_checkpoint_close(c);
}

static void test_missing(void **state)
{
	char *path = scratch_path(state, S2), *target = scratch_path(state, "gone");

	write_shards(state);
	write_index(state, ALL ",\"f\":\"other.safetensors\"");
	expect_bad(state, "", "other.safetensors: missing", INDEX, "1 of them");
	assert_int_equal(unlink(path), 0);
	expect_bad(state, "", S2 ": missing", INDEX, "2 of them");
	write_index(state, ALL);
	assert_int_equal(symlink(target, path), 0); /* an interrupted download into a cache */
	expect_bad(state, "", S2 ": missing", INDEX, NULL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	expect_bad(state, "", S2, "is a folder", NULL);
	assert_int_equal(rmdir(path), 0);
	write_shards(state);
	write_index(state, ALL ",\"f\":\"" S1 "\"");
	expect_bad(state, "", S1, "tensor f", INDEX);
	/* It is in the other shard: the index is still wrong. */
	write_index(state, ALL_BUT_E ",\"e\":\"" S1 "\"");
	expect_bad(state, "", S1, "tensor e", INDEX);
	free(path);
	free(target);
}

static void test_damaged_shard(void **state)
{
	char *path = scratch_path(state, S2);
	struct stat st;

	write_shards(state);
	write_index(state, ALL);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	expect_bad(state, "", S2, "truncated", "download it again");
	free(path);
}

static void test_bad_index(void **state)
{
	static const struct {
		const char *text, *a, *b;
	} bad[] = {
		{ "", "object", NULL },
		{ "{}", "lists no tensor", NULL },
		{ "{\"weight_map\":{}}", "lists no tensor", NULL },
		{ "{\"weight_map\":[]}", "object", NULL },
		{ "{\"weight_map\":{\"a\":1}}", "string", NULL },
		{ "{\"weight_map\":{\"a\":\"" S1 "\"}", "'}'", NULL },
		{ "{\"weight_map\":{\"a\":\"" S1 "\"}} x", "follows", NULL },
		{ "{\"weight_map\":{\"a\":\"" S1 "\"},\"weight_map\":{}}", "twice", NULL },
		{ "{\"weight_map\":{\"a\":\"" S1 "\",\"a\":\"" S1 "\"}}", "tensor a", "twice" },
		{ "{\"weight_map\":{\"a\":\"" S1 "\",\"a\":\"" S2 "\"}}", "tensor a", "twice" },
		{ "{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "tensor a", "../x.safetensors" },
		{ "{\"weight_map\":{\"a\":\"/etc/x.safetensors\"}}", "tensor a", "/etc/x.safetensors" },
		{ "{\"weight_map\":{\"a\":\"x/y.safetensors\"}}", "tensor a", "plain" },
		{ "{\"weight_map\":{\"a\":\"x\\\\y.safetensors\"}}", "tensor a", "plain" },
		{ "{\"weight_map\":{\"a\":\"x..y.safetensors\"}}", "tensor a", "plain" },
		{ "{\"weight_map\":{\"a\":\".safetensors\"}}", "tensor a", "plain" },
		{ "{\"weight_map\":{\"a\":\"\"}}", "tensor a", "plain" },
		{ "{\"weight_map\":{\"a\":\"pytorch_model.bin\"}}", "tensor a", "not supported" },
		{ "{\"weight_map\":{\"a\":\"x\\u0000.safetensors\"}}", "NUL", NULL },
		{ "{\"weight_map\":{\"a\\u001b[2J\":\"..\"}}", "tensor a\\x1b[2J", NULL },
	};
	char *text;

	write_shards(state);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_text(state, INDEX, bad[i].text);
		expect_bad(state, "", INDEX, bad[i].a, bad[i].b);
	}
	text = xfp_formatted("{\"weight_map\":{\"a\":\"%0300d.safetensors\"}}", 0);
	write_text(state, INDEX, text);
	expect_bad(state, "", INDEX, "tensor a", "too long");
	free(text);
}

static void test_damaged_index(void **state)
{
	static const char good[] = "{\"metadata\":{\"total_size\":10},\"weight_map\":{" ALL "}}";
	uint64_t random = 2, refused = 0;
	char text[sizeof good];

	write_shards(state);
	for (int round = 0; round < 500; round++) {
		struct xfp_checkpoint *c = NULL;
		struct xfp_error err = { 0 };
		enum xfp_status status;

		memcpy(text, good, sizeof good);
		text[test_random(&random) % strlen(good)] ^= (char)(1 + test_random(&random) % 255);
		scratch_write(state, INDEX, text, strlen(good) - (round % 4 ? 0 : test_random(&random) % strlen(good)));
		status = open_model(state, "", &c, &err);
		assert_true(status == XFP_OK || status == XFP_BAD_INPUT);
		refused += status == XFP_BAD_INPUT;
		xfp_checkpoint_close(c);
	}
	assert_in_range(refused, 350, 500); /* the rest is in metadata */
}

/* ---- MODEL -------------------------------------------------------------------------------------- */

static void test_without_index(void **state)
{
	struct xfp_checkpoint *c;
	char *path = scratch_path(state, S1);

	expect_bad(state, "", *state, "model.safetensors", NULL);
	expect_bad(state, "nothing", "nothing", "no such file", NULL);
	write_shards(state);
	expect_bad(state, "", S1, S2, INDEX);
	assert_int_equal(unlink(path), 0);
	/* One is left, but its name says that it is one of several. */
	expect_bad(state, "", S2, "one of several", INDEX);
	c = open_good(state, S2);
	assert_int_equal(c->tensor_count, 2);
	assert_int_equal(c->note_count, 1);
	assert_true(has_note(c, S2, "others are not read"));
	xfp_checkpoint_close(c);

	write_model(state, "model.safetensors", "{" U8("x", 0, 2) "}", 2);
	c = open_good(state, "");
	assert_int_equal(c->tensor_count, 1);
	assert_true(has_note(c, S2, "ignored"));
	xfp_checkpoint_close(c);
	c = open_good(state, "model.safetensors");
	assert_int_equal(c->note_count, 0);
	xfp_checkpoint_close(c);
	free(path);
}

static void test_single_of_any_name(void **state)
{
	static const char *const names[] = { "whisper.safetensors", "model-00001-of-00001.safetensors",
					     "x-of-7.safetensors", "a b \xc3\xa4.safetensors" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct xfp_checkpoint *c;
		char *path = scratch_path(state, names[i]);

		write_model(state, names[i], "{" U8("x", 0, 2) "}", 2);
		c = open_good(state, "");
		assert_string_equal(c->files[0].name, names[i]);
		assert_int_equal(c->note_count, 0);
		xfp_checkpoint_close(c);
		assert_int_equal(unlink(path), 0);
		free(path);
	}
}

/* A path below a file does not exist; it may be a model name, which does not exist either. */
static void test_below_a_file(void **state)
{
	char *below = scratch_path(state, "file/model"), *path = NULL;
	struct xfp_error err = { 0 };

	scratch_write(state, "file", "", 0);
	assert_int_equal(xfp_model_find(below, &path, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "file/model: no such file or folder"));
	assert_null(path);
	free(below);
}

/* A small file has at most 256 MiB; a hole takes no space. */
static void test_largest_extra(void **state)
{
	char *path = scratch_path(state, "tokenizer.json");
	struct xfp_checkpoint *c;

	write_model(state, "model.safetensors", "{" U8("x", 0, 2) "}", 2);
	write_text(state, "tokenizer.json", "{}");
	for (int more = 0; more <= 1; more++) {
		assert_int_equal(truncate(path, ((off_t)256 << 20) + more), 0);
		c = open_good(state, "");
		assert_int_equal(c->extra_count, !more);
		assert_int_equal(has_note(c, "tokenizer.json", "larger than 268 MB"), more);
		if (!more)
			assert_string_equal(c->extras[0], "tokenizer.json");
		xfp_checkpoint_close(c);
	}
	free(path);
}

/* Like the Hugging Face cache: names are links to blobs elsewhere. */
static void test_links(void **state)
{
	struct xfp_checkpoint *c;
	char *blob, *model, *file, *config, *link, *link_config;

	scratch_mkdir(state, "blobs");
	scratch_mkdir(state, "snapshot");
	write_model(state, "blobs/0123abcd", "{" U8("x", 0, 2) "}", 2);
	write_text(state, "blobs/4567", "{}");
	blob = scratch_path(state, "blobs/0123abcd");
	config = scratch_path(state, "blobs/4567");
	model = scratch_path(state, "snapshot");
	file = scratch_path(state, "snapshot/model.safetensors");
	link_config = scratch_path(state, "snapshot/config.json");
	link = scratch_path(state, "link");
	assert_int_equal(symlink(blob, file), 0);
	assert_int_equal(symlink(config, link_config), 0);
	assert_int_equal(symlink(model, link), 0);
	for (int i = 0; i < 4; i++) {
		static const char *const ways[] = { "snapshot", "snapshot/model.safetensors", "link/",
						    "link/model.safetensors" };

		c = open_good(state, ways[i]);
		assert_string_equal(c->folder, model);
		assert_string_equal(c->files[0].path, file);
		assert_string_equal(c->config, "{}");
		assert_int_equal(c->extra_count, 1);
		xfp_checkpoint_close(c);
	}
	/* The name of a blob does not show its format. */
	c = open_good(state, "blobs/0123abcd");
	assert_string_equal(c->files[0].name, "0123abcd");
	assert_null(c->config);
	xfp_checkpoint_close(c);
	expect_bad(state, "blobs/4567", "4567", NULL, NULL);
	free(blob);
	free(config);
	free(model);
	free(file);
	free(link);
	free(link_config);
}

/* A path without a folder. */
static void test_relative(void **state)
{
	struct xfp_checkpoint *c = NULL;
	struct xfp_error err = { 0 };
	char *before = getcwd(NULL, 0);

	write_model(state, "x.safetensors", "{" U8("x", 0, 2) "}", 2);
	assert_non_null(before);
	assert_int_equal(chdir(*state), 0);
	assert_int_equal(xfp_checkpoint_open("x.safetensors", &c, &err), XFP_OK);
	assert_string_equal(c->folder, *state);
	xfp_checkpoint_close(c);
	assert_int_equal(xfp_checkpoint_open(".", &c, &err), XFP_OK);
	assert_string_equal(c->folder, *state);
	xfp_checkpoint_close(c);
	assert_int_equal(chdir(before), 0);
	free(before);
}

/* config.json is rewritten while a checkpoint is opened: weights are unpacked by the text that was read, which must not
 * be taken for the new file's. */
static void test_config_changes(void **state)
{
	struct xfp_element_reader *reader;
	struct xfp_checkpoint *c;
	struct xfp_error err;

	write_model(state, "model.safetensors",
		    "{\"w.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[0,4]},"
		    "\"w.weight_scale_inv\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[4,8]}}",
		    8);
	write_text(state, "config.json", "{\"quantization_config\":{\"quant_method\":\"fp8\"}}");
	for (int edited = 0; edited < 2; edited++) {
		struct xfp_matrix_source source;

		assert_int_equal(xfp_checkpoint_open_stored(*state, &c, &err), XFP_OK);
		if (edited)
			write_text(state, "config.json", "{\"quantization_config\":{\"quant_method\":\"fp8\"}} ");
		assert_int_equal(xfp_checkpoint_fold(c, &err), XFP_OK);
		assert_int_equal(c->tensor_count, 1);
		source = xfp_checkpoint_source(c, &c->tensors[0]);
		source.identity = &c->files[c->tensors[0].file].identity;
		assert_int_equal(xfp_elements_open(&source, &reader, &err), edited ? XFP_FAILED : XFP_OK);
		if (edited)
			assert_non_null(strstr(err.text, "config.json: changed while"));
		else
			xfp_elements_close(reader);
		xfp_checkpoint_close(c);
	}
}

PROGRAM("test_sharded")
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_reads_all),
		scratch_test(test_odd_shard_names),
		scratch_test(test_index_omits),
		scratch_test(test_overlay),
		scratch_test(test_strays),
		scratch_test(test_missing),
		scratch_test(test_damaged_shard),
		scratch_test(test_bad_index),
		scratch_test(test_damaged_index),
		scratch_test(test_without_index),
		scratch_test(test_single_of_any_name),
		scratch_test(test_largest_extra),
		scratch_test(test_below_a_file),
		scratch_test(test_links),
		scratch_test(test_relative),
		scratch_test(test_config_changes),
	};

	return cmocka_run_group_tests_name("sharded", tests, NULL, NULL);
}
