/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicted errors of outputs: of white errors with any H; exact if the second moments of the inputs are I, so that
 * outputs have the errors of the weights.
 */
#include "stages/quantize/survey.h"

#include <math.h>

#include "kernels/common/number.h"
#include "stages/feedback/second_moments.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/scan.h"
#include "stages/quantize/target.h"
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

/* ---- a unit with inputs -------------------------------------------------------------------------- */

#define COLS 64u
#define ROWS 96u
#define WINDOWS 9u /* of eight tokens; the eighth is held out */
#define TOKENS (WINDOWS * 8u)

struct subject {
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensor;
	struct xfp_ledger_matrix matrix;
	struct xfp_ledger_unit unit;
	struct xfp_parameters parameters;
	struct xfp_outliers known;
	struct xfp_artifact artifact;
	struct xfp_inputs inputs;
	struct xfp_survey survey;
	struct xfp_second_moments moments;
	char *path;
};

/* Write inputs whose training rows are 8 e_i for each column i, or `mixed` ones. */
static void write_inputs(const char *path, bool mixed)
{
	struct xfp_artifact_label label = { XFP_INPUTS_KIND, XFP_INPUTS_VERSION, KEY, "kind inputs\n", "layer", 2 };
	struct xfp_input_tensor tensor = { "w", 0, XFP_NO_EXPERT };
	struct xfp_input_source source = { "w", { 1 } };
	struct xfp_inputs inputs = { .tokens = TOKENS,
				     .length = 8,
				     .hidden = COLS,
				     .input_count = 1,
				     .input = { { "attention", TOKENS, COLS } },
				     .tensor_count = 1,
				     .tensors = &tensor,
				     .source_count = 1,
				     .sources = &source };
	uint16_t values[TOKENS][COLS] = { { 0 } };
	struct xfp_artifact a;
	uint64_t random = 3;

	for (uint32_t t = 0, i = 0; t < TOKENS; t++) {
		const float common = test_gaussian(&random);

		values[t][i] = xfp_float_to_bf16(8);
		i += !xfp_inputs_held_out(&inputs, t);
		for (uint32_t c = 0; mixed && c < COLS; c++)
			values[t][c] = xfp_float_to_bf16(common * (float)(c % 5) + test_gaussian(&random));
	}
	OK(xfp_artifact_create(path, &a, &err));
	OK(xfp_inputs_begin(&a, &inputs, &err));
	OK(xfp_inputs_write_values(&a, &inputs.input[0], 0, TOKENS, values[0], &err));
	OK(xfp_inputs_end(&a, &inputs, &err));
	OK(xfp_artifact_finish(&a, &label, &err));
	xfp_artifact_close(&a);
}

static void begin(struct subject *s, void **state, bool mixed)
{
	float weights[ROWS][COLS];
	uint64_t random = 7;
	struct stat st;
	bool found;

	*s = (struct subject){ .parameters = xfp_parameters_default() };
	for (uint32_t r = 0; r < ROWS; r++)
		for (uint32_t c = 0; c < COLS; c++)
			weights[r][c] = test_gaussian(&random) / 50;
	scratch_write(state, "weights", weights, sizeof weights);
	s->file = (struct xfp_source_file){ .name = (char *)"weights", .path = scratch_path(state, "weights") };
	OK(stat(s->file.path, &st));
	s->file.identity = xfp_identity_of(&st);
	s->tensor = (struct xfp_ledger_tensor){ .name = (char *)"w",
						.reason = (char *)"",
						.dtype = XFP_F32,
						.class_ = XFP_CLASS_ATTENTION,
						.rank = 2,
						.shape = { ROWS, COLS },
						.bytes = sizeof weights };
	s->unit = (struct xfp_ledger_unit){ (char *)"w",  (char *)"q", XFP_CLASS_ATTENTION,
					    XFP_PLAN_FIT, XFP_F32,     1,
					    ROWS,         COLS,        0 };
	s->matrix = (struct xfp_ledger_matrix){ 0, 0, ROWS, COLS, COLS, 1 };
	s->ledger = (struct xfp_ledger){ .files = &s->file,
					 .tensors = &s->tensor,
					 .units = &s->unit,
					 .matrices = &s->matrix,
					 .file_count = 1,
					 .tensor_count = 1,
					 .unit_count = 1,
					 .matrix_count = 1 };
	s->parameters.balance = mixed ? s->parameters.balance : 0;
	OK(xfp_scan_unit(&s->ledger, &s->unit, &s->parameters, &s->known, NULL, &err));
	s->path = scratch_path(state, "inputs.h5");
	write_inputs(s->path, mixed);
	OK(xfp_artifact_open(s->path, XFP_INPUTS_KIND, XFP_INPUTS_VERSION, KEY, &s->artifact, &err));
	OK(xfp_inputs_read(&s->artifact, &s->inputs, &err));
	OK(xfp_second_moments_init(&s->moments, &s->artifact, &s->inputs, &s->ledger, s->known.balance, 2, &found,
				   &err));
	assert_true(found);
	OK(xfp_survey_load(&s->ledger, &s->unit, &s->known, NULL, ROWS, &s->survey, &err));
}

static void end(struct subject *s)
{
	xfp_survey_free(&s->survey);
	xfp_second_moments_free(&s->moments);
	xfp_inputs_free(&s->inputs);
	xfp_artifact_close(&s->artifact);
	xfp_outliers_free(&s->known);
	free(s->file.path);
	free(s->path);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void outputs_have_the_errors_of_weights(void **state)
{
	static const struct xfp_thresholds none = { 1, { 0 } };
	struct xfp_candidate list[2 * XFP_MAX_CANDIDATES], before[2 * XFP_MAX_CANDIDATES];
	struct xfp_output_scale scale;
	struct subject s;
	uint32_t count;

	begin(&s, state, false);
	OK(xfp_survey_scale(&s.survey, &s.moments, 32, &scale, &err));
	assert_int_equal(scale.matrices, 1);
	assert_int_equal(scale.rows, ROWS);
	assert_true(fabs(scale.growth - 1) < 1e-6);
	assert_true(fabs(scale.feedback - 1) < 1e-6);
	assert_true(fabs(scale.feedback_median - 1) < 1e-6);
	assert_true(fabs(scale.rounding - 1) < 1e-6);
	s.parameters.modes = 1u << XFP_MODE_V2C;
	OK(xfp_survey_measure(&s.survey, &s.parameters, 0x1c | XFP_FP8_BIT, &none, list, &count, &err));
	assert_true(count > 3);
	memcpy(before, list, count * sizeof *list);
	xfp_survey_scale_apply(&scale, list, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(before[i].error > 0);
		assert_true(fabs(list[i].error / before[i].error - 1) < 1e-6);
		assert_true(fabs(list[i].cos_median - before[i].cos_median) < 1e-6);
		assert_true(list[i].bytes == before[i].bytes);
	}
	end(&s);
}

/* The mean square of rows of the inverse of R[j][c] / R[c][c], times the number of columns. */
static double exact_growth(const struct xfp_feedback *f)
{
	double sum = 0;

	for (size_t c = 0; c < f->padded; c++) {
		double row[COLS] = { 0 };

		/* x with x L = e_c: x[c] = 1, and feedback of that error alone. */
		row[c] = 1;
		for (size_t j = c + 1; j < f->padded; j++)
			for (size_t i = c; i < j; i++)
				row[j] -= row[i] * f->factor[xfp_triangle_at(f->padded, j, i)];
		for (size_t j = c; j < f->padded; j++)
			sum += row[j] * row[j];
	}
	return sum;
}

static double element_of(const struct xfp_feedback *f, size_t i, size_t j)
{
	return f->h[xfp_triangle_at(f->padded, i > j ? i : j, i > j ? j : i)] - (i == j ? XFP_FEEDBACK_DAMPING : 0);
}

static void white_errors_grow(void **state)
{
	float scratch[COLS * XFP_LANES], tile[COLS * XFP_LANES];
	double norm[XFP_LANES], trace = 0, pivots = 0;
	struct xfp_feedback_growth growth;
	struct xfp_feedback f;
	struct subject s;
	uint64_t random = 5;

	begin(&s, state, true);
	OK(xfp_second_moments_block(&s.moments, 16, 0, &f, &err));
	OK(xfp_second_moments_compute(&s.moments, 0, &f, &err));
	growth = xfp_feedback_growth(&f, scratch);
	for (size_t c = 0; c < COLS; c++) {
		trace += element_of(&f, c, c);
		pivots += (double)f.pivot[c] * f.pivot[c];
	}
	assert_true(fabs(trace / COLS - 1) < 1e-5);
	assert_true(growth.weights > 1.1 * COLS && growth.outputs < 0.8 * COLS);
	assert_true(fabs(growth.weights / exact_growth(&f) - 1) < 0.15);
	assert_true(fabs(growth.outputs - pivots + XFP_FEEDBACK_DAMPING * growth.weights) < 1e-9 * COLS);

	for (size_t i = 0; i < COLS * XFP_LANES; i++)
		tile[i] = test_gaussian(&random);
	xfp_feedback_norms(&f, tile, norm);
	for (size_t lane = 0; lane < XFP_LANES; lane++) {
		double sum = 0;

		for (size_t i = 0; i < COLS; i++)
			for (size_t j = 0; j < COLS; j++)
				sum += element_of(&f, i, j) * tile[i * XFP_LANES + lane] * tile[j * XFP_LANES + lane];
		assert_true(fabs(norm[lane] / sum - 1) < 1e-5);
	}
	xfp_second_moments_release(&f);
	end(&s);
}

/* Zeros say nothing about outputs, be they the training rows or those held out. */
static void inputs_of_zero(void **state)
{
	static const uint16_t zero[COLS];
	struct subject s;
	FILE *file;
	bool found;

	for (int held_out = 0; held_out < 2; held_out++) {
		begin(&s, state, true);
		assert_non_null(file = fopen(s.path, "r+b"));
		for (uint32_t t = 0; t < TOKENS; t++)
			if (xfp_inputs_held_out(&s.inputs, t) == held_out) {
				assert_int_equal(fseek(file, (long)(s.inputs.offset[0] + t * sizeof zero), SEEK_SET),
						 0);
				assert_int_equal(fwrite(zero, sizeof zero, 1, file), 1);
			}
		assert_int_equal(fclose(file), 0);
		xfp_second_moments_free(&s.moments);
		OK(xfp_second_moments_init(&s.moments, &s.artifact, &s.inputs, &s.ledger, s.known.balance, 2, &found,
					   &err));
		assert_false(found);
		assert_true(s.moments.zero[0]);
		end(&s);
	}
}

static void predictions(void **state)
{
	const struct xfp_output_scale scale = {
		.growth = 1.5, .feedback = 0.25, .rounding = 0.5, .feedback_median = 0.3, .rounding_median = 0.6
	};
	struct xfp_candidate list[] = {
		{ .mode = XFP_MODE_FP8, .error = 0.001, .cos_median = 0.999, .cos_p5 = 0.998 },
		{ .mode = XFP_MODE_V2C, .error = 0.1, .cos_median = 0.95, .cos_p5 = 0.9 },
		{ .mode = XFP_MODE_V2C, .error = 1, .cos_median = -1, .cos_p5 = -1 },
	};
	(void)state;

	xfp_survey_scale_apply(&scale, list, 3);
	assert_true(fabs(list[0].error - 0.0005) < 1e-12);
	assert_true(fabs(list[0].cos_median - 0.9994) < 1e-12);
	assert_true(fabs(list[1].error - 0.025 / 0.95) < 1e-12);
	assert_true(fabs(list[1].cos_median - (1 - 0.05 * 0.3 / 0.95)) < 1e-12);
	assert_true(fabs(list[1].cos_p5 - (1 - 0.1 * 0.3 / 0.95)) < 1e-12);
	assert_true(list[2].error == 1 && list[2].cos_median == -1);
	/* Without inputs, nothing changes. */
	list[0].error = list[1].error = 0.125;
	list[0].cos_median = list[1].cos_median = 0.9375;
	xfp_survey_scale_apply(&xfp_output_scale_none, list, 2);
	for (int i = 0; i < 2; i++)
		assert_true(list[i].error == 0.125 && list[i].cos_median == 0.9375);
	/* However large the growth, a prediction is finite. */
	list[1].error = 0.3;
	xfp_survey_scale_apply(&(struct xfp_output_scale){ .growth = 100, .feedback = 1 }, list + 1, 1);
	assert_true(list[1].error > 0.3 && list[1].error < 1);
}

static void artifacts(void **state)
{
	const struct xfp_artifact_label label = { XFP_SCALES_KIND, XFP_SCALES_VERSION, KEY, "kind scales\n", "w", 0 };
	struct xfp_output_scale scale = { 3, 40, 1.5, 0.25, 0.5, 0.3, 0.6 }, read;
	char *path = scratch_path(state, "scales.h5");
	struct xfp_artifact a;

	for (int damaged = 0; damaged < 2; damaged++) {
		scale.rounding_median = damaged ? -0.6 : 0.6;
		OK(xfp_artifact_create(path, &a, &err));
		OK(xfp_scales_write(&a, &scale, &err));
		OK(xfp_artifact_finish(&a, &label, &err));
		xfp_artifact_close(&a);
		OK(xfp_artifact_open(path, XFP_SCALES_KIND, XFP_SCALES_VERSION, KEY, &a, &err));
		assert_int_equal(xfp_scales_read(&a, &read, &err), damaged ? XFP_DAMAGED : XFP_OK);
		if (!damaged)
			assert_memory_equal(&read, &scale, sizeof scale);
		xfp_artifact_close(&a);
	}
	free(path);
}

PROGRAM("test_output_scale")
{
	const struct CMUnitTest tests[] = {
		scratch_test(outputs_have_the_errors_of_weights),
		scratch_test(white_errors_grow),
		scratch_test(inputs_of_zero),
		cmocka_unit_test(predictions),
		scratch_test(artifacts),
	};

	return cmocka_run_group_tests_name("output_scale", tests, NULL, NULL);
}
