/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest weight of each tile, as found by a scan of all rows, and the rows of a survey: from these, formats with
 * scales per tile are measured on a sample.
 */
#include <math.h>

#include "stages/quantize/scan.h"
#include "stages/quantize/survey.h"
#include "tests/unit/scratch.h"

/* Blocks of rows read together end inside a tile, and so do rows and columns. */
enum { MATRICES = 2, ROWS = 700, COLS = 350, DOWN = 6, ACROSS = 3 };

struct subject {
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensor;
	struct xfp_ledger_matrix matrix[MATRICES];
	struct xfp_ledger_unit unit;
	struct xfp_outliers known;
	struct xfp_peaks peaks;
	float *weights; /* [MATRICES][ROWS][COLS] */
	float tile[MATRICES][DOWN][ACROSS];
};

static void expect(enum xfp_status status, const struct xfp_error *err)
{
	if (status)
		fail_msg("status %d: %s", (int)status, err->text);
}

static void begin(struct subject *s, void **state)
{
	size_t count = (size_t)MATRICES * ROWS * COLS, bytes = count * sizeof *s->weights;
	struct xfp_parameters parameters = xfp_parameters_default();
	struct xfp_error err = { 0 };
	uint64_t random = 3;
	struct stat st;

	*s = (struct subject){ .weights = malloc(bytes) };
	assert_non_null(s->weights);
	for (size_t i = 0; i < count; i++)
		s->weights[i] = test_gaussian(&random);
	scratch_write(state, "weights", s->weights, bytes);
	s->file = (struct xfp_source_file){ .name = (char *)"weights", .path = scratch_path(state, "weights") };
	assert_int_equal(stat(s->file.path, &st), 0);
	s->file.identity = xfp_identity_of(&st);
	s->tensor = (struct xfp_ledger_tensor){ .name = (char *)"w",
						.reason = (char *)"",
						.dtype = XFP_F32,
						.class_ = XFP_CLASS_ATTENTION,
						.rank = 3,
						.shape = { MATRICES, ROWS, COLS },
						.bytes = bytes };
	s->unit = (struct xfp_ledger_unit){ (char *)"w",  (char *)"q", XFP_CLASS_ATTENTION,
					    XFP_PLAN_FIT, XFP_F32,     MATRICES,
					    ROWS,         COLS,        0 };
	for (uint32_t m = 0; m < MATRICES; m++)
		s->matrix[m] = (struct xfp_ledger_matrix){ 0, (uint64_t)m * ROWS * COLS, ROWS, COLS, COLS, 1 };
	s->ledger = (struct xfp_ledger){ .files = &s->file,
					 .tensors = &s->tensor,
					 .units = &s->unit,
					 .matrices = s->matrix,
					 .file_count = 1,
					 .tensor_count = 1,
					 .unit_count = 1,
					 .matrix_count = MATRICES };
	s->peaks.tile = &s->tile[0][0][0];
	expect(xfp_scan_unit(&s->ledger, &s->unit, &parameters, &s->known, &s->peaks, &err), &err);
}

static void done_with(struct subject *s)
{
	xfp_outliers_free(&s->known);
	free(s->file.path);
	free(s->weights);
}

static void each_tile_has_its_largest(void **state)
{
	struct subject s;

	assert_int_equal(xfp_tiles(ROWS), DOWN);
	assert_int_equal(xfp_tiles(COLS), ACROSS);
	assert_int_equal(xfp_tiles(128), 1);
	assert_int_equal(xfp_tiles(129), 2);
	begin(&s, state);
	for (int m = 0; m < MATRICES; m++)
		for (int down = 0; down < DOWN; down++)
			for (int across = 0; across < ACROSS; across++) {
				float largest = 0;

				for (int r = 128 * down; r < ROWS && r < 128 * (down + 1); r++)
					for (int c = 128 * across; c < COLS && c < 128 * (across + 1); c++)
						largest = fmaxf(largest, fabsf(s.weights[(m * ROWS + r) * COLS + c]));
				assert_true(s.tile[m][down][across] == largest);
			}
	done_with(&s);
}

/* Identified by its bytes: sampled rows, and rows picked for their peaks. */
static void each_row_of_a_survey_has_its_number(void **state)
{
	struct xfp_survey survey;
	struct xfp_error err = { 0 };
	struct subject s;
	uint64_t seen = 0;

	begin(&s, state);
	expect(xfp_survey_load(&s.ledger, &s.unit, &s.known, &s.peaks, 90, &survey, &err), &err);
	assert_true(survey.picked > 0);
	for (uint32_t b = 0; b < survey.block_count; b++) {
		const struct xfp_survey_block *block = &survey.blocks[b];

		for (uint64_t r = 0; r < block->rows.count; r++, seen++) {
			const float *row = s.weights + (block->matrix * (uint64_t)ROWS + block->row[r]) * COLS;

			assert_true(block->row[r] < ROWS);
			assert_memory_equal((const float *)block->rows.raw + r * COLS, row, COLS * sizeof *row);
		}
	}
	assert_int_equal(seen, survey.rows + survey.picked);
	xfp_survey_free(&survey);
	done_with(&s);
}

PROGRAM("test_tiles")
{
	const struct CMUnitTest tests[] = {
		scratch_test(each_tile_has_its_largest),
		scratch_test(each_row_of_a_survey_has_its_number),
	};

	return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
