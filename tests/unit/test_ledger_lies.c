/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger with a valid envelope and invalid records: every reference is checked before use, by the reader of the whole
 * ledger and by the reader of one unit.
 */
#include <stddef.h>

#include "schemas/h5.h"
#include "schemas/ledger.h"
#include "schemas/ledger/tables.h"
#include "tests/unit/scratch.h"
#include "tests/unit/sealed_lie.h"

/* Two files, three tensors of which the second is packed, one unit of two matrices, one extra. */
static void write_ledger(const char *path)
{
	struct xfp_component components[2] = { { XFP_COMPONENT_CODES, XFP_F8_E4M3, 0, 0, 12 },
					       { XFP_COMPONENT_SCALES, XFP_F32, 1, 0, 4 } };
	struct xfp_recipe_part part = { XFP_CODEC_FP8, 1, 3, 4, { 3, 3, 4 }, components, 2 };
	struct xfp_recipe recipe = { .parts = &part, .part_count = 1, .rows = 3, .cols = 4 };
	struct xfp_source_file files[2] = { { .name = (char *)"a", .path = (char *)"/a" },
					    { .name = (char *)"b", .path = (char *)"/b" } };
	struct xfp_ledger_tensor tensors[3] = { { 0 } };
	struct xfp_ledger_unit unit = { .name = (char *)"unit",
					.role = (char *)"q",
					.class_ = XFP_CLASS_ATTENTION,
					.plan = XFP_PLAN_FIT,
					.dtype = XFP_BF16,
					.experts = 2,
					.rows = 3,
					.cols = 4 };
	struct xfp_ledger_matrix matrices[2] = { { 0, 0, 3, 4, 4, 1 }, { 1, 0, 3, 4, 4, 1 } };
	char *extra = (char *)"config.json";
	struct xfp_ledger_synthesized synthesized = { (char *)"/models/made/config.json",
						      "0123456789abcdef0123456789abcdef" };
	struct xfp_ledger ledger = { .model = (char *)"m",
				     .family = (char *)"f",
				     .format = (char *)"safetensors",
				     .files = files,
				     .tensors = tensors,
				     .units = &unit,
				     .matrices = matrices,
				     .extras = &extra,
				     .synthesized = &synthesized,
				     .file_count = 2,
				     .tensor_count = 3,
				     .unit_count = 1,
				     .matrix_count = 2,
				     .extra_count = 1 };

	for (unsigned t = 0; t < 3; t++)
		tensors[t] = (struct xfp_ledger_tensor){ .name = (char *)"tensor",
							 .reason = (char *)"why",
							 .dtype = XFP_BF16,
							 .class_ = XFP_CLASS_ATTENTION,
							 .fate = t == 2 ? XFP_FATE_TIED : XFP_FATE_QUANTIZED,
							 .rank = 2,
							 .shape = { 3, 4 },
							 .file = t == 1,
							 .bytes = 24,
							 .tied = t == 2 ? 1 : UINT32_MAX };
	tensors[1].recipe = &recipe;
	OK(xfp_ledger_write(path, &ledger, &err));
}

static void lie(const char *path, enum xfp_ledger_table table, size_t at, const void *bytes, size_t size)
{
	sealed_lie(path, xfp_ledger_table_name(table), at, bytes, size);
}

static void expect_fine(const char *path)
{
	struct xfp_ledger *got;

	OK(xfp_ledger_read(path, &got, &err));
	xfp_ledger_free(got);
	OK(xfp_ledger_read_unit(path, 0, &got, &err));
	xfp_ledger_free(got);
}

/* Read the whole ledger, and a unit affected by the change, where the message about a reference outside of a table may
 * differ. */
static void expect_refused(const char *path, const char *what, bool unit_too)
{
	struct xfp_ledger *got = NULL;
	struct xfp_error err = { 0 };
	enum xfp_status status = xfp_ledger_read(path, &got, &err);

	if (status != XFP_BAD_INPUT || !strstr(err.text, what) || !strstr(err.text, "run xfp-inspect again"))
		fail_msg("not \"%s\" but \"%s\"", what, err.text);
	assert_null(got);
	err.text[0] = '\0';
	status = xfp_ledger_read_unit(path, 0, &got, &err);
	if (status != (unit_too ? XFP_BAD_INPUT : XFP_OK))
		fail_msg("%s; of the unit: \"%s\"", what, err.text);
	xfp_ledger_free(got);
}

#define TENSOR(n, field) \
	XFP_LEDGER_TENSORS, (n) * sizeof(struct xfp_tensor_record) + offsetof(struct xfp_tensor_record, field)
#define RECIPE(field) XFP_LEDGER_RECIPES, offsetof(struct xfp_recipe_record, field)
#define PART(field) XFP_LEDGER_PARTS, offsetof(struct xfp_part_record, field)
#define COMPONENT(n, field) \
	XFP_LEDGER_COMPONENTS, (n) * sizeof(struct xfp_component_record) + offsetof(struct xfp_component_record, field)
#define UNIT(field) XFP_LEDGER_UNITS, offsetof(struct xfp_unit_record, field)
#define MATRIX(n, field) \
	XFP_LEDGER_MATRICES, (n) * sizeof(struct xfp_matrix_record) + offsetof(struct xfp_matrix_record, field)

static void numbers(void **state)
{
	static const struct {
		enum xfp_ledger_table table;
		size_t at, bytes;
		uint64_t value;
		const char *what; /* NULL: valid */
		bool whole_only;  /* does not affect the unit */
	} cases[] = {
		{ TENSOR(0, dtype), 4, XFP_DTYPES, "impossible tensor 0", false },
		{ TENSOR(0, dtype), 4, XFP_DTYPES - 1, NULL, false },
		{ TENSOR(1, class_), 4, XFP_CLASSES, "impossible tensor 1", false },
		{ TENSOR(1, fate), 4, XFP_FATES, "impossible tensor 1", false },
		{ TENSOR(0, rank), 4, 9, "impossible tensor 0", false },
		{ TENSOR(0, rank), 4, 8, NULL, false },
		{ TENSOR(0, file), 4, 2, "impossible tensor 0", false },
		{ TENSOR(0, file), 4, 1, NULL, false },
		{ TENSOR(2, tied), 4, 3, "impossible tensor 2", true },
		{ TENSOR(2, tied), 4, 2, NULL, false },
		{ TENSOR(2, tied), 4, UINT32_MAX, "impossible tensor 2", true },
		{ TENSOR(0, tied), 4, 0, "impossible tensor 0", false },
		{ TENSOR(1, recipe), 8, 1, "reference outside", false },
		{ TENSOR(1, recipe), 8, UINT64_MAX - 1, "reference outside", false },
		{ TENSOR(1, recipe), 8, UINT64_MAX, NULL, false },
		{ TENSOR(0, recipe), 8, 0, NULL, false },
		{ TENSOR(2, recipe), 8, 1, "reference outside", true },
		{ RECIPE(parts), 8, 0, "impossible recipe 0", false },
		{ RECIPE(parts), 8, 2, "recipe 0", false },
		{ RECIPE(parts), 8, UINT64_MAX, "recipe 0", false },
		{ RECIPE(first_part), 8, 1, "recipe 0", false },
		{ RECIPE(first_part), 8, UINT64_MAX, "recipe 0", false },
		{ RECIPE(beside), 8, 2, "impossible recipe 0", false },
		{ RECIPE(beside), 8, 1, NULL, false },
		{ PART(codec), 4, XFP_CODECS, "impossible part 0", false },
		{ PART(codec), 4, XFP_CODECS - 1, NULL, false },
		{ PART(components), 8, 0, "impossible part 0", false },
		{ PART(components), 8, 3, "part 0", false },
		{ PART(components), 8, 1, NULL, false },
		{ PART(first_component), 8, 1, "part 0", false },
		{ PART(first_component), 8, UINT64_MAX, "part 0", false },
		{ COMPONENT(1, role), 4, XFP_COMPONENTS, "impossible component 1", false },
		{ COMPONENT(1, dtype), 4, XFP_DTYPES, "impossible component 1", false },
		{ COMPONENT(1, file), 8, 2, "impossible component 1", false },
		{ COMPONENT(1, file), 8, 0, NULL, false },
		{ UNIT(class_), 4, XFP_CLASSES, "impossible unit 0", false },
		{ UNIT(plan), 4, XFP_PLAN_KEEP + 1, "impossible unit 0", false },
		{ UNIT(plan), 4, XFP_PLAN_KEEP, NULL, false },
		{ UNIT(dtype), 4, XFP_DTYPES, "impossible unit 0", false },
		{ UNIT(experts), 4, 0, "impossible unit 0", false },
		{ UNIT(experts), 4, 3, "impossible unit 0", false },
		{ UNIT(experts), 4, 1, NULL, false },
		{ UNIT(first_matrix), 8, 1, "impossible unit 0", false },
		{ UNIT(first_matrix), 8, UINT64_MAX, "impossible unit 0", false },
		{ UNIT(rows), 8, 4, "matrices of unit 0 differ in shape", false },
		{ UNIT(cols), 8, 3, "matrices of unit 0 differ in shape", false },
		{ MATRIX(1, rows), 8, 2, "matrices of unit 0 differ in shape", false },
		{ MATRIX(1, cols), 8, 5, "matrices of unit 0 differ in shape", false },
		{ MATRIX(1, tensor), 8, 3, "impossible matrix 1", false },
		{ MATRIX(1, tensor), 8, 2, NULL, false },
		{ MATRIX(1, tensor), 8, UINT64_MAX, "impossible matrix 1", false },
	};
	char *path = scratch_path(state, XFP_LEDGER_FILE);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_ledger(path);
		lie(path, cases[i].table, cases[i].at, &cases[i].value, cases[i].bytes);
		if (cases[i].what)
			expect_refused(path, cases[i].what, !cases[i].whole_only);
		else
			expect_fine(path);
	}
	free(path);
}

static uint32_t pool_size(const char *path)
{
	hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	hid_t set = H5Dopen2(file, xfp_ledger_table_name(XFP_LEDGER_STRINGS), H5P_DEFAULT), space = H5Dget_space(set);
	uint32_t size = (uint32_t)H5Sget_simple_extent_npoints(space);

	H5Sclose(space);
	H5Dclose(set);
	H5Fclose(file);
	return size;
}

/* The offset and length of the first file's name. */
static void strings(void **state)
{
	static const size_t name = offsetof(struct xfp_file_record, name);
	char *path = scratch_path(state, XFP_LEDGER_FILE);
	struct xfp_ledger *got = NULL;
	struct xfp_ledger_text beyond[3], text;
	uint32_t pool;

	write_ledger(path);
	pool = pool_size(path);
	text = (struct xfp_ledger_text){ 0, pool };
	lie(path, XFP_LEDGER_FILES, name, &text, sizeof text);
	OK(xfp_ledger_read(path, &got, &err));
	assert_int_equal(strlen(got->files[0].name), pool);
	xfp_ledger_free(got);
	/* one byte longer; one byte further; and where the sum of both wraps */
	beyond[0] = (struct xfp_ledger_text){ 0, pool + 1 };
	beyond[1] = (struct xfp_ledger_text){ 1, pool };
	beyond[2] = (struct xfp_ledger_text){ UINT32_MAX, 2 };
	for (int i = 0; i < 3; i++) {
		write_ledger(path);
		lie(path, XFP_LEDGER_FILES, name, &beyond[i], sizeof *beyond);
		expect_refused(path, "string outside the pool", true);
		write_ledger(path);
		lie(path, XFP_LEDGER_EXTRAS, offsetof(struct xfp_extra_record, name), &beyond[i], sizeof *beyond);
		expect_refused(path, "string outside the pool", false);
		write_ledger(path);
		lie(path, XFP_LEDGER_EXTRAS, offsetof(struct xfp_extra_record, path), &beyond[i], sizeof *beyond);
		expect_refused(path, "string outside the pool", false);
		write_ledger(path);
		lie(path, XFP_LEDGER_EXTRAS, offsetof(struct xfp_extra_record, digest), &beyond[i], sizeof *beyond);
		expect_refused(path, "string outside the pool", false);
		write_ledger(path);
		text = (struct xfp_ledger_text){ 0, 31 };
		lie(path, XFP_LEDGER_EXTRAS, offsetof(struct xfp_extra_record, digest), &text, sizeof text);
		expect_refused(path, "impossible digest of extra 0", false);
		write_ledger(path);
		lie(path, TENSOR(2, name), &beyond[i], sizeof *beyond);
		expect_refused(path, "string outside the pool", false);
		write_ledger(path);
		lie(path, TENSOR(1, reason), &beyond[i], sizeof *beyond);
		expect_refused(path, "string outside the pool", true);
		write_ledger(path);
		lie(path, UNIT(role), &beyond[i], sizeof *beyond);
		expect_refused(path, "string outside the pool", true);
	}
	/* A NUL would end a name early; names of checkpoints have none. */
	write_ledger(path);
	text = (struct xfp_ledger_text){ 0, 2 };
	lie(path, XFP_LEDGER_FILES, name, &text, sizeof text);
	expect_fine(path);
	lie(path, XFP_LEDGER_STRINGS, 1, "", 1);
	expect_refused(path, "NUL in a string", true);
	free(path);
}

/* Files of another kind or version, validly sealed. */
static void another_kind(void **state)
{
	char *path = scratch_path(state, XFP_LEDGER_FILE);
	hid_t file, attribute, type;

	write_ledger(path);
	sealed_number(path, "version", XFP_LEDGER_VERSION + 1);
	expect_refused(path, "not a ledger of version 3", true);

	write_ledger(path);
	file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	attribute = H5Aopen(file, "kind", H5P_DEFAULT);
	type = H5Aget_type(attribute);
	assert_int_equal(H5Tget_size(type), strlen(XFP_LEDGER_KIND));
	assert_true(H5Awrite(attribute, type, "legder") >= 0);
	H5Tclose(type);
	H5Aclose(attribute);
	H5Fclose(file);
	seal_again(path);
	expect_refused(path, "not a ledger of version 3", true);

	for (unsigned t = 0; t < XFP_LEDGER_TABLES; t++) {
		write_ledger(path);
		file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
		assert_true(H5Ldelete(file, xfp_ledger_table_name(t), H5P_DEFAULT) >= 0);
		H5Fclose(file);
		seal_again(path);
		expect_refused(path, xfp_ledger_table_name(t), true);
	}
	free(path);
}

PROGRAM("test_ledger_lies")
{
	const struct CMUnitTest tests[] = { scratch_test(numbers), scratch_test(strings), scratch_test(another_kind) };

	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return cmocka_run_group_tests_name("ledger_lies", tests, NULL, NULL);
}
