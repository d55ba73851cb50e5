/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/scratch.h"

/* ---- round trips ------------------------------------------------------------------------------- */

static void outliers_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_OUTLIERS_KIND), read;
	struct xfp_outliers o = { 0 };
	struct xfp_artifact a;
	uint64_t position[2];

	fixture_outliers(path, &label);
	OK(xfp_artifact_open(path, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, KEY, &a, &err));
	OK(xfp_outliers_read(&a, &o, &err));
	assert_int_equal(o.matrices, 3);
	assert_int_equal(o.rows, 4);
	assert_int_equal(o.cols, 5);
	assert_int_equal(o.sigma_milli, 4000);
	assert_int_equal(o.source[2][15], 3);
	assert_int_equal(o.balance[4], 200);
	assert_int_equal(o.exponent[2], -30);
	assert_true(o.mean[2] == 2 / 3.0 && o.sigma[1] == 2);
	assert_int_equal(o.first[1], 0);
	assert_int_equal(o.first[3], 3);
	OK(xfp_outliers_positions(&a, &o, 0, 0, 0, NULL, &err));
	OK(xfp_outliers_positions(&a, &o, 2, 0, 2, position, &err));
	assert_int_equal(position[0], 6);
	assert_int_equal(position[1], 0);
	xfp_outliers_free(&o);
	xfp_artifact_close(&a);
	xfp_artifact_close(&a);

	OK(xfp_artifact_open(path, NULL, 0, NULL, &a, &err));
	OK(xfp_artifact_get_label(&a, &read, &err));
	xfp_artifact_close(&a);
	assert_string_equal(read.kind, label.kind);
	assert_int_equal(read.version, 1);
	assert_string_equal(read.key, KEY);
	assert_string_equal(read.key_text, label.key_text);
	assert_string_equal(read.unit, label.unit);
	assert_true(read.seconds == 0.25);
	xfp_artifact_label_free(&read);
	free(path);
}

/* More positions than a chunk, in pieces, and a unit without any. */
static void many_and_no_outliers(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_OUTLIERS_KIND);
	uint64_t *position = malloc(5000 * sizeof *position);

	for (uint64_t i = 0; i < 5000; i++)
		position[i] = 4999 - i;
	for (unsigned each = 0; each <= 2500; each += 2500) {
		struct xfp_outliers o = { 0 }, read = { 0 };
		struct xfp_artifact a;
		uint64_t *got = calloc(2500, sizeof *got);

		OK(xfp_outliers_init(&o, 2, 100, 50, &err));
		OK(xfp_artifact_create(path, &a, &err));
		OK(xfp_outliers_begin(&a, &err));
		OK(xfp_outliers_append(&a, &o, 0, position, each, &err));
		OK(xfp_outliers_append(&a, &o, 1, position + each, each, &err));
		OK(xfp_outliers_end(&a, &o, &err));
		OK(xfp_artifact_finish(&a, &label, &err));
		OK(xfp_artifact_open(path, XFP_OUTLIERS_KIND, 1, NULL, &a, &err));
		OK(xfp_outliers_read(&a, &read, &err));
		assert_int_equal(read.first[2], 2 * each);
		OK(xfp_outliers_positions(&a, &read, 1, 0, each, got, &err));
		assert_memory_equal(got, position + each, each * sizeof *got);
		xfp_artifact_close(&a);
		xfp_outliers_free(&o);
		xfp_outliers_free(&read);
		free(got);
	}
	free(position);
	free(path);
}

static void same_fit(const struct xfp_fit *a, const struct xfp_fit *b)
{
	assert_int_equal(a->matrices, b->matrices);
	assert_int_equal(a->rows, b->rows);
	assert_int_equal(a->cols, b->cols);
	assert_string_equal(a->outliers, b->outliers);
	assert_int_equal(a->candidate_count, b->candidate_count);
	assert_memory_equal(a->candidates, b->candidates, sizeof a->candidates);
}

static void fit_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_fit want = fixture_fit_table(), fit;
	struct xfp_artifact a;
	uint16_t codebook[16];
	double cosine[2];

	fixture_fit(path, &label);
	OK(xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, &a, &err));
	OK(xfp_fit_read(&a, &fit, &err));
	same_fit(&fit, &want);
	OK(xfp_fit_read_rows(&a, &want.candidates[1], 10, 2, codebook, cosine, &err));
	assert_int_equal(codebook[0], 1000);
	assert_int_equal(codebook[15], 1107);
	assert_true(cosine[1] == 1 / 12.0);
	OK(xfp_fit_read_rows(&a, &want.candidates[0], 0, 1, codebook, NULL, &err));
	assert_int_equal(codebook[3], 3);
	assert_int_equal(xfp_fit_read_rows(&a, &want.candidates[0], 11, 2, codebook, NULL, NULL), XFP_DAMAGED);
	want.candidates[0].k = 4;
	assert_int_equal(xfp_fit_read_rows(&a, &want.candidates[0], 0, 1, codebook, NULL, NULL), XFP_DAMAGED);
	xfp_artifact_close(&a);
	free(path);
}

/* A fit without candidates (weights that are not finite). */
static void empty_fit(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_fit fit = { .matrices = 1, .rows = 2, .cols = 3 }, read;
	struct xfp_artifact a;

	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_fit_begin(&a, 2, 3, NULL, 0, &err));
	OK(xfp_fit_end(&a, &fit, &err));
	OK(xfp_artifact_finish(&a, &label, &err));
	OK(xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, &a, &err));
	OK(xfp_fit_read(&a, &read, &err));
	same_fit(&read, &fit);
	xfp_artifact_close(&a);
	free(path);
}

/* Candidates with libraries are ordered by mode and group. Few v2c candidates have bytes, here of one group a row. */
static void library_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_fit want = { .matrices = 2,
				.rows = 3,
				.cols = 32,
				.outliers = "00112233445566778899aabbccddeeff",
				.candidate_count = 3,
				.candidates = { { XFP_MODE_V2A, 3, 4000, 128, 8, 100, 3, 0.95, 0.9, 0.1 },
						{ XFP_MODE_V2C, 2, 4000, 16, 16, 150, 3, 0.99, 0.97, 0.03 },
						{ XFP_MODE_V2C, 2, 4000, 32, 16, 120, 3, 0.98, 0.97, 0.03 } } },
		       read;
	uint8_t byte[] = { 10, 11, 12, 13, 14, 15 }, row[] = { 20, 21, 22, 23, 24, 25 }, byte_read[2], row_read[2];
	const struct xfp_fit_codes codes = { byte, row, NULL }, codes_read = { byte_read, row_read, NULL };
	uint16_t library[3][80], got[80];
	float hints[16], told[16];
	struct xfp_artifact a;

	assert_int_equal(xfp_candidate_code(&want.candidates[0]), 64);
	assert_int_equal(xfp_candidate_code(&want.candidates[1]), 80); /* with sixteen ratios */
	assert_int_equal(xfp_candidate_hints(&want.candidates[0]), 16);
	for (unsigned i = 0; i < 16; i++)
		hints[i] = (float)i / 3;
	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_fit_begin(&a, 6, want.cols, want.candidates, 3, &err));
	for (unsigned i = 0; i < 3; i++) {
		double cosine[6] = { i, i / 2.0, i / 3.0 };

		for (unsigned e = 0; e < 80; e++)
			library[i][e] = (uint16_t)(100 * i + e);
		OK(xfp_fit_write_library(&a, &want.candidates[i], library[i], hints, &err));
		OK(xfp_fit_write_rows(&a, &want.candidates[i], 0, 6, NULL, cosine, &err));
	}
	OK(xfp_fit_write_codes(&a, &want.candidates[2], want.cols, 0, 6, &codes, &err));
	OK(xfp_fit_end(&a, &want, &err));
	OK(xfp_artifact_finish(&a, &label, &err));
	OK(xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, &a, &err));
	OK(xfp_fit_read(&a, &read, &err));
	same_fit(&read, &want);
	for (unsigned i = 0; i < 3; i++) {
		double cosine[2];

		OK(xfp_fit_read_library(&a, &want.candidates[i], got, told, &err));
		assert_memory_equal(got, library[i], xfp_candidate_code(&want.candidates[i]) * sizeof *got);
		assert_true(i || !memcmp(told, hints, sizeof told));
		OK(xfp_fit_read_rows(&a, &want.candidates[i], 1, 2, NULL, cosine, &err));
		assert_true(cosine[0] == i / 2.0 && cosine[1] == i / 3.0);
	}
	assert_true(read.bytes);
	OK(xfp_fit_read_codes(&a, &want.candidates[2], want.cols, 4, 2, &codes_read, &err));
	assert_true(byte_read[0] == 14 && byte_read[1] == 15 && row_read[0] == 24 && row_read[1] == 25);
	xfp_artifact_close(&a);
	free(path);
}

/* fp8 is the last, and only has cosines; with outliers or a group it is damage. */
static void fp8_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	struct xfp_fit want = { .matrices = 1,
				.rows = 3,
				.cols = 5,
				.outliers = "00112233445566778899aabbccddeeff",
				.candidate_count = 2,
				.candidates = { { XFP_MODE_V2C, 3, 4000, 16, 16, 100, 3, 0.95, 0.9, 0.1 },
						{ XFP_MODE_FP8, 8, 0, 0, 0, 27, 0, 0.9997, 0.9996, 0.0004 } } },
		       read;
	const double cosine[3] = { 0.9997, 0.9996, 0.9998 };
	const uint16_t library[144] = { 1 };
	double got[3];

	assert_int_equal(xfp_candidate_code(&want.candidates[1]), 0);
	for (int wrong = 0; wrong < 4; wrong++) {
		struct xfp_fit table = want;
		struct xfp_artifact a;

		if (wrong == 1)
			table.candidates[1].k = 6;
		if (wrong == 2)
			table.candidates[1].outliers = 1;
		if (wrong == 3) { /* the other way round */
			table.candidates[0] = want.candidates[1];
			table.candidates[1] = want.candidates[0];
		}
		OK(xfp_artifact_create(path, &a, &err));
		OK(xfp_fit_begin(&a, 3, want.cols, want.candidates, 2, &err));
		OK(xfp_fit_write_library(&a, &want.candidates[0], library, NULL, &err));
		for (unsigned i = 0; i < 2; i++)
			OK(xfp_fit_write_rows(&a, &want.candidates[i], 0, 3, NULL, cosine, &err));
		OK(xfp_fit_end(&a, &table, &err));
		OK(xfp_artifact_finish(&a, &label, &err));
		OK(xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, KEY, &a, &err));
		assert_int_equal(xfp_fit_read(&a, &read, NULL), wrong ? XFP_DAMAGED : XFP_OK);
		if (!wrong) {
			same_fit(&read, &want);
			OK(xfp_fit_read_rows(&a, &want.candidates[1], 0, 3, NULL, got, &err));
			assert_memory_equal(got, cosine, sizeof got);
		}
		xfp_artifact_close(&a);
	}
	free(path);
}

static void choice_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_CHOICE_KIND);
	struct xfp_choice choice = { .candidate = fixture_fit_table().candidates[1],
				     .floor = 980000000,
				     .met = 1,
				     .fixed = 1,
				     .sample = 4,
				     .sample_median = 0.75,
				     .sample_p5 = 0.5,
				     .output = { 0.98, 0.96, 0.04 },
				     .fit = OTHER },
			  read = { 0 };
	struct xfp_artifact a;

	for (int calibrated = 0; calibrated < 2; calibrated++) {
		choice.calibrated = calibrated;
		fixture_choice(path, &label, &choice);
		OK(xfp_artifact_open(path, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, KEY, &a, &err));
		OK(xfp_choice_read(&a, &read, &err));
		assert_int_equal(read.calibrated, calibrated);
		assert_true(calibrated
				    ? read.output.median == 0.98 && read.output.p5 == 0.96 && read.output.error == 0.04
				    : read.output.median == 0);
		xfp_artifact_close(&a);
	}
	assert_memory_equal(&choice.candidate, &read.candidate, sizeof read.candidate);
	assert_int_equal(read.floor, 980000000);
	assert_int_equal(read.met, 1);
	assert_int_equal(read.fixed, 1);
	assert_int_equal(read.sample, 4);
	assert_true(read.sample_median == 0.75 && read.sample_p5 == 0.5);
	assert_string_equal(read.fit, OTHER);
	free(path);
}

static void packed_round_trip(void **state)
{
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_PACKED_KIND);
	struct xfp_packed p = { 0 };
	uint64_t offset, bytes;
	struct xfp_artifact a;
	uint8_t *file;
	size_t size;

	label.version = XFP_PACKED_VERSION;
	fixture_packed(path, &label);
	OK(xfp_artifact_open(path, XFP_PACKED_KIND, XFP_PACKED_VERSION, KEY, &a, &err));
	OK(xfp_packed_read(&a, &p, &err));
	assert_int_equal(p.k, 3);
	assert_int_equal(p.matrices, 2);
	assert_int_equal(p.outliers, 3);
	assert_int_equal(p.bytes[XFP_PART_INDEX], 30);
	assert_int_equal(p.bytes[XFP_PART_BALANCE], 0);
	assert_int_equal(p.digest[XFP_PART_OUTLIER].sha256[31], 5);
	assert_int_equal(p.digest[XFP_PART_BALANCE].xxh3[0], 0);
	assert_int_equal(p.matrix[0].exponent, -7);
	assert_int_equal(p.matrix[1].exponent, 300);
	assert_int_equal(p.matrix[1].offset[XFP_PART_OUTLIER], 5);
	assert_int_equal(p.matrix[1].source[2], 6);
	assert_true(p.cos_p5 == 0.97);
	/* The extents are those in the file itself. */
	file = slurp(path, &size);
	OK(xfp_packed_extent(&a, XFP_PART_OUTLIER, &offset, &bytes, &err));
	assert_int_equal(bytes, 10);
	assert_true(offset + bytes <= size);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(file[offset + i], (64 * XFP_PART_OUTLIER + i) % 256);
	assert_int_equal(xfp_packed_extent(&a, XFP_PART_BALANCE, &offset, &bytes, NULL), XFP_DAMAGED);
	free(file);
	xfp_packed_free(&p);
	xfp_artifact_close(&a);
	free(path);
}

/* Group and library must match the mode. */
static void packed_groups(void **state)
{
	static const struct {
		uint32_t mode, k, group, library;
		bool good;
	} cases[] = {
		{ XFP_MODE_V2A, 3, 4, 0, true },    { XFP_MODE_V2A, 6, 10, 8, true },
		{ XFP_MODE_V2A, 3, 3, 5, false },   { XFP_MODE_V2A, 3, 11, 5, false },
		{ XFP_MODE_V2A, 3, 7, 9, false },   { XFP_MODE_V2A, 1, 7, 5, false },
		{ XFP_MODE_V2A, 7, 7, 5, false },   { XFP_MODE_V2C, 2, 4, 2, true },
		{ XFP_MODE_V2C, 6, 6, 4, true },    { XFP_MODE_V2C, 4, 7, 3, false },
		{ XFP_MODE_V2C, 4, 5, 1, false },   { XFP_MODE_V2C, 4, 5, 5, false },
		{ XFP_MODE_V2C, 4, 261, 3, false }, { XFP_MODE_V2C, 4, 5, 259, false },
		{ XFP_MODE_V2, 3, 0, 0, true },     { XFP_MODE_V2, 3, 5, 0, false },
		{ XFP_MODE_V2, 3, 0, 3, false },    { XFP_MODE_FP8, 0, 4, 2, false },
	};
	char *path = scratch_path(state, "a.h5");
	struct xfp_artifact_label label = label_of(XFP_PACKED_KIND);

	label.version = XFP_PACKED_VERSION;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_packed_matrix matrix = { .mode = cases[i].mode, .k = cases[i].k };
		struct xfp_packed p = { .mode = cases[i].mode,
					.k = cases[i].k,
					.group = cases[i].group,
					.library = cases[i].library,
					.matrices = 1,
					.rows = 2,
					.cols = 3,
					.matrix = &matrix };
		struct xfp_packed read = { 0 };
		struct xfp_artifact a;

		OK(xfp_artifact_create(path, &a, &err));
		OK(xfp_packed_end(&a, &p, &err));
		OK(xfp_artifact_finish(&a, &label, &err));
		OK(xfp_artifact_open(path, XFP_PACKED_KIND, XFP_PACKED_VERSION, KEY, &a, &err));
		assert_int_equal(xfp_packed_read(&a, &read, NULL), cases[i].good ? XFP_OK : XFP_DAMAGED);
		if (cases[i].good) {
			assert_int_equal(read.group, p.group);
			assert_int_equal(read.library, p.library);
		}
		xfp_packed_free(&read);
		xfp_artifact_close(&a);
	}
	free(path);
}

/* The same content gives the same bytes, even a second later. */
static void reproducible(void **state)
{
	char *one = scratch_path(state, "a.h5"), *two = scratch_path(state, "b.h5");
	struct xfp_artifact_label label = label_of(XFP_FIT_KIND);
	uint8_t *first, *second;
	size_t size, other;

	fixture_fit(one, &label);
	sleep(1);
	fixture_fit(two, &label);
	first = slurp(one, &size);
	second = slurp(two, &other);
	assert_int_equal(size, other);
	assert_memory_equal(first, second, size);
	free(first);
	free(second);
	free(one);
	free(two);
}

PROGRAM("test_artifact")
{
	const struct CMUnitTest tests[] = {
		scratch_test(outliers_round_trip), scratch_test(many_and_no_outliers), scratch_test(fit_round_trip),
		scratch_test(empty_fit),           scratch_test(library_round_trip),   scratch_test(fp8_round_trip),
		scratch_test(choice_round_trip),   scratch_test(packed_round_trip),    scratch_test(packed_groups),
		scratch_test(reproducible),
	};

	return cmocka_run_group_tests_name("artifact", tests, NULL, NULL);
}
