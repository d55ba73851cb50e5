/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey_fixture.h - a unit of generated matrices, and a survey of its rows.
 */
#ifndef XFP_TEST_SURVEY_FIXTURE_H
#define XFP_TEST_SURVEY_FIXTURE_H

#include "stages/quantize/scan.h"
#include "stages/quantize/survey.h"
#include "stages/stage.h"
#include "tests/unit/scratch.h"

/* A unit of f32 matrices, stored one after the other in a file, and the job of its fits. */
struct subject {
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensor;
	struct xfp_ledger_matrix matrix[16];
	struct xfp_ledger_unit unit;
	struct xfp_job job;
	struct xfp_outliers known;
	float *weights;
	void **state;
};

static void expect(enum xfp_status status, const struct xfp_error *err)
{
	if (status)
		fail_msg("status %d: %s", (int)status, err->text);
}

/* Create nearly normal weights; `spoil` may change them before they are written. */
static void begin(struct subject *s, void **state, uint32_t experts, uint64_t rows, uint64_t cols,
		  void (*spoil)(float *weights, uint64_t count))
{
	uint64_t count = experts * rows * cols, random = 7;
	struct xfp_error err = { 0 };
	struct stat st;

	*s = (struct subject){ .state = state };
	s->weights = malloc(count * sizeof *s->weights);
	assert_non_null(s->weights);
	for (uint64_t i = 0; i < count; i++)
		s->weights[i] = test_gaussian(&random) / 50;
	if (spoil)
		spoil(s->weights, count);
	scratch_write(state, "weights", s->weights, count * sizeof *s->weights);
	s->file = (struct xfp_source_file){ .name = (char *)"weights", .path = scratch_path(state, "weights") };
	assert_int_equal(stat(s->file.path, &st), 0);
	s->file.identity = xfp_identity_of(&st);
	s->tensor = (struct xfp_ledger_tensor){ .name = (char *)"w",
						.reason = (char *)"",
						.dtype = XFP_F32,
						.class_ = XFP_CLASS_ATTENTION,
						.rank = 3,
						.shape = { experts, rows, cols },
						.bytes = count * sizeof *s->weights };
	s->unit = (struct xfp_ledger_unit){ (char *)"w",  (char *)"q", XFP_CLASS_ATTENTION,
					    XFP_PLAN_FIT, XFP_F32,     experts,
					    rows,         cols,        0 };
	for (uint32_t m = 0; m < experts; m++)
		s->matrix[m] = (struct xfp_ledger_matrix){ 0, m * rows * cols, rows, cols, cols, 1 };
	s->ledger = (struct xfp_ledger){ .files = &s->file,
					 .tensors = &s->tensor,
					 .units = &s->unit,
					 .matrices = s->matrix,
					 .file_count = 1,
					 .tensor_count = 1,
					 .unit_count = 1,
					 .matrix_count = experts };
	s->job = (struct xfp_job){ .work = *state, .ledger = &s->ledger, .unit = &s->unit };
	s->job.parameters = xfp_parameters_default();
	s->job.parameters.bits = 0x1c;
	expect(xfp_scan_unit(&s->ledger, &s->unit, &s->job.parameters, &s->known, NULL, &err), &err);
}

static void done_with(struct subject *s)
{
	xfp_outliers_free(&s->known);
	free(s->file.path);
	free(s->weights);
}

static uint32_t surveyed(struct subject *s, uint64_t rows, const struct xfp_thresholds *thresholds,
			 struct xfp_candidate *list)
{
	struct xfp_survey survey;
	struct xfp_error err = { 0 };
	uint32_t count;

	expect(xfp_survey_load(&s->ledger, &s->unit, &s->known, NULL, rows, &survey, &err), &err);
	expect(xfp_survey_measure(&survey, &s->job.parameters, s->job.parameters.bits, thresholds, list, &count, &err),
	       &err);
	xfp_survey_free(&survey);
	return count;
}

#endif
