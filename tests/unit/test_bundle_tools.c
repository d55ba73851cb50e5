/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp verify, info and unpack on a bundle whose every weight is known.
 */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle_fixture.h"
#include "checkpoint.h"
#include "commands.h"
#include "number.h"
#include "xfp.h"

/* What a command did. */
struct result {
	int status;
	char *out, *err;
};

static void run(struct fixture *f, struct result *result, int (*command)(int, char **), ...)
{
	char *argv[16] = { (char *)"xfp test" }, *out = xfp_path(f->folder, "stdout"), *errors = xfp_path(f->folder, "stderr");
	int argc = 1, status;
	va_list arguments;
	pid_t child;

	va_start(arguments, command);
	while ((argv[argc] = va_arg(arguments, char *)))
		argc++;
	va_end(arguments);
	fflush(NULL);
	child = fork();
	if (!child) {
		if (!freopen(out, "w", stdout) || !freopen(errors, "w", stderr))
			_exit(99);
		status = command(argc, argv);
		fflush(NULL);
		exit(status);
	}
	assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
	free(result->out);
	free(result->err);
	result->status = WEXITSTATUS(status);
	result->out = (char *)fixture_read(out, NULL);
	result->err = (char *)fixture_read(errors, NULL);
	free(out);
	free(errors);
}

#define EXPECT(result, wanted)                                                                 \
	do {                                                                                   \
		if ((result).status != (wanted))                                               \
			fail_msg("status %d:\n%s%s", (result).status, (result).out, (result).err); \
	} while (0)

static int setup(void **state)
{
	struct fixture *f = malloc(sizeof *f);
	char sha256[65];
	struct xfp_error err;

	fixture_make(f, 0);
	if (xfp_bundle_write(f->out, &f->input, sha256, &err))
		fail_msg("%s", err.text);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	free(*state);
	return 0;
}

static void result_free(struct result *result)
{
	free(result->out);
	free(result->err);
}

/* ---- verify ------------------------------------------------------------------------------------ */

static void verify_accepts_what_is_right(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };

	run(f, &r, xfp_main_verify, f->out, NULL);
	EXPECT(r, XFP_OK);
	assert_non_null(strstr(r.out, "routed_expert"));
	assert_string_equal(r.err, "");
	run(f, &r, xfp_main_verify, "--source", f->model, f->out, NULL);
	EXPECT(r, XFP_OK);
	assert_string_equal(r.err, "");
	run(f, &r, xfp_main_verify, "-q", "--source", f->model, f->out, NULL);
	EXPECT(r, XFP_OK);
	assert_string_equal(r.out, "");
	result_free(&r);
}

static void verify_recomputes_what_the_bundle_states(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	json_t *root, *units;

	run(f, &r, xfp_main_verify, "--json", "--source", f->model, f->out, NULL);
	EXPECT(r, XFP_OK);
	root = json_loads(r.out, 0, NULL);
	units = json_object_get(root, "units");
	assert_true(json_is_true(json_object_get(root, "ok")));
	assert_int_equal(json_array_size(units), f->ledger.unit_count);
	for (uint32_t u = 0; u < f->ledger.unit_count; u++) {
		json_t *unit = json_array_get(units, u);

		assert_true(fabs(json_real_value(json_object_get(unit, "cos_median")) - f->packed[u].cos_median) < 1e-12);
		assert_true(fabs(json_real_value(json_object_get(unit, "error")) - f->packed[u].error) < 1e-12);
	}
	json_decref(root);
	/* and says so when that is not true */
	for (int i = 0; i < 3; i++) {
		double *stated = i == 0 ? &f->packed[4].cos_median : i == 1 ? &f->packed[4].cos_p5 : &f->packed[4].error;
		char sha256[65];

		*stated += 2e-9;
		assert_int_equal(xfp_bundle_write(f->out, &f->input, sha256, NULL), XFP_OK);
		*stated -= 2e-9;
		run(f, &r, xfp_main_verify, f->out, NULL);
		EXPECT(r, XFP_OK);
		run(f, &r, xfp_main_verify, "--source", f->model, f->out, NULL);
		EXPECT(r, XFP_UNMET);
		assert_non_null(strstr(r.err, f->units[4].name));
	}
	result_free(&r);
}

static void verify_holds_units_to_their_floors(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	char sha256[65];

	run(f, &r, xfp_main_verify, "--min-cos-strict", "0.99999", f->out, NULL);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "d $(touch pwned)"));
	assert_null(strstr(r.err, "c.gate"));
	assert_null(strstr(r.err, "a_head")); /* fp8 was promised nothing */
	assert_null(strstr(r.err, "e.k_proj")); /* source precision is always enough */
	run(f, &r, xfp_main_verify, "--min-cos-lazy", "0.99999", f->out, NULL);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "c.gate"));
	assert_null(strstr(r.err, "pwned"));
	run(f, &r, xfp_main_verify, "--floor", "lm_head=1", "--source", f->model, f->out, NULL);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "a_head"));
	run(f, &r, xfp_main_verify, "--min-cos-strict", "1", "--floor", "attention=0", "--floor", "dense_mlp=0", f->out, NULL);
	EXPECT(r, XFP_OK);
	/* a floor that the bundle itself promises */
	f->bundle_units[2].floor = 0.99999;
	assert_int_equal(xfp_bundle_write(f->out, &f->input, sha256, NULL), XFP_OK);
	run(f, &r, xfp_main_verify, f->out, NULL);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "c.gate"));
	assert_non_null(strstr(r.err, "0.99999"));
	run(f, &r, xfp_main_verify, "--min-cos-lazy", "0.5", f->out, NULL);
	EXPECT(r, XFP_OK);
	result_free(&r);
}

static void verify_finds_damage(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	struct xfp_bundle *bundle;
	struct xfp_matrix_info matrix;
	struct xfp_tensor_info tensor;
	size_t size;
	uint8_t *data = fixture_read(f->out, &size), *at;

	assert_int_equal(xfp_bundle_open(f->out, &bundle, NULL), XFP_OK);
	assert_true(xfp_bundle_matrix(bundle, 3, &matrix));
	assert_true(xfp_bundle_tensor(bundle, 5, &tensor));
	at = memmem(data, size, matrix.code, matrix.code_bytes);
	assert_non_null(at);
	at[3] ^= 1;
	at = memmem(data, size, tensor.data, tensor.bytes);
	at[0] ^= 1;
	xfp_bundle_close(bundle);
	fixture_write(f->out, data, size);
	run(f, &r, xfp_main_verify, f->out, NULL);
	EXPECT(r, XFP_BAD_INPUT);
	assert_non_null(strstr(r.err, "c.gate")); /* both are reported */
	assert_non_null(strstr(r.err, "embed"));
	assert_int_equal(truncate(f->out, (off_t)size - 512), 0);
	run(f, &r, xfp_main_verify, f->out, NULL);
	EXPECT(r, XFP_BAD_INPUT);
	free(data);
	result_free(&r);
}

/* One byte of one tensor of the checkpoint is another: `name` is in the message. */
static void verify_against_changed(struct fixture *f, uint32_t t, const char *name)
{
	struct result r = { 0 };
	size_t size;
	uint8_t *data = fixture_read(f->file.path, &size);

	data[f->tensors[t].offset + 2] ^= 1;
	fixture_write(f->file.path, data, size);
	run(f, &r, xfp_main_verify, "--source", f->model, f->out, NULL);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, name));
	data[f->tensors[t].offset + 2] ^= 1;
	fixture_write(f->file.path, data, size);
	free(data);
	result_free(&r);
}

static void verify_finds_what_differs_from_the_source(void **state)
{
	struct fixture *f = *state;
	const char *names[] = { "a_head.weight", "b.down", "c.gate_up", "pwned", "e.k_proj", "embed", NULL, "ids", NULL, NULL,
				"tied", "wide" };
	struct result r = { 0 };
	size_t size;
	uint8_t *data;

	for (uint32_t t = 0; t < f->ledger.tensor_count; t++)
		if (names[t])
			verify_against_changed(f, t, names[t]);
	/* another shape, the same bytes; another name */
	data = fixture_read(f->file.path, &size);
	memcpy(memmem(data, size, "[8,5]", 5), "[5,8]", 5);
	memcpy(memmem(data, size, "\"ids\"", 5), "\"idx\"", 5);
	fixture_write(f->file.path, data, size);
	run(f, &r, xfp_main_verify, "--source", f->model, f->out, NULL);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "tensor embed: another dtype or shape"));
	assert_non_null(strstr(r.err, "tensor ids: not in the checkpoint"));
	assert_non_null(strstr(r.err, "tensor idx: in the checkpoint, not in the bundle"));
	free(data);
	result_free(&r);
}

/* ---- info -------------------------------------------------------------------------------------- */

static void info_tells_all_as_json(void **state)
{
	static const char *unit_keys[] = { "name", "class", "role", "mode", "k", "rows", "cols", "experts", "weights", "bytes",
					   "true_bits", "paper_bits", "outliers", "cos_median", "cos_p5", "floor", "met" };
	static const char *tensor_keys[] = { "name", "fate", "reason", "class", "dtype", "shape" };
	struct fixture *f = *state;
	struct result r = { 0 };
	json_t *root, *units, *tensors, *up;

	run(f, &r, xfp_main_info, "--json", f->out, NULL);
	EXPECT(r, XFP_OK);
	root = json_loads(r.out, 0, NULL);
	units = json_object_get(root, "units");
	tensors = json_object_get(root, "tensors");
	assert_int_equal(json_array_size(units), f->ledger.unit_count);
	assert_int_equal(json_array_size(tensors), f->ledger.tensor_count);
	for (uint32_t u = 0; u < f->ledger.unit_count; u++) {
		assert_int_equal(json_object_size(json_array_get(units, u)), sizeof unit_keys / sizeof *unit_keys);
		for (size_t i = 0; i < sizeof unit_keys / sizeof *unit_keys; i++)
			assert_non_null(json_object_get(json_array_get(units, u), unit_keys[i]));
	}
	for (uint32_t t = 0; t < f->ledger.tensor_count; t++) {
		assert_int_equal(json_object_size(json_array_get(tensors, t)), sizeof tensor_keys / sizeof *tensor_keys);
		for (size_t i = 0; i < sizeof tensor_keys / sizeof *tensor_keys; i++)
			assert_non_null(json_object_get(json_array_get(tensors, t), tensor_keys[i]));
	}
	up = json_array_get(units, 3);
	assert_string_equal(json_string_value(json_object_get(up, "name")), "c.up");
	assert_string_equal(json_string_value(json_object_get(up, "class")), "routed_expert");
	assert_int_equal(json_integer_value(json_object_get(up, "k")), 4);
	assert_int_equal(json_integer_value(json_object_get(up, "weights")), 2 * 3 * 37);
	assert_true(json_real_value(json_object_get(up, "paper_bits")) == 4.0);
	assert_true(json_real_value(json_object_get(up, "true_bits")) ==
		    (double)json_integer_value(json_object_get(up, "bytes")) * 8 / (2 * 3 * 37));
	assert_true(json_real_value(json_object_get(up, "cos_median")) == f->packed[3].cos_median);
	assert_true(json_is_true(json_object_get(up, "met")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(tensors, 8), "fate")), "dropped");
	json_decref(root);
	result_free(&r);
}

static void info_is_readable(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };

	run(f, &r, xfp_main_info, "--units", f->out, NULL);
	EXPECT(r, XFP_OK);
	assert_non_null(strstr(r.out, "family test"));
	assert_non_null(strstr(r.out, "lm_head"));
	assert_non_null(strstr(r.out, "2-5"));
	assert_non_null(strstr(r.out, "c.gate (2 x 3 x 37)"));
	run(f, &r, xfp_main_info, f->file.path, NULL);
	EXPECT(r, XFP_BAD_INPUT);
	assert_non_null(strstr(r.err, "xfp test: "));
	result_free(&r);
}

/* ---- unpack ------------------------------------------------------------------------------------ */

static uint8_t *tensor_bytes(const struct xfp_checkpoint *checkpoint, const char *name, const struct xfp_source_tensor **out)
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
	return dtype == XFP_BF16 ? xfp_bf16_to_float(xfp_float_to_bf16(value))
	     : dtype == XFP_F16	 ? xfp_half_to_float(xfp_float_to_half(value))
				 : value;
}

/* A folder has every tensor: kept ones byte for byte, others as they decode, in `dtype` or their own. */
static void check_unpacked(struct fixture *f, const char *folder, int dtype)
{
	struct xfp_checkpoint *checkpoint;
	struct xfp_error err;

	if (xfp_checkpoint_open(folder, &checkpoint, &err))
		fail_msg("%s", err.text);
	assert_int_equal(checkpoint->tensor_count, f->ledger.tensor_count - 1);
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
				uint64_t at = where->base + i / where->cols * where->row_stride + i % where->cols * where->col_stride;

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
	static const struct { const char *name; int dtype; } dtypes[] = {
		{ "source", -1 }, { "f32", XFP_F32 }, { "bf16", XFP_BF16 }, { "f16", XFP_F16 },
	};
	struct fixture *f = *state;
	struct result r = { 0 };

	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
		char *folder = xfp_format("%s/new/%s", f->folder, dtypes[i].name), *path;

		run(f, &r, xfp_main_unpack, "--dtype", dtypes[i].name, "-o", folder, f->out, NULL);
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
	result_free(&r);
}

static void unpack_splits_into_shards(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	char *folder = xfp_path(f->folder, "shards");
	json_t *root, *files;

	run(f, &r, xfp_main_unpack, "--json", "--max-shard-size", "2k", "-o", folder, f->out, NULL);
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
	result_free(&r);
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

static void unpack_touches_no_full_folder(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	unsigned before = entries(f->model);

	run(f, &r, xfp_main_unpack, "-o", f->model, f->out, NULL);
	EXPECT(r, XFP_USAGE);
	assert_int_equal(entries(f->model), before);
	run(f, &r, xfp_main_unpack, "-o", f->file.path, f->out, NULL);
	EXPECT(r, XFP_FAILED);
	result_free(&r);
}

static void unpack_leaves_nothing_after_a_failure(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	char *fresh = xfp_path(f->folder, "fresh"), *empty = xfp_path(f->folder, "empty"), sha256[65];

	/* 1e30 is no f16 */
	f->packed_matrices[4][0].exponent = -90;
	assert_int_equal(xfp_bundle_write(f->out, &f->input, sha256, NULL), XFP_OK);
	assert_int_equal(mkdir(empty, 0700), 0);
	run(f, &r, xfp_main_unpack, "--dtype", "f16", "--max-shard-size", "2k", "-o", fresh, f->out, NULL);
	EXPECT(r, XFP_FAILED);
	assert_non_null(strstr(r.err, "--dtype f32"));
	assert_non_null(strstr(r.err, "pwned"));
	assert_int_not_equal(access(fresh, F_OK), 0);
	run(f, &r, xfp_main_unpack, "--dtype", "f16", "--max-shard-size", "2k", "-o", empty, f->out, NULL);
	EXPECT(r, XFP_FAILED);
	assert_int_equal(access(empty, F_OK), 0);
	assert_int_equal(entries(empty), 0);
	run(f, &r, xfp_main_unpack, "--dtype", "bf16", "-o", empty, f->out, NULL);
	EXPECT(r, XFP_OK);
	free(fresh);
	free(empty);
	result_free(&r);
}

/* ---- command lines ----------------------------------------------------------------------------- */

static void wrong_command_lines(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	static const char *const wrong[][4] = {
		{ "--floor", "attention", "x" }, { "--floor", "nothing=0.5", "x" }, { "--floor", "attention=1.5", "x" },
		{ "--min-cos-strict", "1e-3", "x" }, { "--min-cos-lazy", "-1", "x" }, { "--nonsense", "x" }, { NULL },
	};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		run(f, &r, xfp_main_verify, wrong[i][0], wrong[i][1], wrong[i][2], NULL);
		EXPECT(r, XFP_USAGE);
		assert_string_equal(r.out, "");
		assert_string_not_equal(r.err, "");
	}
	run(f, &r, xfp_main_unpack, f->out, NULL);
	EXPECT(r, XFP_USAGE);
	run(f, &r, xfp_main_unpack, "-o", "x", "--dtype", "int8", f->out, NULL);
	EXPECT(r, XFP_USAGE);
	run(f, &r, xfp_main_unpack, "-o", "x", "--max-shard-size", "0", f->out, NULL);
	EXPECT(r, XFP_USAGE);
	run(f, &r, xfp_main_unpack, "-o", "x", "--max-shard-size", "5GB", f->out, NULL);
	EXPECT(r, XFP_USAGE);
	run(f, &r, xfp_main_unpack, "-o", "x", "--max-shard-size", "99999999999G", f->out, NULL);
	EXPECT(r, XFP_USAGE);
	run(f, &r, xfp_main_info, f->out, f->out, NULL);
	EXPECT(r, XFP_USAGE);
	run(f, &r, xfp_main_info, "--help", NULL);
	EXPECT(r, XFP_OK);
	assert_memory_equal(r.out, "usage: xfp test ", 16);
	run(f, &r, xfp_main_verify, "--version", NULL);
	EXPECT(r, XFP_OK);
	assert_memory_equal(r.out, "xfp test (xfp) ", 15);
	result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(verify_accepts_what_is_right, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_recomputes_what_the_bundle_states, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_holds_units_to_their_floors, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_finds_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_finds_what_differs_from_the_source, setup, teardown),
		cmocka_unit_test_setup_teardown(info_tells_all_as_json, setup, teardown),
		cmocka_unit_test_setup_teardown(info_is_readable, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_restores_the_checkpoint, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_splits_into_shards, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_touches_no_full_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(unpack_leaves_nothing_after_a_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_command_lines, setup, teardown),
	};

	return cmocka_run_group_tests_name("bundle_tools", tests, NULL, NULL);
}
