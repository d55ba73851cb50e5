/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The predicted time of a calibrated unit: which fits and scales with error feedback it includes.
 */
#include "tests/unit/unit.h"

#include <math.h>

#include "conversion/plan/plan.h"
#include "stages/feedback/outputs.h"
#include "stages/quantize/survey.h"

#define TOKENS 4096
#define TRAINING (TOKENS * 7. / 8)

static char name[] = "model.layers.0.self_attn.q_proj.weight", role[] = "q";
static struct xfp_ledger_unit unit = { .name = name,
				       .role = role,
				       .class_ = XFP_CLASS_ATTENTION,
				       .plan = XFP_PLAN_FIT,
				       .dtype = XFP_BF16,
				       .experts = 1,
				       .rows = 512,
				       .cols = 1024 };
static struct xfp_ledger ledger = { .units = &unit, .unit_count = 1 };
static struct xfp_unit_state state_of_unit;
static struct xfp_layer_state layers[2];
static uint32_t layer_of_unit;
static struct xfp_conversion conversion = {
	.units = { .ledger = &ledger, .state = &state_of_unit, .todo = 1 },
	.layers = { .calibration = { .windows = 1, .length = TOKENS },
		    .count = 2,
		    .state = layers,
		    .of_unit = &layer_of_unit },
};
/* Everything takes time. */
static const struct xfp_plan_pace pace = {
	.kinds = 1,
	.feedback = { .moment = 1e-9,
		      .factor = 2e-9,
		      .sum = 3e-9,
		      .pass = 4e-9,
		      .output = 5e-9,
		      .encode = { [2] = 2e-6, [3] = 3e-6, [4] = 4e-6, [5] = 5e-6, [6] = 6e-6 } },
};

static void set_up(uint32_t bits, uint32_t sigma, uint32_t floor)
{
	conversion.parameters = xfp_parameters_default();
	conversion.parameters.modes = 1u << XFP_MODE_V2C;
	conversion.parameters.bits = bits;
	conversion.parameters.outlier_sigma = sigma;
	conversion.parameters.floor[XFP_CLASS_ATTENTION] = floor;
	state_of_unit = (struct xfp_unit_state){ .known = true };
}

/* The fits of these bits with groups of `group` columns, or of 16 and of 32. */
static double fits(uint32_t bits, uint16_t group)
{
	struct xfp_candidate list[XFP_MAX_CANDIDATES];
	uint32_t count = 0;

	for (uint16_t columns = 16; columns <= 32; columns *= 2)
		for (uint32_t k = 1; k <= XFP_MAX_K; k++)
			if (bits >> k & 1 && (!group || columns == group))
				list[count++] =
					(struct xfp_candidate){ .mode = XFP_MODE_V2C, .k = k, .group = columns };
	return xfp_feedback_seconds(&pace.feedback, &unit, list, count, TRAINING, 0, XFP_MAX_HELD_OUT);
}

static double scales(void)
{
	return xfp_feedback_scales_seconds(&pace.feedback, &unit, (double)xfp_survey_rows(&unit), TRAINING, 0);
}

static void expect(double seconds)
{
	const double predicted = xfp_plan_pace_units(&conversion, &pace, 1, 2);

	if (fabs(predicted - seconds) > 1e-9 * seconds)
		fail_msg("%g seconds, not %g", predicted, seconds);
}

static void extended_libraries_have_feedback(void **state)
{
	(void)state;
	set_up(0x7c, 4000, XFP_NANO / 2);
	expect(fits(0x1c, 0));
	set_up(0x7c, 4000, XFP_NANO - 1);
	expect(fits(0x1c, 0) + fits(0x60, 0));
	state_of_unit.in_store = 1u << XFP_STAMP_LIBRARY;
	expect(fits(0x60, 0));
}

static void a_survey_narrows_the_fits(void **state)
{
	(void)state;
	set_up(0x7c, XFP_SIGMA_AUTO, XFP_NANO / 100 * 95);
	state_of_unit.expected = true;
	state_of_unit.candidate =
		(struct xfp_candidate){ .mode = XFP_MODE_V2C, .k = 3, .group = 32, .cos_median = .96 };
	expect(scales() + fits(0x18, 32));
	state_of_unit.in_store = 1u << XFP_STAMP_SCALES;
	expect(fits(0x18, 32));
	/* The first fit is expected to meet the floor. */
	state_of_unit.candidate.k = 4;
	expect(fits(0x10, 32));
	state_of_unit.candidate.k = 5;
	expect(fits(0x60, 32));
	/* No candidate meets the floor: the most bits are tried. */
	state_of_unit.candidate = (struct xfp_candidate){ .mode = XFP_MODE_KEEP };
	expect(fits(0x40, 0));
	/* Without survey, few bits are expected. */
	set_up(0x7c, XFP_SIGMA_AUTO, XFP_NANO / 100 * 95);
	assert_true(xfp_plan_pace_units(&conversion, &pace, 1, 2) < scales() + fits(0x1c, 0) / 2);
}

static void scales_take_time(void **state)
{
	struct xfp_feedback_pace factor = { .factor = 1 }, moment = { .moment = 1 };
	struct xfp_ledger_unit stack = unit;

	(void)state;
	stack.experts = 128;
	assert_true(fabs(xfp_feedback_scales_seconds(&factor, &stack, 64, 0, 0) - 8 * pow(1024, 3) / 6) < 1);
	assert_true(xfp_feedback_scales_seconds(&moment, &stack, 64, 100, 700) >= 1500 * pow(1024, 2) / 2);
}

PROGRAM("test_plan_time")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extended_libraries_have_feedback),
		cmocka_unit_test(a_survey_narrows_the_fits),
		cmocka_unit_test(scales_take_time),
	};

	return cmocka_run_group_tests_name("plan_time", tests, NULL, NULL);
}
