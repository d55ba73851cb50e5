/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warnings about floors: only for those known to have ruined models.
 */
#include <stdlib.h>
#include <string.h>

#include "conversion/low_floors.h"
#include "tests/unit/unit.h"

static struct xfp_ledger_unit units[] = {
	{ .name = (char *)"a", .role = (char *)"q", .class_ = XFP_CLASS_ATTENTION, .experts = 1 },
	{ .name = (char *)"b", .role = (char *)"down", .class_ = XFP_CLASS_DENSE_MLP, .experts = 1 },
	{ .name = (char *)"c", .role = (char *)"up", .class_ = XFP_CLASS_ROUTED_EXPERT, .experts = 8 },
};
static const struct xfp_ledger ledger = { .units = units, .unit_count = 3 };

/* Floors of the three classes. */
static struct xfp_parameters floors(uint32_t attention, uint32_t mlp, uint32_t routed)
{
	struct xfp_parameters p = xfp_parameters_default();

	p.floor[XFP_CLASS_ATTENTION] = attention;
	p.floor[XFP_CLASS_DENSE_MLP] = mlp;
	p.floor[XFP_CLASS_ROUTED_EXPERT] = routed;
	return p;
}

/* `which`: the text in parentheses; NULL: no warning. */
static void expect(const struct xfp_parameters *p, bool goal, const char *which)
{
	char *line = xfp_low_floors(p, &ledger, goal);
	const char *begin = line ? strchr(line, '(') : NULL, *end = line ? strchr(line, ')') : NULL;

	if (!which) {
		if (line)
			fail_msg("'%s' though nothing is low", line);
		return;
	}
	assert_true(begin && end);
	assert_int_equal(end - begin - 1, strlen(which));
	assert_memory_equal(begin + 1, which, strlen(which));
	free(line);
}

static void low_floors_are_named(void **unused)
{
	struct xfp_parameters p = xfp_parameters_default();
	char *line;

	(void)unused;
	expect(&p, false, NULL);
	/* The floor that ruined models is low for all but routed experts, which are low below it. */
	p = floors(980000001, 980000001, 980000000);
	expect(&p, false, NULL);
	p = floors(980000000, 990000000, 990000000);
	expect(&p, false, "attention 0.98");
	p = floors(990000000, 990000000, 979999999);
	expect(&p, false, "routed_expert 0.979999999");
	/* With calibration, the floors are not those of the models that were ruined. */
	strcpy(p.calibration.sha256, "00");
	expect(&p, false, "routed_expert 0.979999999");
	line = xfp_low_floors(&p, &ledger, false);
	assert_non_null(strstr(line, "floors this low have ruined models without calibration ("));
	free(line);
	/* The lowest of each kind. */
	p = floors(970000000, 960000000, 930000000);
	expect(&p, false, "dense_mlp 0.96, routed_expert 0.93");
	p = floors(950000000, 960000000, 990000000);
	expect(&p, false, "attention 0.95");
}

/* A goal without a floor does not request a low one. */
static void a_goal_takes_no_floor_for_a_low_one(void **unused)
{
	struct xfp_parameters p = floors(0, 0, 0);

	(void)unused;
	expect(&p, true, NULL);
	expect(&p, false, "attention 0.0, routed_expert 0.0");
	p = floors(0, 900000000, 0);
	expect(&p, true, "dense_mlp 0.9");
}

static void units_without_a_choice_have_no_floor(void **unused)
{
	struct xfp_parameters p = floors(900000000, 990000000, 990000000);

	(void)unused;
	p.format[XFP_CLASS_ATTENTION] = (struct xfp_format){ XFP_FORM_BITS, 1u << 4 };
	expect(&p, false, NULL);
	p = floors(900000000, 990000000, 990000000);
	units[0].plan = XFP_PLAN_FP8;
	expect(&p, false, NULL);
	units[0].plan = XFP_PLAN_FIT;
	expect(&p, false, "attention 0.9");
}

PROGRAM("test_low_floors")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(low_floors_are_named),
		cmocka_unit_test(a_goal_takes_no_floor_for_a_low_one),
		cmocka_unit_test(units_without_a_choice_have_no_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
