/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Artifacts with a valid envelope and invalid numbers: one past the end of something is rejected, the end itself is
 * accepted.
 */
#include <stddef.h>

#include "schemas/h5.h"
#include "schemas/surveyed.h"
#include "stages/quantize/marks.h"
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/scratch.h"
#include "tests/unit/sealed_lie.h"

enum kind { OUTLIERS, FIT, PACKED };
static const char *const kinds[] = { XFP_OUTLIERS_KIND, XFP_FIT_KIND, XFP_PACKED_KIND };

static void write_one(const char *path, enum kind kind)
{
	struct xfp_artifact_label label = label_of(kinds[kind]);

	switch (kind) {
	case OUTLIERS:
		fixture_outliers(path, &label);
		break;
	case FIT:
		fixture_fit(path, &label);
		break;
	case PACKED:
		fixture_packed(path, &label);
		break;
	}
}

/* Read everything that a reader reads. */
static enum xfp_status read_outliers(struct xfp_artifact *a, struct xfp_error *err)
{
	struct xfp_outliers o = { 0 };
	enum xfp_status status = xfp_outliers_read(a, &o, err);
	uint64_t position[64];

	for (uint32_t m = 0; !status && m < o.matrices; m++)
		status = xfp_outliers_positions(a, &o, m, 0, o.first[m + 1] - o.first[m], position, err);
	xfp_outliers_free(&o);
	return status;
}

static enum xfp_status read_fit(struct xfp_artifact *a, struct xfp_error *err)
{
	uint16_t codebook[8 * FIXTURE_MATRICES_OF_UNIT * FIXTURE_ROWS];
	double cosine[FIXTURE_MATRICES_OF_UNIT * FIXTURE_ROWS];
	struct xfp_fit fit;
	enum xfp_status status = xfp_fit_read(a, &fit, err);

	for (uint32_t i = 0; !status && i < fit.candidate_count; i++)
		status = xfp_fit_read_rows(a, &fit.candidates[i], 0, fit.matrices * fit.rows, codebook, cosine, err);
	return status;
}

static enum xfp_status read_one(const char *path, enum kind kind, struct xfp_error *err)
{
	struct xfp_packed packed = { 0 };
	struct xfp_artifact a;
	enum xfp_status status;

	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	if (kind == PACKED)
		status = xfp_packed_read(&a, &packed, err);
	else
		status = kind == FIT ? read_fit(&a, err) : read_outliers(&a, err);
	xfp_packed_free(&packed);
	xfp_artifact_close(&a);
	return status;
}

static void expect_one(const char *path, enum kind kind, const char *what)
{
	struct xfp_error err = { 0 };
	enum xfp_status status = read_one(path, kind, &err);

	if (what ? status != XFP_DAMAGED || !strstr(err.text, what) : status)
		fail_msg("%s: \"%s\", not \"%s\"", kinds[kind], err.text, what ? what : "nothing");
}

/* Change bytes of a table: the expected message, or NULL if the value is valid. */
static void expect_lie(const char *path, enum kind kind, const char *table, size_t at, uint64_t value, size_t size,
		       const char *what)
{
	write_one(path, kind);
	sealed_lie(path, table, at, &value, size);
	expect_one(path, kind, what);
}

static void expect_number(const char *path, enum kind kind, const char *name, uint64_t value, const char *what)
{
	write_one(path, kind);
	sealed_number(path, name, value);
	expect_one(path, kind, what);
}

/* first: 0, 0, 1, 3 for 20 weights per matrix. */
static void outliers(void **state)
{
	char *path = scratch_path(state, "a.h5");

	write_one(path, OUTLIERS);
	expect_one(path, OUTLIERS, NULL);
	expect_lie(path, OUTLIERS, "first", 0, 1, 8, "outlier positions are missing");
	expect_lie(path, OUTLIERS, "first", 24, 2, 8, "outlier positions are missing");
	expect_lie(path, OUTLIERS, "first", 24, 4, 8, "outlier positions are missing");
	expect_lie(path, OUTLIERS, "first", 16, 3, 8, NULL);
	expect_lie(path, OUTLIERS, "first", 16, 4, 8, "impossible outlier count of matrix 2");
	expect_lie(path, OUTLIERS, "first", 8, 2, 8, "impossible outlier count of matrix 1");
	expect_lie(path, OUTLIERS, "first", 8, UINT64_MAX, 8, "impossible outlier count");
	expect_lie(path, OUTLIERS, "position", 0, 19, 8, NULL);
	expect_lie(path, OUTLIERS, "position", 0, 20, 8, "outlier outside matrix 1");
	expect_lie(path, OUTLIERS, "position", 16, UINT64_MAX, 8, "outlier outside matrix 2");
	expect_number(path, OUTLIERS, "matrices", 2, "impossible shape");
	expect_number(path, OUTLIERS, "matrices", UINT32_MAX, "impossible shape");
	expect_number(path, OUTLIERS, "cols", 4, "impossible shape");
	expect_number(path, OUTLIERS, "sigma_milli", (uint64_t)UINT32_MAX + 1, "impossible shape");
	expect_number(path, OUTLIERS, "rows", UINT64_MAX, "impossible shape");
	free(path);
}

/* Two matrices with 30, 20 and 10 bytes of indices, codebooks and outliers; the first has two outliers, the other
 * one. */
static void packed(void **state)
{
	static const size_t second = sizeof(struct xfp_packed_matrix);
#define FIELD(name) offsetof(struct xfp_packed_matrix, name)
	char *path = scratch_path(state, "a.h5");
	hid_t file, set, type;

	write_one(path, PACKED);
	file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	set = H5Dopen2(file, "matrix", H5P_DEFAULT);
	type = H5Dget_type(set);
	assert_int_equal(H5Tget_size(type), second); /* the size in memory */
	H5Tclose(type);
	H5Dclose(set);
	H5Fclose(file);
	expect_one(path, PACKED, NULL);
	expect_lie(path, PACKED, "matrix", FIELD(mode), XFP_MODES, sizeof(uint32_t), "impossible record of matrix 0");
	expect_lie(path, PACKED, "matrix", second + FIELD(k), 9, sizeof(uint32_t), "impossible record of matrix 1");
	expect_lie(path, PACKED, "matrix", second + FIELD(k), 8, sizeof(uint32_t), NULL);
	expect_lie(path, PACKED, "matrix", second + FIELD(outliers), 2, 8, "outliers do not add up");
	expect_lie(path, PACKED, "matrix", second + FIELD(outliers), 0, 8, "outliers do not add up");
	expect_lie(path, PACKED, "matrix", second + FIELD(outliers), UINT64_MAX, 8, "impossible record of matrix 1");
	expect_lie(path, PACKED, "matrix", FIELD(offset), 30, 8, NULL);
	expect_lie(path, PACKED, "matrix", FIELD(offset), 31, 8, "matrix 0 begins outside its part");
	expect_lie(path, PACKED, "matrix", second + FIELD(offset[XFP_PART_OUTLIER]), 11, 8,
		   "matrix 1 begins outside its part");
	expect_number(path, PACKED, "matrices", 1, "impossible shape");
	expect_number(path, PACKED, "matrices", 3, "impossible shape");
	expect_number(path, PACKED, "mode", XFP_MODES, "impossible shape");
	expect_number(path, PACKED, "k", 9, "impossible shape");
	expect_number(path, PACKED, "group", 256, "impossible shape");
	expect_number(path, PACKED, "rows", UINT64_MAX, "impossible shape");
	expect_number(path, PACKED, "outliers", 4, "outliers do not add up");
	free(path);
}

/* Tables have exactly the length that the shape requires. */
static void fits(void **state)
{
	char *path = scratch_path(state, "a.h5");
	uint64_t rows = FIXTURE_ROWS;

	write_one(path, FIT);
	expect_one(path, FIT, NULL);
	for (int by = -1; by <= 1; by += 2) {
		struct xfp_error err = { 0 };

		write_one(path, FIT);
		sealed_number(path, "rows", rows + (uint64_t)by);
		if (read_one(path, FIT, &err) != XFP_DAMAGED)
			fail_msg("%d rows more: \"%s\"", by, err.text);
	}
	expect_number(path, FIT, "matrices", FIXTURE_MATRICES_OF_UNIT + 1, "");
	expect_number(path, FIT, "matrices", (uint64_t)UINT32_MAX + 1, "");
	free(path);
}

/* ---- calibrated fits --------------------------------------------------------------------------------------- */

static void expect_calibrated(const char *path, const char *what)
{
	struct xfp_error err = { 0 };
	struct xfp_artifact a;
	struct xfp_fit fit;
	enum xfp_status status;

	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	status = xfp_fit_read(&a, &fit, &err);
	if (what ? status != XFP_DAMAGED || !strstr(err.text, what) : status)
		fail_msg("\"%s\", not \"%s\"", err.text, what ? what : "nothing");
	xfp_artifact_close(&a);
}

static void read_codes(const char *path)
{
	uint8_t byte[2], row[2], index[2 * FIXTURE_INDEX_BYTES];
	const struct xfp_fit_codes codes = { byte, row, index };
	uint16_t residual[2];
	struct xfp_artifact a;
	struct xfp_fit fit;

	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	OK(xfp_fit_read(&a, &fit, &err));
	assert_true(fit.calibrated && fit.unreached == 1 && fit.outputs[0].p5 == 0.96 && fit.outputs[1].error == 0.001);
	OK(xfp_fit_read_codes(&a, &fit.candidates[0], FIXTURE_COLS, 1, 2, &codes, &err));
	assert_true(byte[0] == 1 && byte[1] == 2 && row[0] == 2 && row[1] == 3);
	for (unsigned i = 0; i < sizeof index; i++)
		assert_int_equal(index[i], FIXTURE_INDEX_BYTES + 2 + i);
	OK(xfp_fit_read_residuals(&a, &fit.candidates[0], 1, 2, residual, &err));
	assert_true(residual[0] == 8 && residual[1] == 9);
	xfp_artifact_close(&a);
}

static void calibrated_fits(void **state)
{
	static const double bad[] = { 2.5, -1 };
	char *path = scratch_path(state, "a.h5");
	uint64_t bits[2], count = 4;

	memcpy(bits, bad, sizeof bits);
	fixture_calibrated_fit(path, NULL);
	read_codes(path);
	for (size_t at = 0; at < 48; at += 8) {
		fixture_calibrated_fit(path, NULL);
		sealed_lie(path, "output", at, &bits[at % 24 == 16], 8);
		expect_calibrated(path, "impossible outputs");
	}
	fixture_calibrated_fit(path, NULL);
	sealed_number(path, "unreached", FIXTURE_MATRICES_OF_UNIT + 1);
	expect_calibrated(path, "impossible count of matrices");
	fixture_calibrated_fit(path, NULL);
	sealed_lie(path, "candidate", offsetof(struct xfp_candidate, outliers), &count, 8);
	expect_calibrated(path, "residual-v2c-16-2 has 3 elements");
	fixture_calibrated_fit(path, NULL);
	sealed_number(path, "cols", 17);
	expect_calibrated(path, "byte-v2c-16-2 has");
	fixture_calibrated_fit(path, NULL);
	sealed_number(path, "cols", 0);
	expect_calibrated(path, "candidate of 2 bits cannot have codes");
	free(path);
}

/* A weight marked twice would be counted twice. */
static void outliers_that_are_there_twice(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_outliers o = { 0 };
	struct xfp_artifact a;

	for (uint64_t second = 0; second <= 6; second += 6) { /* the first one of matrix 2 is at 6 */
		struct xfp_marks marks = { 0 };
		struct xfp_error err = { 0 };
		enum xfp_status status;

		write_one(path, OUTLIERS);
		sealed_lie(path, "position", 16, &second, 8);
		OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
		OK(xfp_outliers_read(&a, &o, &err));
		status = xfp_marks_load(&a, &o, 2, &marks, &err);
		assert_int_equal(status, second ? XFP_DAMAGED : XFP_OK);
		if (second)
			assert_non_null(strstr(err.text, "an outlier is listed twice"));
		else
			assert_true(marks.count == 2 && marks.column[0] == 0 && marks.column[1] == 1);
		xfp_marks_free(&marks);
		xfp_outliers_free(&o);
		xfp_artifact_close(&a);
	}
	free(path);
}

/* Tables with one element too many or too few. */
static void tables_of_another_length(void **state)
{
	static const struct {
		enum kind kind;
		const char *table;
	} tables[] = {
		{ OUTLIERS, "source" }, { OUTLIERS, "balance" }, { OUTLIERS, "exponent" },
		{ OUTLIERS, "mean" },   { OUTLIERS, "sigma" },   { OUTLIERS, "first" },
		{ PACKED, "matrix" },   { PACKED, "digest" },    { FIT, "candidate" },
	};
	char *path = scratch_path(state, "a.h5");

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		write_one(path, tables[i].kind);
		sealed_resize(path, tables[i].table, 0);
		expect_one(path, tables[i].kind, NULL);
		for (int by = -1; by <= 1; by += 2) {
			struct xfp_error err = { 0 };

			write_one(path, tables[i].kind);
			sealed_resize(path, tables[i].table, by);
			if (read_one(path, tables[i].kind, &err) != XFP_DAMAGED)
				fail_msg("%s with %d more: \"%s\"", tables[i].table, by, err.text);
		}
	}
	free(path);
}

/* Ranges and lists that end at the end of their table, and one element later. */
static void to_the_end_of_a_table(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_candidate list[3];
	struct xfp_error err = { 0 };
	struct xfp_artifact a;
	uint64_t position[4];
	uint32_t count;

	write_one(path, OUTLIERS);
	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	OK(xfp_h5_read_range(&a, "position", H5T_NATIVE_UINT64, 0, 3, position, &err));
	OK(xfp_h5_read_range(&a, "position", H5T_NATIVE_UINT64, 3, 0, position, &err));
	for (uint64_t first = 0; first <= 4; first++) {
		assert_int_equal(xfp_h5_read_range(&a, "position", H5T_NATIVE_UINT64, first, first < 4 ? 4 - first : 1,
						   position, &err),
				 XFP_DAMAGED);
		assert_non_null(strstr(err.text, "\"position\" ends early"));
	}
	assert_int_equal(xfp_h5_read_range(&a, "position", H5T_NATIVE_UINT64, 2, UINT64_MAX, position, &err),
			 XFP_DAMAGED);
	xfp_artifact_close(&a);
	write_one(path, FIT);
	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	OK(xfp_candidates_read(&a, 2, list, &count, &err));
	assert_int_equal(count, 2);
	assert_int_equal(xfp_candidates_read(&a, 1, list, &count, &err), XFP_DAMAGED);
	assert_non_null(strstr(err.text, "too many candidates"));
	xfp_artifact_close(&a);
	free(path);
}

PROGRAM("test_artifact_lies")
{
	const struct CMUnitTest tests[] = { scratch_test(outliers),
					    scratch_test(packed),
					    scratch_test(fits),
					    scratch_test(calibrated_fits),
					    scratch_test(outliers_that_are_there_twice),
					    scratch_test(tables_of_another_length),
					    scratch_test(to_the_end_of_a_table) };

	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return cmocka_run_group_tests_name("artifact_lies", tests, NULL, NULL);
}
