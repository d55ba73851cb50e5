/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selection of a candidate, with synthetic measurements.
 */
#include <string.h>

#include "stages/quantize/select.h"
#include "tests/unit/unit.h"

#define BASE "11111111111111111111111111111111"
#define EXTENDED "22222222222222222222222222222222"
#define OUTLIERS "33333333333333333333333333333333"

static const struct xfp_ledger_unit stack = {
	.class_ = XFP_CLASS_ROUTED_EXPERT, .dtype = XFP_BF16, .experts = 8, .rows = 10, .cols = 10
}; /* 1,600 bytes */

static const struct xfp_candidate base[] = {
	{ .mode = XFP_MODE_V2, .k = 2, .bytes = 300, .cos_median = 0.90, .cos_p5 = 0.8 },
	{ .mode = XFP_MODE_V2, .k = 3, .bytes = 400, .cos_median = 0.97, .cos_p5 = 0.9 },
	{ .mode = XFP_MODE_V2, .k = 4, .bytes = 500, .cos_median = 0.99, .cos_p5 = 0.98 },
};
static const struct xfp_candidate extended[] = {
	{ .mode = XFP_MODE_V2, .k = 5, .bytes = 700, .cos_median = 0.997, .cos_p5 = 0.99 },
	{ .mode = XFP_MODE_V2, .k = 6, .bytes = 1600, .cos_median = 0.999, .cos_p5 = 0.99 }, /* not smaller */
};

struct decision {
	struct xfp_parameters parameters;
	struct xfp_policy policy;
	struct xfp_select_input input;
	struct xfp_choice choice;
	struct xfp_error err;
};

static void begin(struct decision *d, const char *format, uint32_t floor)
{
	*d = (struct decision){ .parameters = xfp_parameters_default() };
	d->parameters.floor[XFP_CLASS_ROUTED_EXPERT] = floor;
	assert_true(xfp_format_parse(format, &d->parameters.format[XFP_CLASS_ROUTED_EXPERT]));
	d->policy = xfp_policy_of(&d->parameters, "x", "gate", XFP_CLASS_ROUTED_EXPERT);
	d->input = (struct xfp_select_input){ .unit = &stack,
					      .parameters = &d->parameters,
					      .policy = &d->policy,
					      .outliers = OUTLIERS,
					      .fits = { { BASE, base, 3, NULL } } };
}

static void measure_extended(struct decision *d)
{
	d->input.fits[XFP_FIT_EXTENDED] = (struct xfp_fit_set){ EXTENDED, extended, 2, NULL };
}

static void expect(struct decision *d, uint32_t k, bool met, const char *fit)
{
	if (xfp_select(&d->input, &d->choice, &d->err))
		fail_msg("%s", d->err.text);
	assert_int_equal(d->choice.candidate.k, k);
	assert_int_equal(d->choice.candidate.mode, k ? XFP_MODE_V2 : XFP_MODE_KEEP);
	assert_int_equal(d->choice.met, met);
	assert_string_equal(d->choice.fit, fit);
}

static void fewest_that_meet(void **state)
{
	struct decision d;

	(void)state;
	begin(&d, "auto", 960000000);
	expect(&d, 3, true, BASE);
	begin(&d, "auto", 995000000);
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_WANT_EXTENDED);
	measure_extended(&d);
	expect(&d, 5, true, EXTENDED);
	begin(&d, "auto", 998000000);
	measure_extended(&d);
	expect(&d, 0, true, OUTLIERS);
	d.parameters.on_miss = XFP_MISS_BEST;
	expect(&d, 5, false, EXTENDED);
	d.parameters.on_miss = XFP_MISS_FAIL;
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_UNMET);
}

/* fp8 is one candidate, in the extended set; a candidate that is both larger and worse than it is never chosen. */
static void fp8_among_others(void **state)
{
	struct xfp_candidate more[3] = { extended[0],
					 extended[1],
					 { .mode = XFP_MODE_FP8, .k = 8, .bytes = 750, .cos_median = 0.9995 } };
	struct decision d;

	(void)state;
#define MEASURE_MORE() d.input.fits[XFP_FIT_EXTENDED] = (struct xfp_fit_set){ EXTENDED, more, 3, NULL }
#define EXPECT_FP8(meets)                                             \
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), 0); \
	assert_int_equal(d.choice.candidate.mode, XFP_MODE_FP8);      \
	assert_int_equal(d.choice.candidate.k, 8);                    \
	assert_int_equal(d.choice.met, meets);                        \
	assert_string_equal(d.choice.fit, EXTENDED)
	begin(&d, "auto", 960000000);
	MEASURE_MORE();
	expect(&d, 3, true, BASE);
	begin(&d, "auto", 995000000);
	MEASURE_MORE();
	expect(&d, 5, true, EXTENDED); /* smaller */
	more[2].bytes = 650;
	EXPECT_FP8(true);
	begin(&d, "auto", 999900000);
	MEASURE_MORE();
	expect(&d, 0, true, OUTLIERS);
	d.parameters.on_miss = XFP_MISS_BEST;
	EXPECT_FP8(false);
	d.parameters.on_miss = XFP_MISS_FAIL;
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_UNMET);
	assert_non_null(strstr(d.err.text, "the best, fp8, has median cosine 0.999500"));
	/* With explicit bits it is excluded. */
	begin(&d, "2-6", 998000000);
	MEASURE_MORE();
	expect(&d, 0, true, OUTLIERS);
	begin(&d, "4", 995000000);
	MEASURE_MORE();
	expect(&d, 4, false, BASE);
	begin(&d, "4,8", 995000000);
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_WANT_EXTENDED);
	MEASURE_MORE();
	EXPECT_FP8(true);
	/* It is also excluded if it is no smaller than the source. */
	more[2].bytes = xfp_unit_source_bytes(&stack);
	begin(&d, "4,8", 995000000);
	MEASURE_MORE();
	expect(&d, 0, true, OUTLIERS);
#undef MEASURE_MORE
#undef EXPECT_FP8
}

/* A candidate that meets the floor but is no smaller than fp8 is not chosen before fp8 is measured. */
static void a_rival_of_fp8(void **state)
{
	struct xfp_candidate large[1] = { { .mode = XFP_MODE_V2, .k = 4, .cos_median = 0.9991 } };
	struct decision d;

	(void)state;
	large[0].bytes = xfp_unit_fp8_bytes(&stack);
	begin(&d, "auto", 960000000);
	d.input.fits[XFP_FIT_BASE] = (struct xfp_fit_set){ BASE, large, 1, NULL };
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_WANT_EXTENDED);
	large[0].bytes--;
	expect(&d, 4, true, BASE);
	large[0].bytes++;
	d.policy.format.bits = 1u << 4; /* if fp8 is not allowed, there is no need to wait for it */
	expect(&d, 4, true, BASE);
}

/* Measured candidates that are not allowed are not chosen. */
static void allowed(void **state)
{
	struct decision d;

	(void)state;
	begin(&d, "2,4", 960000000);
	expect(&d, 4, true, BASE);
	begin(&d, "2,3", 980000000);
	expect(&d, 0, true, OUTLIERS);
	d.parameters.on_miss = XFP_MISS_BEST;
	expect(&d, 3, false, BASE);
	begin(&d, "3,5", 980000000);
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_WANT_EXTENDED);
	measure_extended(&d);
	expect(&d, 5, true, EXTENDED);
}

/* With fixed bits the floor and on-miss do not apply, and a candidate as large as the source is not chosen. */
static void fixed(void **state)
{
	struct decision d;

	(void)state;
	begin(&d, "2", 980000000);
	d.parameters.on_miss = XFP_MISS_FAIL;
	expect(&d, 2, false, BASE);
	assert_int_equal(d.choice.fixed, 1);
	assert_int_equal(d.choice.floor, 980000000);
	begin(&d, "4", 980000000);
	expect(&d, 4, true, BASE);
	begin(&d, "6", 980000000);
	d.input.fits[XFP_FIT_BASE] = (struct xfp_fit_set){ EXTENDED, extended, 2, NULL };
	expect(&d, 0, true, OUTLIERS);
}

/* The sample decides; `met` is determined from all rows. */
static void sampled(void **state)
{
	static const struct xfp_sampled good[] = { { 0.95, 0.9 }, { 0.985, 0.95 }, { 0.99, 0.98 } },
					poor[] = { { 0.5, 0.4 }, { 0.6, 0.5 }, { 0.7, 0.6 } };
	struct decision d;

	(void)state;
	begin(&d, "auto", 980000000);
	d.parameters.moe_sample.experts = 2;
	d.input.sampled[XFP_FIT_BASE] = good;
	expect(&d, 3, false, BASE);
	assert_int_equal(d.choice.sample, 2);
	assert_true(d.choice.sample_median == 0.985 && d.choice.sample_p5 == 0.95);
	assert_true(d.choice.candidate.cos_median == 0.97);

	d.input.sampled[XFP_FIT_BASE] = poor;
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_WANT_EXTENDED);
	d.parameters.on_miss = XFP_MISS_FAIL;
	d.input.fits[XFP_FIT_EXTENDED] = (struct xfp_fit_set){ EXTENDED, extended, 2, NULL };
	d.input.sampled[XFP_FIT_EXTENDED] = poor;
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_UNMET);
	assert_non_null(strstr(d.err.text, "0.700000"));
}

/* Outputs decide where they are measured, whatever the cosines of weights are, and no sample does. */
static void outputs_decide(void **state)
{
	static const struct xfp_output_measure outputs[] = { { 0.97, 0.96, 0.06 },
							     { 0.96, 0.9, 0.07 },
							     { 0.995, 0.99, 0.01 } },
					       infinite[] = { { -1, -1, 1 }, { -1, -1, 1 }, { 0.975, 0.9, 0.05 } };
	struct decision d;

	(void)state;
	begin(&d, "auto", 970000000);
	d.input.fits[XFP_FIT_BASE].outputs = outputs;
	d.parameters.moe_sample.experts = 2;
	expect(&d, 2, true, BASE);
	assert_true(d.choice.calibrated && d.choice.output.median == 0.97 && d.choice.output.error == 0.06);
	assert_true(d.choice.candidate.cos_median == 0.90 && !d.choice.sample);
	d.policy.floor = 970000001;
	expect(&d, 4, true, BASE);
	d.input.fits[XFP_FIT_BASE].outputs = infinite; /* of some candidates, which must not be chosen */
	d.policy.floor = 970000000;
	expect(&d, 4, true, BASE);
	/* the best by outputs, and the message says so */
	begin(&d, "2,3", 980000000);
	d.input.fits[XFP_FIT_BASE].outputs = outputs;
	d.parameters.on_miss = XFP_MISS_BEST;
	expect(&d, 2, false, BASE);
	d.parameters.on_miss = XFP_MISS_FAIL;
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_UNMET);
	assert_non_null(strstr(d.err.text, "v2 with 2 bits, has median cosine 0.970000 of outputs; lower the floor"));
	d.parameters.on_miss = XFP_MISS_KEEP;
	expect(&d, 0, true, OUTLIERS);
	assert_true(d.choice.calibrated && d.choice.output.median == 1 && d.choice.output.error == 0);
	/* Cosines of outputs are not compared with those of weights. */
	measure_extended(&d);
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_FAILED);
	assert_string_equal(d.err.text, "only some of its fits have outputs");
}

/* For equal sizes the higher median; for equal medians the candidate measured first. */
static void ties(void **state)
{
	static const struct xfp_candidate equal[] = {
		{ .mode = XFP_MODE_V2, .k = 2, .bytes = 400, .cos_median = 0.97, .cos_p5 = 0.9 },
		{ .mode = XFP_MODE_V2, .k = 3, .bytes = 400, .cos_median = 0.98, .cos_p5 = 0.9 },
		{ .mode = XFP_MODE_V2, .k = 4, .bytes = 400, .cos_median = 0.98, .cos_p5 = 0.95 },
		{ .mode = XFP_MODE_V2, .k = 5, .bytes = 401, .cos_median = 0.99, .cos_p5 = 0.95 },
	};
	struct decision d;

	(void)state;
	begin(&d, "2,3,4,5", 960000000);
	d.input.fits[XFP_FIT_BASE] = (struct xfp_fit_set){ BASE, equal, 4, NULL };
	expect(&d, 3, true, BASE);
	d.input.fits[XFP_FIT_LIBRARY] = (struct xfp_fit_set){ EXTENDED, equal + 2, 1, NULL };
	expect(&d, 3, true, BASE);
	d.input.fits[XFP_FIT_BASE] = (struct xfp_fit_set){ BASE, equal, 1, NULL };
	expect(&d, 4, true, EXTENDED);
	/* the floor itself is met; the slightest miss is a miss */
	begin(&d, "2,3,4,5", 980000000);
	d.input.fits[XFP_FIT_BASE] = (struct xfp_fit_set){ BASE, equal, 3, NULL };
	d.input.fits[XFP_FIT_EXTENDED] = (struct xfp_fit_set){ EXTENDED, equal, 0, NULL };
	expect(&d, 3, true, BASE);
	begin(&d, "2,3,4,5", 980000001);
	d.input.fits[XFP_FIT_BASE] = (struct xfp_fit_set){ BASE, equal, 3, NULL };
	d.input.fits[XFP_FIT_EXTENDED] = (struct xfp_fit_set){ EXTENDED, equal, 0, NULL };
	d.parameters.on_miss = XFP_MISS_BEST;
	expect(&d, 3, false, BASE); /* for equal medians, the first again */
}

/* As large as the source is not smaller. */
static void a_byte_less_than_the_source(void **state)
{
	struct xfp_candidate one = { .mode = XFP_MODE_V2, .k = 4, .bytes = 1600, .cos_median = 0.99, .cos_p5 = 0.98 };
	struct decision d;

	(void)state;
	begin(&d, "4", 980000000);
	d.input.fits[XFP_FIT_BASE] = (struct xfp_fit_set){ BASE, &one, 1, NULL };
	expect(&d, 0, true, OUTLIERS);
	one.bytes = 1599;
	expect(&d, 4, true, BASE);
	/* a candidate that could not be measured does not count */
	one.cos_median = -1;
	expect(&d, 0, true, OUTLIERS);
	one.cos_median = 0;
	expect(&d, 4, false, BASE);
}

static void no_numbers(void **state)
{
	struct decision d;

	(void)state;
	begin(&d, "4", 980000000);
	d.input.fits[XFP_FIT_BASE].count = 0;
	assert_int_equal(xfp_select(&d.input, &d.choice, &d.err), XFP_BAD_INPUT);
	d.parameters.on_nonfinite = XFP_NONFINITE_KEEP;
	expect(&d, 0, true, OUTLIERS);
}

PROGRAM("test_select")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fewest_that_meet),
		cmocka_unit_test(fp8_among_others),
		cmocka_unit_test(a_rival_of_fp8),
		cmocka_unit_test(allowed),
		cmocka_unit_test(fixed),
		cmocka_unit_test(sampled),
		cmocka_unit_test(outputs_decide),
		cmocka_unit_test(ties),
		cmocka_unit_test(a_byte_less_than_the_source),
		cmocka_unit_test(no_numbers),
	};

	return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
