/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a unit's choice is made, and from which fits: measurements become available one by one, and some are missing.
 */
#include <stdio.h>
#include <string.h>

#include "stages/quantize/decide.h"
#include "tests/unit/unit.h"

#define OUTLIERS "99999999999999999999999999999999"

/* Without and with groups; the first sets miss a floor of 0.98. */
static const struct xfp_candidate measured[XFP_FIT_KINDS][1] = {
	{ { .mode = XFP_MODE_V2, .k = 4, .bytes = 500, .cos_median = 0.970 } },
	{ { .mode = XFP_MODE_V2A, .k = 4, .group = 32, .bytes = 450, .cos_median = 0.965 } },
	{ { .mode = XFP_MODE_V2, .k = 5, .bytes = 700, .cos_median = 0.990 } },
	{ { .mode = XFP_MODE_V2A, .k = 5, .group = 32, .bytes = 650, .cos_median = 0.985 } },
};
static const char *const keys[XFP_FIT_KINDS] = { "f0", "f1", "f2", "f3" };

struct subject {
	struct xfp_ledger_unit unit;
	struct xfp_parameters parameters;
	struct xfp_policy policy;
	struct xfp_select_input input;
	struct xfp_choice choice;
	struct xfp_sampled sampled;
	uint32_t there; /* bit F: the measurements of fit F exist */
	bool decided;   /* the choice was made earlier */
	enum xfp_status fault;
	char asked[32];
};

static void ask(struct subject *s, char what, enum xfp_fit_kind kind)
{
	size_t length = strlen(s->asked);

	snprintf(s->asked + length, sizeof s->asked - length, "%c%d ", what, (int)kind);
}

static enum xfp_status find(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input, struct xfp_error *err)
{
	struct subject *s = own;

	ask(s, 'f', kind);
	if (s->fault)
		return xfp_fail(err, s->fault, "fault");
	if (!(s->there >> kind & 1))
		return XFP_WANT_EXTENDED;
	input->fits[kind] = (struct xfp_fit_set){ keys[kind], measured[kind], 1, NULL };
	return XFP_OK;
}

static enum xfp_status sample(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input, struct xfp_error *err)
{
	struct subject *s = own;

	(void)err;
	ask(s, 's', kind);
	input->sampled[kind] = &s->sampled;
	return XFP_OK;
}

static bool known(void *own, const struct xfp_select_input *input, struct xfp_choice *choice)
{
	struct subject *s = own;

	(void)input;
	choice->candidate.k = 1;
	return s->decided;
}

static const struct xfp_decide_callbacks means = { .find = find, .sample = sample, .known = known };

static void begin(struct subject *s, uint32_t floor, uint32_t there)
{
	*s = (struct subject){ .unit = { .class_ = XFP_CLASS_ROUTED_EXPERT,
					 .plan = XFP_PLAN_FIT,
					 .name = (char *)"x",
					 .role = (char *)"gate",
					 .dtype = XFP_BF16,
					 .experts = 8,
					 .rows = 10,
					 .cols = 10 },
			       .parameters = xfp_parameters_default(),
			       .there = there };
	s->parameters.outlier_sigma = 3000;
	s->parameters.modes = 1u << XFP_MODE_V2 | 1u << XFP_MODE_V2A;
	s->parameters.floor[XFP_CLASS_ROUTED_EXPERT] = floor;
	s->parameters = xfp_decide_parameters(&s->parameters, &s->unit, &s->policy);
	s->input = (struct xfp_select_input){
		.unit = &s->unit, .parameters = &s->parameters, .policy = &s->policy, .outliers = OUTLIERS
	};
}

static void expect(struct subject *s, enum xfp_status want, const char *asked)
{
	struct xfp_error err = { 0 };

	assert_int_equal(xfp_decide(&s->input, &means, s, &s->choice, &err), want);
	assert_string_equal(s->asked, asked);
}

/* The extended set is not requested if one of the first fits meets the floor. */
static void first_fits(void **state)
{
	struct subject s;
	(void)state;

	begin(&s, 960000000, 0xf);
	expect(&s, XFP_OK, "f0 f1 ");
	assert_string_equal(s.choice.fit, "f1");
	assert_null(s.input.fits[XFP_FIT_EXTENDED].key);
	s.parameters.modes = 1u << XFP_MODE_V2;
	*s.asked = 0;
	expect(&s, XFP_OK, "f0 ");
}

/* All missing fits are requested, and no decision is made from some. */
static void missing(void **state)
{
	struct subject s;
	(void)state;

	begin(&s, 960000000, 2);
	expect(&s, XFP_WANT_EXTENDED, "f0 f1 ");
	begin(&s, 960000000, 3);
	s.fault = XFP_FAILED;
	expect(&s, XFP_FAILED, "f0 ");
}

/* The extended set consists of both fits': with only one, left by an interrupted run, there is no choice. */
static void extended_fits(void **state)
{
	struct subject s;
	(void)state;

	begin(&s, 980000000, 0x3);
	expect(&s, XFP_WANT_EXTENDED, "f0 f1 f2 f3 ");
	begin(&s, 980000000, 0x7);
	expect(&s, XFP_WANT_EXTENDED, "f0 f1 f2 f3 ");
	begin(&s, 980000000, 0xf);
	expect(&s, XFP_OK, "f0 f1 f2 f3 ");
	assert_string_equal(s.choice.fit, "f3");
}

/* Cosines of sampled experts are read only if they decide and there is no earlier choice. */
static void samples(void **state)
{
	struct subject s;
	(void)state;

	begin(&s, 960000000, 0x3);
	s.parameters.moe_sample.experts = 2;
	s.sampled = (struct xfp_sampled){ 0.97, 0.96 };
	expect(&s, XFP_OK, "f0 f1 s0 s1 ");
	assert_string_equal(s.choice.fit, "f1");
	*s.asked = 0;
	s.decided = true;
	expect(&s, XFP_OK, "f0 f1 ");
	assert_int_equal(s.choice.candidate.k, 1);
}

static void what_a_choice_waits_for(void **state)
{
	struct subject s;
	(void)state;

	begin(&s, 960000000, 0);
	assert_false(xfp_decide_by_survey(&s.parameters, &s.unit));
	assert_int_equal(xfp_decide_fits(&s.parameters, &s.policy, &s.unit), 3);
	s.parameters.modes = 1u << XFP_MODE_V2A;
	assert_int_equal(xfp_decide_fits(&s.parameters, &s.policy, &s.unit), 2);
	s.parameters.outlier_sigma = XFP_SIGMA_AUTO;
	assert_true(xfp_decide_by_survey(&s.parameters, &s.unit));
	assert_int_equal(xfp_decide_fits(&s.parameters, &s.policy, &s.unit), 0);
	s.policy.fixed = true;
	assert_int_equal(xfp_decide_fits(&s.parameters, &s.policy, &s.unit), 2);
	s.unit.plan = XFP_PLAN_FP8;
	assert_false(xfp_decide_by_survey(&s.parameters, &s.unit));
	assert_int_equal(xfp_decide_fits(&s.parameters, &s.policy, &s.unit), 0);
}

PROGRAM("test_decide")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_fits),
		cmocka_unit_test(missing),
		cmocka_unit_test(extended_fits),
		cmocka_unit_test(samples),
		cmocka_unit_test(what_a_choice_waits_for),
	};

	return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
