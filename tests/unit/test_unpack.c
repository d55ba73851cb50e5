/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp unpack on a bundle with known weights.
 */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/new_folder.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/folder.h"
#include "commands/ui/commands.h"
#include "commands/unpack/config.h"
#include "kernels/common/number.h"
#include "tests/unit/bundle_fixture.h"

static int setup(void **state)
{
	*state = malloc(sizeof(struct fixture));
	fixture_make_bundle(*state, 0);
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	free(*state);
	return 0;
}

static uint8_t *tensor_bytes(const struct xfp_checkpoint *checkpoint, const char *name,
			     const struct xfp_source_tensor **out)
{
	int64_t t = xfp_checkpoint_find(checkpoint, name);
	uint8_t *bytes;
	int fd;

	if (t < 0)
		fail_msg("%s is not there", name);
	*out = &checkpoint->tensors[t];
	bytes = malloc((*out)->bytes + 1);
	fd = open(checkpoint->files[(*out)->file].path, O_RDONLY);
	assert_int_equal(xfp_pread(fd, bytes, (*out)->bytes, (*out)->offset, "", NULL), XFP_OK);
	close(fd);
	return bytes;
}

static float element(enum xfp_dtype dtype, const uint8_t *bytes, uint64_t i)
{
	float value;

	xfp_to_float(dtype, bytes + i * xfp_dtype_bits(dtype) / 8, 1, &value);
	return value;
}

static float rounded(enum xfp_dtype dtype, float value)
{
	return dtype == XFP_BF16  ? xfp_bf16_to_float(xfp_float_to_bf16(value))
	       : dtype == XFP_F16 ? xfp_half_to_float(xfp_float_to_half(value))
				  : value;
}

/* Check that a folder has every tensor: kept ones byte for byte, others decoded, in `dtype` or their own type. */
static void check_unpacked(struct fixture *f, const char *folder, int dtype)
{
	struct xfp_checkpoint *checkpoint;
	struct xfp_error err;
	uint32_t written = 0;

	if (xfp_checkpoint_open(folder, &checkpoint, &err))
		fail_msg("%s", err.text);
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++)
		written += f->tensors[t].fate != XFP_FATE_DROPPED;
	assert_int_equal(checkpoint->tensor_count, written);
	assert_int_equal(xfp_checkpoint_find(checkpoint, "inv_freq"), -1); /* dropped */
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &f->tensors[t];
		const struct xfp_source_tensor *out;
		uint8_t *bytes;

		if (tensor->fate == XFP_FATE_DROPPED)
			continue;
		bytes = tensor_bytes(checkpoint, tensor->name, &out);
		assert_int_equal(out->rank, tensor->rank);
		assert_memory_equal(out->shape, tensor->shape, tensor->rank * sizeof out->shape[0]);
		if (tensor->fate == XFP_FATE_QUANTIZED) {
			assert_int_equal(out->dtype, dtype < 0 ? (int)tensor->dtype : dtype);
		} else {
			assert_int_equal(out->dtype, tensor->dtype);
			assert_memory_equal(bytes, f->data[t], tensor->bytes);
		}
		for (uint32_t m = 0; m < f->ledger.matrix_count; m++) {
			const struct xfp_ledger_matrix *where = &f->matrices[m];

			for (uint64_t i = 0; where->tensor == t && i < where->rows * where->cols; i++) {
				uint64_t at = where->base + i / where->cols * where->row_stride +
					      i % where->cols * where->col_stride;

				if (element(out->dtype, bytes, at) != rounded(out->dtype, f->decoded[m][i]))
					fail_msg("%s: element %llu", tensor->name, (unsigned long long)at);
			}
		}
		free(bytes);
	}
	xfp_checkpoint_close(checkpoint);
}

static void unpack_restores_the_checkpoint(void **state)
{
	static const struct {
		const char *name;
		int dtype;
	} dtypes[] = {
		{ "source", -1 },
		{ "f32", XFP_F32 },
		{ "bf16", XFP_BF16 },
		{ "f16", XFP_F16 },
	};
	struct fixture *f = *state;
	struct result r = { 0 };

	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
		char *folder = xfp_formatted("%s/new-%s", f->folder, dtypes[i].name), *path;

		RUN(f, &r, xfp_main_unpack, "--dtype", dtypes[i].name, "-o", folder, f->out);
		EXPECT(r, XFP_OK);
		check_unpacked(f, folder, dtypes[i].dtype);
		for (uint32_t e = 0; e < f->ledger.extra_count; e++) {
			size_t size, expected_size;
			char *original = xfp_path(f->model, f->extras[e]);
			uint8_t *data, *expected = fixture_read(original, &expected_size);

			path = xfp_path(folder, f->extras[e]);
			data = fixture_read(path, &size);
			assert_int_equal(size, expected_size);
			assert_memory_equal(data, expected, size);
			free(path);
			free(original);
			free(data);
			free(expected);
		}
		free(folder);
	}
	fixture_result_free(&r);
}

/* Rows kept at source precision inside a quantized tensor: their bytes have the requested type. */
static void unpack_converts_what_was_kept(void **state)
{
	static const struct {
		const char *name;
		int dtype;
	} dtypes[] = { { "source", -1 }, { "f16", XFP_F16 }, { "bf16", XFP_BF16 }, { "f32", XFP_F32 } };
	struct fixture f;
	struct result r = { 0 };

	(void)state;
	fixture_make_bundle(&f, FIXTURE_HALF_KEPT);
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
		char *folder = xfp_formatted("%s/new-%s", f.folder, dtypes[i].name);

		RUN(&f, &r, xfp_main_unpack, "--dtype", dtypes[i].name, "-o", folder, f.out);
		EXPECT(r, XFP_OK);
		check_unpacked(&f, folder, dtypes[i].dtype);
		free(folder);
	}
	fixture_result_free(&r);
	fixture_free(&f);
}

static void unpack_splits_into_shards(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	char *folder = xfp_path(f->folder, "shards");
	json_t *root, *files;

	RUN(f, &r, xfp_main_unpack, "--json", "--max-shard-size", "2k", "-o", folder, f->out);
	EXPECT(r, XFP_OK);
	root = json_loads(r.out, 0, NULL);
	files = json_object_get(root, "files");
	assert_int_equal(json_integer_value(json_object_get(root, "tensors")), f->ledger.tensor_count - 1);
	assert_true(json_array_size(files) > f->ledger.extra_count + 3);
	for (size_t i = 0; i < json_array_size(files); i++) {
		char *path = xfp_path(folder, json_string_value(json_array_get(files, i)));

		assert_int_equal(access(path, R_OK), 0);
		free(path);
	}
	json_decref(root);
	check_unpacked(f, folder, -1);
	free(folder);
	fixture_result_free(&r);
}

static unsigned entries(const char *path)
{
	DIR *folder = opendir(path);
	unsigned count = 0;

	if (!folder)
		return 0;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 2;
}

/* A shard may be filled to the last byte. */
static void unpack_fills_a_shard(void **state)
{
	struct fixture f;
	struct result r = { 0 };
	uint64_t all;

	(void)state;
	fixture_make_bundle(&f, 1);
	all = f.tensors[0].bytes + f.tensors[1].bytes;
	for (uint64_t less = 0; less < 2; less++) {
		char *max = xfp_formatted("%llu", (unsigned long long)(all - less));
		char *folder = xfp_formatted("%s/shards-%s", f.folder, max);
		char *single = xfp_path(folder, "model.safetensors");

		RUN(&f, &r, xfp_main_unpack, "--max-shard-size", max, "-o", folder, f.out);
		EXPECT(r, XFP_OK);
		assert_int_equal(!access(single, F_OK), !less);
		free(max);
		free(folder);
		free(single);
	}
	fixture_result_free(&r);
	fixture_free(&f);
}

/* If its parent was removed meanwhile, a folder is not created. */
static void new_folders(void **state)
{
	struct fixture *f = *state;
	struct xfp_created made = { 0 };
	struct xfp_error err = { 0 };
	char *deep = xfp_path(f->folder, "gone/new");

	assert_int_equal(xfp_new_folder_make(&made, deep, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "does not exist; create that first"));
	assert_int_equal(xfp_new_folder_make(&made, f->folder, &err), XFP_OK);
	assert_int_equal(made.count, 0);
	xfp_created_free(&made);
	free(deep);
}

static void unpack_touches_no_full_folder(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	unsigned before = entries(f->model);
	char *deep;

	RUN(f, &r, xfp_main_unpack, "-o", f->model, f->out);
	EXPECT(r, XFP_USAGE);
	assert_int_equal(entries(f->model), before);
	RUN(f, &r, xfp_main_unpack, "-o", f->file.path, f->out);
	EXPECT(r, XFP_USAGE);
	/* nor does it make the parent folder */
	deep = xfp_formatted("%s/absent/new", f->folder);
	RUN(f, &r, xfp_main_unpack, "-o", deep, f->out);
	EXPECT(r, XFP_FAILED);
	assert_non_null(strstr(r.err, "/absent does not exist"));
	*strrchr(deep, '/') = 0;
	assert_int_not_equal(access(deep, F_OK), 0);
	free(deep);
	fixture_result_free(&r);
}

static void unpack_leaves_nothing_after_a_failure(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	char *fresh = xfp_path(f->folder, "fresh"), *empty = xfp_path(f->folder, "empty");

	/* 1e30 is not representable in f16 */
	f->packed_matrices[4][0].exponent = -90;
	assert_int_equal(fixture_write_bundle(f, NULL), XFP_OK);
	assert_int_equal(mkdir(empty, 0700), 0);
	RUN(f, &r, xfp_main_unpack, "--dtype", "f16", "--max-shard-size", "2k", "-o", fresh, f->out);
	EXPECT(r, XFP_FAILED);
	assert_non_null(strstr(r.err, "--dtype f32"));
	assert_non_null(strstr(r.err, "pwned"));
	assert_int_not_equal(access(fresh, F_OK), 0);
	RUN(f, &r, xfp_main_unpack, "--dtype", "f16", "--max-shard-size", "2k", "-o", empty, f->out);
	EXPECT(r, XFP_FAILED);
	assert_int_equal(access(empty, F_OK), 0);
	assert_int_equal(entries(empty), 0);
	RUN(f, &r, xfp_main_unpack, "--dtype", "bf16", "-o", empty, f->out);
	EXPECT(r, XFP_OK);
	free(fresh);
	free(empty);
	fixture_result_free(&r);
}

static void unpack_checks_the_bytes_first(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	char *folder = xfp_path(f->folder, "copy");
	struct xfp_bundle *bundle = fixture_open(f->out);
	struct xfp_matrix_info matrix;
	uint8_t *data, *at;
	size_t size;

	data = fixture_read(f->out, &size);
	assert_true(xfp_bundle_matrix(bundle, 3, &matrix));
	at = memmem(data, size, matrix.code, matrix.code_bytes);
	assert_non_null(at);
	at[1] ^= 1;
	xfp_bundle_close(bundle);
	fixture_write(f->out, data, size);
	RUN(f, &r, xfp_main_unpack, "-o", folder, f->out);
	EXPECT(r, XFP_BAD_INPUT);
	assert_non_null(strstr(r.err, "SHA-256"));
	assert_int_not_equal(access(folder, F_OK), 0);
	RUN(f, &r, xfp_main_unpack, "--no-check", "-o", folder, f->out);
	EXPECT(r, XFP_OK);
	free(data);
	free(folder);
	fixture_result_free(&r);
}

static void unpack_reads_sizes_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		bool single; /* whether all tensors fit in one file */
	} sizes[] = { { "2000", false }, { "2k", false },   { "2K", false },  { "2kB", false },
		      { "2KB", false },  { "2KiB", false }, { "5GB", true },  { "5G", true },
		      { "5M", true },    { "5MB", true },   { "5MiB", true }, { "5GiB", true } };
	struct fixture *f = *state;
	struct result r = { 0 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char *folder = xfp_formatted("%s/size-%zu", f->folder, i);
		char *single = xfp_path(folder, "model.safetensors");

		RUN(f, &r, xfp_main_unpack, "--max-shard-size", sizes[i].text, "-o", folder, f->out);
		EXPECT(r, XFP_OK);
		assert_int_equal(!access(single, F_OK), sizes[i].single);
		free(single);
		free(folder);
	}
	fixture_result_free(&r);
}

/* The description of packed weights is removed, and no other byte; a text that is not a JSON object is unchanged. */
static void config_is_without_packing(void **state)
{
	static const struct {
		const char *text, *left; /* left NULL: nothing to remove */
	} cases[] = {
		{ "{\"a\": 1,\n \"quantization_config\": {\"x\": [1, \"}\\\"\"]}\n}\n", "{\"a\": 1\n}\n" },
		{ "{\"quantization_config\": {}, \"a\" : 1 , \"b\":\"x\"}", "{ \"a\" : 1 , \"b\":\"x\"}" },
		{ " {\"quantization_config\":null}", " {}" },
		{ "{\"a\":[{\"quantization_config\":1}],\"compression_config\":2,\"c\":{\"quantization_config\":3}}",
		  "{\"a\":[{\"quantization_config\":1}],\"c\":{\"quantization_config\":3}}" },
		{ "{\"text_config\": {\"x\": 1, \"quantization_config\": {\"b\": 2}, \"y\": NaN}, \"z\": -1e5}",
		  "{\"text_config\": {\"x\": 1, \"y\": NaN}, \"z\": -1e5}" },
		{ "{\"text_config\": {\"text_config\": {\"quantization_config\": 1}}}", NULL },
		{ "{}", NULL },
		{ "", NULL },
		{ "[{\"quantization_config\": 1}]", NULL },
		{ "{\"quantization_config\": 1", NULL },
		{ "{\"quantization_config\": ", NULL },
		{ "{\"quantization_config\"", NULL },
		{ "{\"quantization_config", NULL },
		{ "{\"quantization_config\": {\"a\": 1]", NULL },
		{ "{\"quantization_config\": \"\\", NULL },
		{ "{\"quantization_config\": 1 \"b\": 2}", NULL },
		{ "{\"quantization_config\": 1 x\"b\": 2}", NULL },
		{ "{\"text_config\": {\"quantization_config\": 1}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t size = strlen(cases[i].text), left = 0;
		char *text = malloc(size ? size : 1), *out = malloc(size ? size : 1);
		bool taken;

		memcpy(text, cases[i].text, size); /* without a NUL, for sanitizers */
		taken = xfp_config_unpack(text, size, out, &left);
		if (taken != (cases[i].left != NULL) ||
		    (taken && (left != strlen(cases[i].left) || memcmp(out, cases[i].left, left) != 0)))
			fail_msg("%s: %d, \"%.*s\"", cases[i].text, taken, (int)left, out);
		free(text);
		free(out);
	}
	assert_true(xfp_is_packing_file("hf_quant_config.json") && !xfp_is_packing_file("config.json"));
}

PROGRAM("test_unpack")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_is_without_packing),
		cmocka_unit_test_setup_teardown(unpack_restores_the_checkpoint, setup, teardown),
		cmocka_unit_test(unpack_converts_what_was_kept),
		cmocka_unit_test_setup_teardown(unpack_splits_into_shards, setup, teardown),
		cmocka_unit_test(unpack_fills_a_shard),
		cmocka_unit_test_setup_teardown(new_folders, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_touches_no_full_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_checks_the_bytes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_reads_sizes_as_people_write_them, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_leaves_nothing_after_a_failure, setup, teardown),
	};

	return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
