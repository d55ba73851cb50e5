/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets selected from synthetic surveys.
 */
#include "stages/quantize/target.h"
#include "stages/work/fits.h"
#include "tests/unit/scratch.h"

static const struct xfp_ledger_unit matrix = {
	.class_ = XFP_CLASS_ATTENTION, .dtype = XFP_BF16, .experts = 1, .rows = 10, .cols = 100
}; /* 2,000 bytes */

/* The usual order: codebooks for one threshold after another, then libraries. */
static const struct xfp_candidate usual[] = {
	{ .mode = XFP_MODE_V2, .k = 3, .sigma_milli = 0, .bytes = 600, .cos_median = 0.980 },
	{ .mode = XFP_MODE_V2, .k = 4, .sigma_milli = 0, .bytes = 800, .cos_median = 0.995 },
	{ .mode = XFP_MODE_V2, .k = 5, .sigma_milli = 0, .bytes = 1000, .cos_median = 0.999 },
	{ .mode = XFP_MODE_V2, .k = 3, .sigma_milli = 3000, .bytes = 650, .cos_median = 0.990 },
	{ .mode = XFP_MODE_V2, .k = 4, .sigma_milli = 3000, .bytes = 850, .cos_median = 0.997 },
	{ .mode = XFP_MODE_V2, .k = 5, .sigma_milli = 3000, .bytes = 1050, .cos_median = 0.9995 },
	{ .mode = XFP_MODE_V2C, .k = 3, .group = 16, .library = 16, .bytes = 700, .cos_median = 0.993 },
	{ .mode = XFP_MODE_V2C, .k = 3, .group = 32, .library = 16, .bytes = 640, .cos_median = 0.991 },
	{ .mode = XFP_MODE_V2C,
	  .k = 3,
	  .sigma_milli = 2500,
	  .group = 32,
	  .library = 16,
	  .bytes = 740,
	  .cos_median = 0.994 },
};
#define USUAL (sizeof usual / sizeof usual[0])

static bool calibrated;

/* The parameters for fitting a unit with this format and this floor. */
static struct xfp_parameters aimed(const struct xfp_candidate *list, size_t count, const struct xfp_ledger_unit *unit,
				   const char *format, uint32_t floor)
{
	struct xfp_parameters p = xfp_parameters_default();
	struct xfp_policy policy;

	p.floor[unit->class_] = floor;
	strcpy(p.calibration.sha256, calibrated ? "0" : "");
	assert_true(xfp_format_parse(format, &p.format[unit->class_]));
	policy = xfp_policy_of(&p, "x", "q", unit->class_);
	p = xfp_policy_parameters(&p, &policy);
	xfp_narrow_to_survey(list, (uint32_t)count, unit, &policy, &p);
	return p;
}

static void expect(const struct xfp_parameters *p, enum xfp_mode mode, uint32_t sigma_milli, uint32_t group,
		   uint32_t bits)
{
	if (p->modes != 1u << mode || p->outlier_sigma != sigma_milli || p->group_size != group || p->bits != bits)
		print_error("modes %x, sigma %u, group %u, bits %x\n", p->modes, p->outlier_sigma, p->group_size,
			    p->bits);
	assert_int_equal(p->modes, 1u << mode);
	assert_int_equal(p->outlier_sigma, sigma_milli);
	assert_int_equal(p->group_size, group);
	assert_int_equal(p->bits, bits);
}

#define B(k) (1u << (k))

static void the_cheapest_that_meets(void **state)
{
	struct xfp_parameters p;

	(void)state;
	p = aimed(usual, USUAL, &matrix, "auto", 970000000);
	expect(&p, XFP_MODE_V2, 0, 0, B(3) | B(4));
	p = aimed(usual, USUAL, &matrix, "auto", 990000000);
	expect(&p, XFP_MODE_V2C, 0, 32, B(3) | B(4));
	p = aimed(usual, USUAL, &matrix, "auto", 992500000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(3) | B(4));
	p = aimed(usual, USUAL, &matrix, "auto", 993900000);
	expect(&p, XFP_MODE_V2C, 2500, 32, B(3) | B(4));
	p = aimed(usual, USUAL, &matrix, "auto", 994500000);
	expect(&p, XFP_MODE_V2, 0, 0, B(4) | B(5));
	p = aimed(usual, USUAL, &matrix, "auto", 999200000);
	expect(&p, XFP_MODE_V2, 3000, 0, B(5) | B(6));
}

/* The margin is a hundredth of 1 - floor: candidates that meet the floor by less are skipped. */
static void a_margin_is_kept(void **state)
{
	struct xfp_candidate list[] = {
		{ .mode = XFP_MODE_V2, .k = 3, .bytes = 600, .cos_median = 0.98019 },
		{ .mode = XFP_MODE_V2, .k = 4, .bytes = 800, .cos_median = 0.99 },
	};
	struct xfp_parameters p;

	(void)state;
	p = aimed(list, 2, &matrix, "auto", 980000000);
	expect(&p, XFP_MODE_V2, 0, 0, B(4) | B(5));
	list[0].cos_median = 0.98021;
	p = aimed(list, 2, &matrix, "auto", 980000000);
	expect(&p, XFP_MODE_V2, 0, 0, B(3) | B(4));
	/* A floor of 1 leaves no margin. */
	list[1].cos_median = 1;
	p = aimed(list, 2, &matrix, "auto", XFP_NANO);
	expect(&p, XFP_MODE_V2, 0, 0, B(4) | B(5));
}

static void the_best_where_none_meets(void **state)
{
	struct xfp_parameters p;

	(void)state;
	p = aimed(usual, USUAL, &matrix, "auto", 999900000);
	expect(&p, XFP_MODE_V2, 3000, 0, B(5) | B(6));
	/* The highest cosine, regardless of size, among the candidates smaller than the source. */
	p = aimed(usual, USUAL,
		  &(struct xfp_ledger_unit){
			  .class_ = XFP_CLASS_ATTENTION, .dtype = XFP_BF16, .experts = 1, .rows = 10, .cols = 50 },
		  "auto", 999900000);
	expect(&p, XFP_MODE_V2, 3000, 0, B(4) | B(5));
}

/* No floor distinguishes thresholds: the default one, and all modes. */
static void fixed_bits(void **state)
{
	struct xfp_parameters p;

	(void)state;
	p = aimed(usual, USUAL, &matrix, "4", 990000000);
	assert_int_equal(p.modes, XFP_AUTO_MODES);
	assert_int_equal(p.outlier_sigma, XFP_SIGMA_DEFAULT);
	assert_int_equal(p.group_size, 0);
}

/* The same if nothing was measured: a unit with NaN, and a unit that no candidate makes smaller. */
static void nothing_to_aim_at(void **state)
{
	struct xfp_candidate broken[] = { { .mode = XFP_MODE_V2, .k = 3, .bytes = 600, .cos_median = -1 } };
	const struct xfp_ledger_unit tiny = {
		.class_ = XFP_CLASS_ATTENTION, .dtype = XFP_BF16, .experts = 1, .rows = 1, .cols = 8
	};
	struct xfp_parameters p;

	(void)state;
	p = aimed(NULL, 0, &matrix, "auto", 990000000);
	assert_int_equal(p.outlier_sigma, XFP_SIGMA_DEFAULT);
	assert_int_equal(p.modes, XFP_AUTO_MODES);
	assert_int_equal(p.bits, 0x17c);
	p = aimed(broken, 1, &matrix, "auto", 990000000);
	assert_int_equal(p.outlier_sigma, XFP_SIGMA_DEFAULT);
	p = aimed(usual, USUAL, &tiny, "auto", 990000000);
	assert_int_equal(p.outlier_sigma, XFP_SIGMA_DEFAULT);
}

/* Only allowed bits are targets, and measured. */
static void narrowed_bits(void **state)
{
	struct xfp_parameters p;

	(void)state;
	p = aimed(usual, USUAL, &matrix, "4,5", 970000000);
	expect(&p, XFP_MODE_V2, 0, 0, B(4) | B(5));
	p = aimed(usual, USUAL, &matrix, "3,5", 970000000);
	expect(&p, XFP_MODE_V2, 0, 0, B(3) | B(5));
	p = aimed(usual, USUAL, &matrix, "3,6", 999900000); /* none meets, 6 was not surveyed */
	expect(&p, XFP_MODE_V2C, 2500, 32, B(3) | B(6));
	p = aimed(usual, USUAL, &matrix, "2-5", 999000000); /* none above the most */
	expect(&p, XFP_MODE_V2, 3000, 0, B(5));
}

/* fp8, surveyed once: the target if it is the smallest, otherwise measured in case it is needed. */
static void fp8(void **state)
{
	struct xfp_candidate list[] = {
		{ .mode = XFP_MODE_V2C, .k = 4, .group = 16, .library = 16, .bytes = 650, .cos_median = 0.998 },
		{ .mode = XFP_MODE_V2C, .k = 5, .group = 16, .library = 8, .bytes = 760, .cos_median = 0.9996 },
		{ .mode = XFP_MODE_V2C, .k = 6, .group = 16, .library = 4, .bytes = 860, .cos_median = 0.99988 },
		{ .mode = XFP_MODE_FP8, .k = 8, .bytes = 1040, .cos_median = 0.9997 },
	};
	struct xfp_parameters p;

	(void)state;
	p = aimed(list, 4, &matrix, "auto", 995000000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(4) | B(5) | B(8));
	p = aimed(list, 4, &matrix, "auto", 999800000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(6) | B(8));
	p = aimed(list, 4, &matrix, "2-6", 999800000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(6));
	/* In small matrices, where libraries are a large share, it is smaller than the candidates that meet the
	 * floor. */
	list[3].bytes = 700;
	p = aimed(list, 4, &matrix, "auto", 999000000);
	expect(&p, XFP_MODE_V2, 0, 0, B(8));
	p = aimed(list, 4, &matrix, "5,8", 999650000);
	expect(&p, XFP_MODE_V2, 0, 0, B(8));
	calibrated = true;
	p = aimed(list, 4, &matrix, "5,8", 999650000);
	expect(&p, XFP_MODE_V2C, 0, 0, B(8)); /* outputs are measured, too */
	calibrated = false;
	p = aimed(list, 4, &matrix, "4,5", 995000000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(4) | B(5));
	/* If it would turn weights into zeros, it is not a candidate. */
	list[3].cos_median = -1;
	p = aimed(list, 4, &matrix, "auto", 995000000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(4) | B(5));
}

/* For equal sizes the higher median; for equal candidates, and for equal misses, the first. */
static void ties(void **state)
{
	struct xfp_candidate list[] = {
		{ .mode = XFP_MODE_V2, .k = 3, .sigma_milli = 5000, .bytes = 600, .cos_median = 0.991 },
		{ .mode = XFP_MODE_V2, .k = 4, .sigma_milli = 4000, .bytes = 600, .cos_median = 0.992 },
		{ .mode = XFP_MODE_V2C, .k = 4, .sigma_milli = 3000, .group = 16, .bytes = 600, .cos_median = 0.992 },
	};
	struct xfp_parameters p;

	(void)state;
	p = aimed(list, 3, &matrix, "auto", 990000000);
	expect(&p, XFP_MODE_V2, 4000, 0, B(4) | B(5));
	p = aimed(list, 3, &matrix, "auto", 999000000);
	expect(&p, XFP_MODE_V2, 4000, 0, B(4) | B(5));
	list[2].bytes = 599;
	p = aimed(list, 3, &matrix, "auto", 990000000);
	expect(&p, XFP_MODE_V2C, 3000, 16, B(4) | B(5));
}

/* Half the error is worth half a bit per weight: outliers that cost less pay off, and those that cost more do not. */
static void outliers_that_pay(void **state)
{
	struct xfp_candidate list[] = {
		{ .mode = XFP_MODE_V2C, .k = 4, .group = 16, .bytes = 600, .cos_median = 0.995, .error = 0.01 },
		{ .mode = XFP_MODE_V2C,
		  .k = 4,
		  .group = 16,
		  .bytes = 660,
		  .cos_median = 0.995,
		  .error = 0.005,
		  .sigma_milli = 3000 },
	};
	struct xfp_parameters p;

	(void)state;
	p = aimed(list, 2, &matrix, "2-6", 990000000);
	expect(&p, XFP_MODE_V2C, 3000, 16, B(4) | B(5));
	list[1].bytes = 665;
	p = aimed(list, 2, &matrix, "2-6", 990000000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(4) | B(5));
	/* Other groups make another candidate, and a candidate as large as the source is excluded. */
	list[1].bytes = 610;
	list[1].group = 32;
	p = aimed(list, 2, &matrix, "2-6", 990000000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(4) | B(5));
	list[1].group = 16;
	list[1].bytes = 2000;
	list[1].error = 1e-9;
	p = aimed(list, 2, &matrix, "2-6", 990000000);
	expect(&p, XFP_MODE_V2C, 0, 16, B(4) | B(5));
}

static void thresholds_that_surveys_try(void **state)
{
	(void)state;
	assert_int_equal(xfp_target_thresholds.count, 7);
	assert_int_equal(xfp_target_thresholds.sigma_milli[0], 0);
	for (uint32_t i = 2; i < xfp_target_thresholds.count; i++)
		assert_true(xfp_target_thresholds.sigma_milli[i] < xfp_target_thresholds.sigma_milli[i - 1]);
}

/* The fragment for make. */
static void the_fragment(void **state)
{
	struct xfp_parameters p = xfp_parameters_default();
	char *path = scratch_path(state, "u000012-fits.mk"), text[64] = "";
	FILE *file;

	assert_string_equal(xfp_fits_text(&p), "SURVEY = survey\n");
	p.outlier_sigma = 3000;
	assert_string_equal(xfp_fits_text(&p), "FITS = fit library\n");
	p.modes = 1u << XFP_MODE_V2;
	assert_string_equal(xfp_fits_text(&p), "FITS = fit\n");
	p.modes = 1u << XFP_MODE_V2C;
	assert_string_equal(xfp_fits_text(&p), "FITS = library\n");
	assert_int_equal(xfp_fits_write(*state, 12, &p, NULL), XFP_OK);
	assert_non_null(file = fopen(path, "r"));
	assert_non_null(fgets(text, sizeof text, file));
	fclose(file);
	assert_string_equal(text, "FITS = library\n");
	free(path);
	xfp_fits_remove(*state, 12);
	assert_false(scratch_has(state, "u000012-fits.mk"));
	xfp_fits_remove(*state, 12);
}

PROGRAM("test_target")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cheapest_that_meets),
		cmocka_unit_test(a_margin_is_kept),
		cmocka_unit_test(the_best_where_none_meets),
		cmocka_unit_test(fixed_bits),
		cmocka_unit_test(nothing_to_aim_at),
		cmocka_unit_test(narrowed_bits),
		cmocka_unit_test(fp8),
		cmocka_unit_test(ties),
		cmocka_unit_test(outliers_that_pay),
		cmocka_unit_test(thresholds_that_surveys_try),
		scratch_test(the_fragment),
	};

	return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
