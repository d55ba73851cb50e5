/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xfp verify, info and unpack on a bundle with known weights.
 */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/sha256.h"
#include "checkpoints/checkpoint.h"
#include "commands/ui/commands.h"
#include "kernels/common/number.h"
#include "runtime/xfp.h"
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

/* ---- verify ------------------------------------------------------------------------------------ */

static void verify_accepts_what_is_right(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };

	RUN(f, &r, xfp_main_verify, f->out);
	EXPECT(r, XFP_OK);
	assert_non_null(strstr(r.out, "routed_expert"));
	assert_string_equal(r.err, "");
	RUN(f, &r, xfp_main_verify, "--source", f->model, f->out);
	EXPECT(r, XFP_OK);
	assert_string_equal(r.err, "");
	RUN(f, &r, xfp_main_verify, "-q", "--source", f->model, f->out);
	EXPECT(r, XFP_OK);
	assert_string_equal(r.out, "");
	fixture_result_free(&r);
}

static void verify_recomputes_what_the_bundle_states(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	json_t *root, *units;

	RUN(f, &r, xfp_main_verify, "--json", "--source", f->model, f->out);
	EXPECT(r, XFP_OK);
	root = json_loads(r.out, 0, NULL);
	units = json_object_get(root, "units");
	assert_true(json_is_true(json_object_get(root, "ok")));
	assert_int_equal(json_array_size(units), f->ledger.unit_count);
	for (uint32_t u = 0; u < f->ledger.unit_count; u++) {
		json_t *unit = json_array_get(units, u);

		/* The fixture computes in double throughout. */
		assert_true(fabs(json_real_value(json_object_get(unit, "cos_median")) - f->packed[u].cos_median) <
			    1e-9);
		assert_true(fabs(json_real_value(json_object_get(unit, "error")) - f->packed[u].error) < 1e-9);
	}
	json_decref(root);
	/* and fails if that is wrong */
	for (int i = 0; i < 3; i++) {
		double *stated = i == 0   ? &f->packed[4].cos_median
				 : i == 1 ? &f->packed[4].cos_p5
					  : &f->packed[4].error;

		*stated += 2e-9;
		assert_int_equal(fixture_write_bundle(f, NULL), XFP_OK);
		*stated -= 2e-9;
		RUN(f, &r, xfp_main_verify, f->out);
		EXPECT(r, XFP_OK);
		RUN(f, &r, xfp_main_verify, "--source", f->model, f->out);
		EXPECT(r, XFP_UNMET);
		assert_non_null(strstr(r.err, f->units[4].name));
	}
	fixture_result_free(&r);
}

static void verify_holds_units_to_their_floors(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };

	RUN(f, &r, xfp_main_verify, "--min-cos-strict", "0.99999", f->out);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "d $(touch pwned)"));
	assert_null(strstr(r.err, "c.gate"));
	assert_null(strstr(r.err, "a_head"));   /* fp8 has no floor */
	assert_null(strstr(r.err, "e.k_proj")); /* source precision always meets its floor */
	RUN(f, &r, xfp_main_verify, "--min-cos-lazy", "0.99999", f->out);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "c.gate"));
	assert_null(strstr(r.err, "pwned"));
	RUN(f, &r, xfp_main_verify, "--floor", "lm_head=1", "--source", f->model, f->out);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "a_head"));
	RUN(f, &r, xfp_main_verify, "--min-cos-strict", "1", "--floor", "attention=0", "--floor", "dense_mlp=0",
	    f->out);
	EXPECT(r, XFP_OK);
	/* the bundle's own floor */
	f->bundle_units[2].floor = 0.99999;
	assert_int_equal(fixture_write_bundle(f, NULL), XFP_OK);
	RUN(f, &r, xfp_main_verify, f->out);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "c.gate"));
	assert_non_null(strstr(r.err, "0.99999"));
	RUN(f, &r, xfp_main_verify, "--min-cos-lazy", "0.5", f->out);
	EXPECT(r, XFP_OK);
	fixture_result_free(&r);
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
	RUN(f, &r, xfp_main_verify, f->out);
	EXPECT(r, XFP_BAD_INPUT);
	assert_non_null(strstr(r.err, "c.gate")); /* both are reported */
	assert_non_null(strstr(r.err, "embed"));
	assert_int_equal(truncate(f->out, (off_t)size - 512), 0);
	RUN(f, &r, xfp_main_verify, f->out);
	EXPECT(r, XFP_BAD_INPUT);
	free(data);
	fixture_result_free(&r);
}

static uint32_t flawed; /* member that fails when it is read for the first time */
static bool is_flawed;

enum xfp_status __real_xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_error *err);
enum xfp_status __wrap_xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_error *err);

enum xfp_status __wrap_xfp_bundle_check_member(const struct xfp_bundle *bundle, uint32_t number, struct xfp_error *err)
{
	if (!is_flawed || number != flawed)
		return __real_xfp_bundle_check_member(bundle, number, err);
	is_flawed = false; /* only one thread has this member */
	return xfp_fail(err, XFP_BAD_INPUT, "m.xfp: damaged: member x (y; z): its content fails; copy it again");
}

static void verify_says_that_two_reads_differ(void **state)
{
	static const char said[] =
		"m.xfp: damaged: member x (y; z): its content fails, but not when it was read again; "
		"check the disk and memory of this machine\n";
	struct fixture *f = *state;
	struct result r = { 0 };
	struct xfp_matrix_info matrix;
	struct xfp_bundle *bundle;
	size_t size;
	uint8_t *data;

	assert_int_equal(xfp_bundle_open(f->out, &bundle, NULL), XFP_OK);
	is_flawed = true; /* and stays set: commands run in processes of their own */
	for (flawed = 0; flawed < xfp_bundle_members(bundle); flawed++) {
		RUN(f, &r, xfp_main_verify, "--source", f->model, f->out);
		EXPECT(r, XFP_FAILED);
		assert_non_null(strstr(r.err, said));
		assert_non_null(
			strstr(r.err, ": two reads gave different results (1 fault); check the disk and memory of"));
		assert_string_equal(r.out, "");
	}
	flawed = 0;
	RUN(f, &r, xfp_main_verify, "--json", f->out);
	EXPECT(r, XFP_FAILED);
	assert_non_null(strstr(r.out, "\"ok\": false"));
	/* Other damage has precedence. */
	data = fixture_read(f->out, &size);
	assert_true(xfp_bundle_matrix(bundle, 3, &matrix));
	*(uint8_t *)memmem(data, size, matrix.code, matrix.code_bytes) ^= 1;
	xfp_bundle_close(bundle);
	fixture_write(f->out, data, size);
	RUN(f, &r, xfp_main_verify, f->out);
	EXPECT(r, XFP_BAD_INPUT);
	assert_non_null(strstr(r.err, said));
	assert_non_null(strstr(r.err, ": damaged (2 faults)"));
	is_flawed = false;
	free(data);
	fixture_result_free(&r);
}

/* One byte of one tensor of the checkpoint differs: the message contains `name`. */
static void verify_against_changed(struct fixture *f, uint32_t t, const char *name)
{
	struct result r = { 0 };
	size_t size;
	uint8_t *data = fixture_read(f->file.path, &size);

	data[f->tensors[t].offset + 2] ^= 1;
	fixture_write(f->file.path, data, size);
	RUN(f, &r, xfp_main_verify, "--source", f->model, f->out);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, name));
	data[f->tensors[t].offset + 2] ^= 1;
	fixture_write(f->file.path, data, size);
	free(data);
	fixture_result_free(&r);
}

static void verify_finds_what_differs_from_the_source(void **state)
{
	struct fixture *f = *state;
	const char *names[] = { "a_head.weight", "b.down", "c.gate_up", "pwned", "e.k_proj", "embed",  NULL,
				"ids",           NULL,     NULL,        "tied",  "wide",     "x.gate", "x.k",
				"x.o",           "y.up",   "y.q",       "y.v",   "z.wide" };
	struct result r = { 0 };
	size_t size;
	uint8_t *data;

	for (uint32_t t = 0; t < f->ledger.tensor_count; t++)
		if (names[t])
			verify_against_changed(f, t, names[t]);
	/* another shape with the same bytes; another name */
	data = fixture_read(f->file.path, &size);
	memcpy(memmem(data, size, "[8,5]", 5), "[5,8]", 5);
	memcpy(memmem(data, size, "\"ids\"", 5), "\"idx\"", 5);
	fixture_write(f->file.path, data, size);
	RUN(f, &r, xfp_main_verify, "--source", f->model, f->out);
	EXPECT(r, XFP_UNMET);
	assert_non_null(strstr(r.err, "tensor embed: the bundle was made from"));
	assert_non_null(strstr(r.err, "tensor ids: not in the checkpoint"));
	assert_non_null(strstr(r.err, "tensor idx: in the checkpoint, not in the bundle"));
	free(data);
	fixture_result_free(&r);
}

/* Give one fp16 of the library another value, as if it had been packed so. */
static void repack_code(struct fixture *f, size_t at, uint16_t half)
{
	struct xfp_bundle_unit *unit = &f->bundle_units[0];
	struct xfp_packed *packed = &f->packed[0];
	XXH128_canonical_t xxh3;
	size_t size;
	uint8_t *data = fixture_read(unit->path, &size), *code = data + unit->offset[XFP_PART_CODE];

	memcpy(code + 2 * at, &half, 2);
	xfp_sha256(code, packed->bytes[XFP_PART_CODE], packed->digest[XFP_PART_CODE].sha256);
	XXH128_canonicalFromHash(&xxh3, XXH3_128bits(code, packed->bytes[XFP_PART_CODE]));
	memcpy(packed->digest[XFP_PART_CODE].xxh3, xxh3.digest, sizeof xxh3.digest);
	fixture_write(unit->path, data, size);
	free(data);
}

static void verify_finds_libraries_that_are_not_finite(void **state)
{
	static const uint16_t values[] = { 0x7c00, 0xfc00, 0x7e00 };

	(void)state;
	for (int small = 2; small <= 3; small++) {
		for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
			struct fixture f;
			struct result r = { 0 };

			fixture_make(&f, small);
			for (size_t i = 0; i < 16; i++)
				repack_code(&f, i, values[v]);
			assert_int_equal(fixture_write_bundle(&f, NULL), XFP_OK);
			RUN(&f, &r, xfp_main_verify, f.out);
			EXPECT(r, XFP_BAD_INPUT);
			assert_non_null(strstr(r.err, "q.weight"));
			assert_non_null(strstr(r.err, "not finite"));
			fixture_result_free(&r);
			fixture_free(&f);
		}
	}
}

/* One row of three, first or not. */
static void verify_finds_a_row_that_is_not_finite(void **state)
{
	(void)state;
	for (size_t row = 0; row < 3; row++) {
		struct fixture f;
		struct result r = { 0 };
		char part[128];

		fixture_make(&f, 1);
		for (size_t i = 0; i < 4; i++)
			repack_code(&f, 4 * row + i, 0x7c00);
		assert_int_equal(fixture_write_bundle(&f, NULL), XFP_OK);
		RUN(&f, &r, xfp_main_verify, f.out);
		EXPECT(r, XFP_BAD_INPUT);
		snprintf(part, sizeof part, "1 of 3 rows decode to weights that are not finite, the first is row %zu",
			 row);
		assert_non_null(strstr(r.err, part));
		fixture_result_free(&r);
		fixture_free(&f);
	}
}

/* ---- info -------------------------------------------------------------------------------------- */

static void info_tells_all_as_json(void **state)
{
	static const char *unit_keys[] = {
		"name",   "class",   "role",    "mode",      "k",         "group_size", "library_size",    "rows",
		"cols",   "experts", "weights", "bytes",     "true_bits", "paper_bits", "outliers",        "cos_median",
		"cos_p5", "floor",   "met",     "format_by", "floor_by",  "fixed",      "sampled_experts", "missed"
	};
	static const char *tensor_keys[] = { "name", "fate", "reason", "class", "dtype", "shape" };
	struct fixture *f = *state;
	struct result r = { 0 };
	json_t *root, *units, *tensors, *up;

	RUN(f, &r, xfp_main_info, "--json", f->out);
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
		assert_int_equal(json_object_size(json_array_get(tensors, t)),
				 sizeof tensor_keys / sizeof *tensor_keys);
		for (size_t i = 0; i < sizeof tensor_keys / sizeof *tensor_keys; i++)
			assert_non_null(json_object_get(json_array_get(tensors, t), tensor_keys[i]));
	}
	up = json_array_get(units, 3);
	assert_true(json_is_null(json_object_get(up, "fixed"))); /* this bundle does not say how it was made */
	assert_string_equal(json_string_value(json_object_get(up, "role")), "up");
	assert_string_equal(json_string_value(json_object_get(up, "class")), "routed_expert");
	assert_int_equal(json_integer_value(json_object_get(up, "k")), 4);
	assert_int_equal(json_integer_value(json_object_get(up, "weights")), 2 * 3 * 37);
	assert_true(json_real_value(json_object_get(up, "paper_bits")) == 4.0);
	assert_true(fabs(json_real_value(json_object_get(up, "true_bits")) -
			 (double)json_integer_value(json_object_get(up, "bytes")) * 8 / (2 * 3 * 37)) < 1e-13);
	assert_true(fabs(json_real_value(json_object_get(up, "cos_median")) - f->packed[3].cos_median) < 1e-14);
	assert_true(json_is_true(json_object_get(up, "met")));
	assert_true(json_is_null(json_object_get(up, "group_size")) &&
		    json_is_null(json_object_get(up, "library_size")));
	for (uint32_t u = 0; u < f->ledger.unit_count; u++) {
		const struct xfp_packed *packed = &f->packed[u];
		const json_t *one = json_array_get(units, u);
		double group = 1u << packed->group, extra = packed->mode == XFP_MODE_V2A ? 40 / group : 8 / group;

		if (packed->mode != XFP_MODE_V2A && packed->mode != XFP_MODE_V2C)
			continue;
		assert_true(json_real_value(json_object_get(one, "paper_bits")) == packed->k + extra);
		assert_int_equal(json_integer_value(json_object_get(one, "group_size")), 1u << packed->group);
		assert_int_equal(json_integer_value(json_object_get(one, "library_size")), 1u << packed->library);
	}
	assert_string_equal(json_string_value(json_object_get(json_array_get(tensors, 8), "fate")), "dropped");
	json_decref(root);
	fixture_result_free(&r);
}

static void info_is_readable(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };

	RUN(f, &r, xfp_main_info, "--units", f->out);
	EXPECT(r, XFP_OK);
	assert_non_null(strstr(r.out, "family test"));
	assert_non_null(strstr(r.out, "lm_head"));
	assert_non_null(strstr(r.out, "2-5"));
	assert_non_null(strstr(r.out, "y.up (up, 3 x 5 x 100); library of 16"));
	assert_non_null(strstr(r.out, "c.gate_up (gate, 2 x 3 x 37)"));
	RUN(f, &r, xfp_main_info, f->file.path);
	EXPECT(r, XFP_BAD_INPUT);
	assert_non_null(strstr(r.err, "xfp test: "));
	fixture_result_free(&r);
}

/* ---- an independent reader ---------------------------------------------------------------------- */

static int python(const char *script, const char *bundle, const char *unit, const char *role, const char *out)
{
	const char *interpreter = getenv("PYTHON") ? getenv("PYTHON") : "/usr/bin/python3";
	pid_t child = fork();
	int status;

	if (!child) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(99);
		if (!script)
			execlp(interpreter, interpreter, "-c", "import numpy", NULL);
		else
			execlp(interpreter, interpreter, script, bundle, unit, role, out, NULL);
		_exit(127);
	}
	assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* tests/read_bundle.py knows xfp(5) and nothing else. */
static void an_independent_reader_agrees(void **state)
{
	struct fixture *f = *state;
	char *script = xfp_path(getenv("srcdir") ? getenv("srcdir") : ".", "tests/read_bundle.py");
	char *out = xfp_path(f->folder, "unit.npy");

	if (access(script, R_OK) || python(NULL, NULL, NULL, NULL, NULL)) {
		free(script);
		free(out);
		print_message("Python with numpy, or the script, is not there\n");
		skip();
	}
	assert_int_equal(python(script, f->out, NULL, NULL, NULL), 0); /* everything but decoding */
	for (uint32_t u = 0; u < f->ledger.unit_count; u++) {
		const struct xfp_ledger_unit *unit = &f->units[u];
		size_t size, bytes = unit->rows * unit->cols * sizeof(float);
		uint8_t *data;

		assert_int_equal(python(script, f->out, unit->name, unit->role, out), 0);
		data = fixture_read(out, &size);
		assert_true(size > unit->experts * bytes);
		for (uint32_t e = 0; e < unit->experts; e++)
			assert_memory_equal(data + size - (unit->experts - e) * bytes,
					    f->decoded[unit->first_matrix + e], bytes);
		free(data);
	}
	free(script);
	free(out);
}

/* ---- command lines ----------------------------------------------------------------------------- */

static void wrong_command_lines(void **state)
{
	struct fixture *f = *state;
	struct result r = { 0 };
	static const char *const wrong[][4] = {
		{ "--floor", "attention", "x" },
		{ "--floor", "nothing=0.5", "x" },
		{ "--floor", "attention=1.5", "x" },
		{ "--min-cos-strict", "1e-3", "x" },
		{ "--min-cos-lazy", "-1", "x" },
		{ "--nonsense", "x" },
		{ NULL },
	};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		RUN(f, &r, xfp_main_verify, wrong[i][0], wrong[i][1], wrong[i][2]);
		EXPECT(r, XFP_USAGE);
		assert_string_equal(r.out, "");
		assert_string_not_equal(r.err, "");
	}
	RUN(f, &r, xfp_main_unpack, f->out);
	EXPECT(r, XFP_USAGE);
	RUN(f, &r, xfp_main_unpack, "-o", "x", "--dtype", "int8", f->out);
	EXPECT(r, XFP_USAGE);
	RUN(f, &r, xfp_main_unpack, "-o", "x", "--max-shard-size", "0", f->out);
	EXPECT(r, XFP_USAGE);
	RUN(f, &r, xfp_main_unpack, "-o", "x", "--max-shard-size", "5GiBs", f->out);
	EXPECT(r, XFP_USAGE);
	RUN(f, &r, xfp_main_unpack, "-o", "x", "--max-shard-size", "99999999999G", f->out);
	EXPECT(r, XFP_USAGE);
	RUN(f, &r, xfp_main_info, f->out, f->out);
	EXPECT(r, XFP_USAGE);
	RUN(f, &r, xfp_main_info, "--help");
	EXPECT(r, XFP_OK);
	assert_memory_equal(r.out, "usage: xfp info ", 16);
	RUN(f, &r, xfp_main_verify, "--version");
	EXPECT(r, XFP_OK);
	assert_memory_equal(r.out, "xfp test (xfp) ", 15);
	fixture_result_free(&r);
}

PROGRAM("test_bundle_tools")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(verify_accepts_what_is_right, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_recomputes_what_the_bundle_states, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_holds_units_to_their_floors, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_finds_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_says_that_two_reads_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(verify_finds_what_differs_from_the_source, setup, teardown),
		cmocka_unit_test(verify_finds_a_row_that_is_not_finite),
		cmocka_unit_test(verify_finds_libraries_that_are_not_finite),
		cmocka_unit_test_setup_teardown(info_tells_all_as_json, setup, teardown),
		cmocka_unit_test_setup_teardown(info_is_readable, setup, teardown),
		cmocka_unit_test_setup_teardown(an_independent_reader_agrees, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_command_lines, setup, teardown),
	};

	return cmocka_run_group_tests_name("bundle_tools", tests, NULL, NULL);
}
