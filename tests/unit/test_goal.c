/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of goals, their solutions as text and as a file, and shares on GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/estimate/gpu.h"
#include "schemas/goal.h"
#include "stages/quantize/select.h"
#include "stages/quantize/variants.h"
#include "stages/settings/settings.h"
#include "stages/work/assigned.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

/* ---- sizes ------------------------------------------------------------------------------------- */

static void test_sizes(void **unused)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "14GiB", (uint64_t)14 << 30 },
		{ "3.5G", 3500000000 },
		{ "1", 1 },
		{ "0.5KiB", 512 },
		{ "96GB", 96000000000 },
		{ "1.125KiB", 1152 },
		{ "14gib", (uint64_t)14 << 30 },
		{ "14 GiB", (uint64_t)14 << 30 },
		{ "3.5 gB", 3500000000 },
		{ "5  kb", 5000 },
	};
	static const char *const bad[] = { "",
					   "0",
					   "0.0GiB",
					   "-1G",
					   "1.G",
					   ".5G",
					   "1.2345G",
					   "1.5",
					   "14Gi",
					   "14 GiB ",
					   "14 ",
					   "14 i",
					   "1e9",
					   "nan",
					   "18446744073709551616",
					   "18446744073709551617", /* 1 if it wrapped */
					   "3000000T",             /* times eight would wrap */
					   "9999999999T" };
	uint64_t bytes;
	uint32_t micro, gpus;
	bool bare;

	(void)unused;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_true(xfp_goal_parse_size(good[i].text, &bytes));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (xfp_goal_parse_size(bad[i], &bytes))
			fail_msg("'%s' is no size", bad[i]);
	assert_true(xfp_goal_parse_bpw("4.25", &micro) && micro == 4250000);
	assert_false(xfp_goal_parse_bpw("0", &micro) || xfp_goal_parse_bpw("65", &micro) ||
		     xfp_goal_parse_bpw("-1", &micro) || xfp_goal_parse_bpw("4,25", &micro));
	assert_true(xfp_goal_parse_envelope("2x96GiB", &gpus, &bytes) && gpus == 2 && bytes == (uint64_t)96 << 30);
	assert_true(xfp_goal_parse_envelope("24G", &gpus, &bytes) && gpus == 1 && bytes == 24000000000);
	assert_false(xfp_goal_parse_envelope("0x24G", &gpus, &bytes) ||
		     xfp_goal_parse_envelope("x24G", &gpus, &bytes) || xfp_goal_parse_envelope("2x", &gpus, &bytes) ||
		     xfp_goal_parse_envelope("2x0G", &gpus, &bytes) ||
		     xfp_goal_parse_envelope("65537x1G", &gpus, &bytes) ||
		     xfp_goal_parse_envelope("4294967298x1G", &gpus, &bytes));
	assert_true(xfp_goal_parse_reserve("kv=8GiB,act=10GiB", &bytes, &bare) && bytes == (uint64_t)18 << 30 && !bare);
	assert_true(xfp_goal_parse_reserve("kv=8,act=10GiB", &bytes, &bare) && bare);
	assert_true(xfp_goal_parse_reserve("kv=1048576", &bytes, &bare) && !bare);
	assert_true(xfp_goal_parse_reserve("kv=8 gib", &bytes, &bare) && bytes == (uint64_t)8 << 30 && !bare);
	assert_false(xfp_goal_parse_reserve("8GiB", &bytes, &bare) || xfp_goal_parse_reserve("=8GiB", &bytes, &bare) ||
		     xfp_goal_parse_reserve("kv=8GiB,", &bytes, &bare) || xfp_goal_parse_reserve("kv=", &bytes, &bare));
	/* nine times the largest size overflows 64 bits */
	assert_false(xfp_goal_parse_reserve("a=2000000T,b=2000000T,c=2000000T,d=2000000T,e=2000000T,f=2000000T,"
					    "g=2000000T,h=2000000T,i=2000000T,j=2000000T",
					    &bytes, &bare));
}

/* A tensor that is tied to another counts once. */
static void test_elements(void **unused)
{
	struct xfp_ledger_tensor tensors[] = {
		{ .fate = XFP_FATE_KEPT, .rank = 2, .shape = { 10, 20 } },
		{ .fate = XFP_FATE_QUANTIZED, .rank = 3, .shape = { 2, 3, 4 } },
		{ .fate = XFP_FATE_TIED, .rank = 2, .shape = { 10, 20 } },
		{ .fate = XFP_FATE_KEPT },
	};
	const struct xfp_ledger ledger = { .tensors = tensors, .tensor_count = 4 };

	(void)unused;
	assert_int_equal(xfp_ledger_elements(&ledger), 200 + 24 + 1);
}

static void test_weights(void **unused)
{
	const struct xfp_ledger_unit q = { .name = "a", .role = "q", .class_ = XFP_CLASS_ATTENTION },
				     down = { .name = "b", .role = "down", .class_ = XFP_CLASS_DENSE_MLP };
	const struct xfp_ledger_unit head = { .name = "c", .role = "lm_head", .class_ = XFP_CLASS_LM_HEAD };
	const struct xfp_ledger_unit expert = { .name = "d", .role = "up", .class_ = XFP_CLASS_ROUTED_EXPERT };
	const struct xfp_ledger_unit words = { .name = "e", .role = "embedding", .class_ = XFP_CLASS_EMBEDDING };
	struct xfp_goal goal = { 0 };
	struct xfp_error err;

	(void)unused;
	assert_true(xfp_goal_weight(&goal, &q) == 1);
	assert_true(xfp_goal_weight(&goal, &head) == 4.5);
	assert_true(xfp_goal_weight(&goal, &down) == 3);
	assert_true(xfp_goal_weight(&goal, &expert) == .7);
	assert_true(xfp_goal_weight(&goal, &words) == 3);
	assert_int_equal(xfp_goal_add_weights(&goal, "attention=2,role:down=1.5", NULL), XFP_OK);
	assert_true(xfp_goal_weight(&goal, &q) == 2);
	assert_true(xfp_goal_weight(&goal, &down) == 1.5);
	assert_int_equal(xfp_goal_add_weights(&goal, "dense_mlp=0.25", NULL), XFP_OK);
	assert_true(xfp_goal_weight(&goal, &down) == 0.25); /* the last match applies */
	assert_int_equal(xfp_goal_add_weights(&goal, "attentoin=2", &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "attentoin"));
	assert_int_equal(xfp_goal_add_weights(&goal, "attention=0", NULL), XFP_USAGE);
	assert_int_equal(xfp_goal_add_weights(&goal, "attention=1000000.001", NULL), XFP_USAGE);
	assert_int_equal(xfp_goal_add_weights(&goal, "attention", NULL), XFP_USAGE);
	xfp_goal_free(&goal);
}

static enum xfp_status set(struct xfp_settings *s, const char *name, const char *text, struct xfp_error *err)
{
	char where[64];

	snprintf(where, sizeof where, "--%s", name);
	return xfp_setting_set(s, xfp_setting_find(name), where, text, err);
}

static void test_layers(void **unused)
{
	struct xfp_settings s = { .parameters = xfp_parameters_default() };
	struct xfp_error err;

	(void)unused;
	/* A later layer's goal replaces an earlier one's; two goals in one layer are rejected. */
	assert_int_equal(set(&s, "target-bpw", "4.25", NULL), XFP_OK);
	assert_int_equal(xfp_settings_finish(&s, NULL), XFP_OK);
	assert_int_equal(set(&s, "target-size", "14GiB", NULL), XFP_OK);
	assert_int_equal(s.goal.kind, XFP_GOAL_SIZE);
	assert_int_equal(set(&s, "envelope", "24GiB", &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "--target-size 14GiB"));
	assert_int_equal(set(&s, "reserve", "kv=1GiB", NULL), XFP_OK);
	assert_int_equal(xfp_settings_finish(&s, &err), XFP_USAGE); /* without an envelope */
	assert_int_equal(set(&s, "envelope", "24GiB", NULL), XFP_OK);
	assert_int_equal(set(&s, "reserve", "kv=24GiB", NULL), XFP_OK);
	assert_int_equal(xfp_settings_finish(&s, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "reserve less"));
	/* Reserves of one layer are added up, and replace those of an earlier layer. */
	assert_int_equal(set(&s, "reserve", "kv=11GiB", NULL), XFP_OK);
	assert_int_equal(set(&s, "reserve", "act=12GiB", NULL), XFP_OK);
	assert_int_equal(xfp_settings_finish(&s, NULL), XFP_OK);
	assert_true(s.goal.reserve == (uint64_t)23 << 30);
	assert_int_equal(set(&s, "reserve", "kv=22GiB", NULL), XFP_OK);
	assert_int_equal(xfp_settings_finish(&s, NULL), XFP_OK);
	assert_true(s.goal.reserve == (uint64_t)22 << 30);
	assert_false(s.asked_floor[XFP_CLASS_ATTENTION]);
	assert_int_equal(set(&s, "floor", "attention=0.9", NULL), XFP_OK);
	assert_int_equal(xfp_settings_finish(&s, NULL), XFP_OK);
	assert_true(s.asked_floor[XFP_CLASS_ATTENTION] && !s.asked_floor[XFP_CLASS_DENSE_MLP]);
	xfp_goal_free(&s.goal);
	xfp_parameters_free(&s.parameters);
}

/* ---- assignments ------------------------------------------------------------------------------- */

static void test_texts(void **unused)
{
	static const char *const good[] = { "-",         "keep",     "fp8",          "v2-3",      "v2-6@4.0",
					    "v2a-128-2", "v2c-16-5", "v2c-32-4@2.7", "v2-2@0.001" };
	static const char *const bad[] = { "",          "v2",       "v2-1",       "v2-7",
					   "v2c-3",     "v2c-17-3", "v2c-32-3@",  "v2-3@0",
					   "v2-3@04.0", "v2-3@4",   "v2a-128-2x", "x-3",
					   "keep-3",    "v2-03",    "v2c-0-3",    "v2-3@4294967.295" };
	struct xfp_assignment *list, one;
	char text[XFP_ASSIGNMENT_TEXT], *all;
	uint32_t count;

	(void)unused;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_true(xfp_assignment_parse(good[i], &one));
		assert_string_equal(xfp_assignment_text(&one, text), good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (xfp_assignment_parse(bad[i], &one))
			fail_msg("'%s' is no assignment", bad[i]);
	assert_true(xfp_assignments_parse("- 3*v2c-32-4@2.7 keep 2*fp8", 7, &list, &count));
	assert_int_equal(count, 7);
	assert_int_equal(list[3].k, 4);
	assert_int_equal(list[3].sigma_milli, 2700);
	assert_int_equal(list[6].mode, XFP_MODE_FP8);
	/* then only that is measured */
	assert_int_equal(list[3].bits, 1u << 4);
	assert_int_equal(list[6].bits, XFP_FP8_BIT);
	assert_non_null(all = xfp_assignments_text(list, count));
	assert_string_equal(all, "- 3*v2c-32-4@2.7 keep 2*fp8");
	free(all);
	free(list);
	assert_false(xfp_assignments_parse("", 7, &list, &count) || xfp_assignments_parse("v2-3 ", 7, &list, &count) ||
		     xfp_assignments_parse("0*v2-3", 7, &list, &count) ||
		     xfp_assignments_parse("03*v2-3", 7, &list, &count) ||
		     xfp_assignments_parse("99999999999*v2-3", 7, &list, &count));
	/* The list cannot be longer than the number of units, whatever the text. */
	assert_false(xfp_assignments_parse("8*v2-3", 7, &list, &count) ||
		     xfp_assignments_parse("7*v2-3 -", 7, &list, &count) ||
		     xfp_assignments_parse("99999999*v2-3", 7, &list, &count));
	assert_null(list);
	assert_true(xfp_assignments_parse("7*v2-3", 7, &list, &count));
	assert_int_equal(count, 7);
	free(list);
}

static void test_parameters(void **unused)
{
	struct xfp_parameters p = xfp_parameters_default(), again;
	char *text, *other;

	(void)unused;
	assert_non_null(text = xfp_parameters_to_json(&p));
	assert_null(strstr(text, "assigned")); /* without a goal the text is as before goals existed */
	free(text);
	assert_true(xfp_assignments_parse("2*v2-3 -", 7, &p.assigned, &p.assigned_count));
	assert_non_null(text = xfp_parameters_to_json(&p));
	assert_int_equal(xfp_parameters_from_json(text, "x", 3, &again, NULL), XFP_OK);
	assert_int_equal(again.assigned_count, 3);
	assert_non_null(other = xfp_parameters_to_json(&again));
	assert_string_equal(text, other);
	xfp_parameters_free(&again);
	assert_int_equal(xfp_parameters_from_json(text, "x", 2, &again, NULL), XFP_BAD_INPUT);
	free(text);
	free(other);
	xfp_parameters_free(&p);
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void test_file(void **state)
{
	const char *work = *state;
	struct xfp_parameters p = xfp_parameters_default(), read = { 0 };
	char *path = xfp_path(work, XFP_ASSIGNED_FILE), *text;
	struct xfp_assignment one;
	struct xfp_error err;
	size_t size;
	bool found;

	assert_int_equal(xfp_assigned_read(work, 0, &one, &found, NULL), XFP_OK);
	assert_false(found);
	assert_true(xfp_assignments_parse("v2-3@4.0 - v2c-32-4", 7, &p.assigned, &p.assigned_count));
	p.assigned[0].bits = 0xc;
	assert_int_equal(xfp_assigned_write(work, &p, NULL), XFP_OK);
	assert_int_equal(xfp_assigned_read(work, 0, &one, &found, NULL), XFP_OK);
	assert_true(found && one.k == 3 && one.sigma_milli == 4000 && one.bits == 0xc);
	assert_int_equal(xfp_assigned_read(work, 1, &one, &found, NULL), XFP_OK);
	assert_true(found && !xfp_is_assigned(&one));
	assert_int_equal(xfp_assigned_read(work, 3, &one, &found, NULL), XFP_DAMAGED);
	assert_int_equal(xfp_assigned_read_all(work, 3, &read, NULL), XFP_OK);
	assert_int_equal(read.assigned_count, 3);
	xfp_parameters_free(&read);
	assert_int_equal(xfp_assigned_read_all(work, 2, &read, NULL), XFP_DAMAGED);
	assert_int_equal(xfp_assigned_read_all(work, 4, &read, NULL), XFP_DAMAGED);
	/* A change of any byte is noticed by its unit. */
	assert_int_equal(xfp_slurp(path, 1 << 20, &text, &size, NULL), XFP_OK);
	assert_int_equal(size, 240);
	for (size_t i = 0; i < size; i++) {
		text[i] ^= 1;
		assert_int_equal(xfp_write_file(path, text, size, false, NULL), XFP_OK);
		assert_int_equal(xfp_assigned_read(work, (uint32_t)(i / 80), &one, &found, &err), XFP_DAMAGED);
		assert_int_equal(xfp_assigned_read_all(work, 3, &read, NULL), XFP_DAMAGED);
		text[i] ^= 1;
	}
	/* So is a record in the place of another. */
	memcpy(text + 160, text, 80);
	assert_int_equal(xfp_write_file(path, text, size, false, NULL), XFP_OK);
	assert_int_equal(xfp_assigned_read(work, 2, &one, &found, NULL), XFP_DAMAGED);
	free(text);
	/* Without a goal the file is removed. */
	xfp_parameters_free(&p);
	assert_int_equal(xfp_assigned_write(work, &p, NULL), XFP_OK);
	assert_int_equal(xfp_assigned_read(work, 0, &one, &found, NULL), XFP_OK);
	assert_false(found);
	free(path);
}

/* A file that cannot be read or written is a failure, neither damage nor a missing goal. */
static void test_no_file(void **state)
{
	struct xfp_parameters p = xfp_parameters_default(), read = { 0 };
	char *file = scratch_path(state, "file");
	struct xfp_assignment one;
	bool found;

	scratch_mkdir(state, XFP_ASSIGNED_FILE);
	scratch_write(state, "file", "", 0);
	assert_int_equal(xfp_assigned_read(*state, 0, &one, &found, NULL), XFP_FAILED);
	assert_false(found);
	assert_int_equal(xfp_assigned_read(file, 0, &one, &found, NULL), XFP_FAILED);
	assert_int_equal(xfp_assigned_read_all(*state, 1, &read, NULL), XFP_FAILED);
	assert_true(xfp_assignments_parse("v2-3", 7, &p.assigned, &p.assigned_count));
	assert_int_equal(xfp_assigned_write(*state, &p, NULL), XFP_FAILED);
	assert_int_equal(xfp_assigned_write(file, &p, NULL), XFP_FAILED);
	xfp_parameters_free(&p);
	free(file);
}

/* ---- its effect on a unit ----------------------------------------------------------------------- */

static const struct xfp_ledger_unit unit = { .name = "x",
					     .role = "down",
					     .class_ = XFP_CLASS_ATTENTION,
					     .dtype = XFP_BF16,
					     .experts = 1,
					     .rows = 64,
					     .cols = 64 };

static void test_narrow(void **unused)
{
	static const struct xfp_candidate measured[] = {
		{ .mode = XFP_MODE_V2C, .k = 3, .group = 32, .library = 8, .bytes = 900, .cos_median = 0.9 },
		{ .mode = XFP_MODE_V2C, .k = 4, .group = 32, .library = 8, .bytes = 1100, .cos_median = 0.95 },
	};
	struct xfp_parameters all = xfp_parameters_default(), p;
	struct xfp_policy policy = xfp_policy_of_unit(&all, &unit);
	const struct xfp_variant variant = {
		.mode = XFP_MODE_V2C, .k = 4, .group = 32, .library = 8, .sigma_milli = 3000
	};
	struct xfp_assignment assignment = xfp_variant_assignment(&variant, &policy);
	struct xfp_select_input input = { .unit = &unit, .parameters = &p, .policy = &policy, .outliers = "o" };
	struct xfp_choice choice;

	(void)unused;
	assert_int_equal(assignment.bits, 1u << 3 | 1u << 4); /* the next smaller too */
	p = xfp_policy_parameters(&all, &policy);
	policy.fixed = true; /* as for bits given explicitly; the choice is made among the measured candidates */
	xfp_assignment_narrow(&assignment, &policy, &p);
	assert_int_equal(p.modes, 1u << XFP_MODE_V2C);
	assert_int_equal(p.bits, 1u << 3 | 1u << 4);
	assert_int_equal(p.group_size, 32);
	assert_int_equal(p.outlier_sigma, 3000);
	assert_false(policy.fixed);
	/* The unit is stored as assigned, although neither candidate meets the floor and fewer bits are measured. */
	input.fits[XFP_FIT_LIBRARY] = (struct xfp_fit_set){ "l", measured, 2, NULL };
	assert_int_equal(xfp_select(&input, &choice, NULL), XFP_OK);
	assert_int_equal(choice.candidate.k, 4);
	assert_false(choice.met);
	assert_false(choice.fixed);
	policy.floor = 900000000;
	assert_int_equal(xfp_select(&input, &choice, NULL), XFP_OK);
	assert_true(choice.met && choice.candidate.k == 4);
}

static void test_offers(void **unused)
{
	const struct xfp_candidate list[] = {
		{ .mode = XFP_MODE_V2, .k = 2, .bytes = 1600, .cos_median = 0.93, .error = 0.1 },
		{ .mode = XFP_MODE_V2, .k = 3, .bytes = 3136, .cos_median = 0.98, .error = 0.03 },
		{ .mode = XFP_MODE_V2, .k = 3, .bytes = 3184, .cos_median = 0.985, .error = 0.02, .sigma_milli = 4000 },
		{ .mode = XFP_MODE_V2, .k = 4, .bytes = 8192, .cos_median = 1, .error = 0 },         /* not smaller */
		{ .mode = XFP_MODE_V2, .k = 4, .bytes = 4160, .cos_median = -1, .error = 1 },        /* not finite */
		{ .mode = XFP_MODE_V2, .k = 5, .bytes = 5000, .cos_median = 0.999, .error = 0.001 }, /* not allowed */
	};
	struct xfp_parameters p = xfp_parameters_default();
	struct xfp_policy policy;
	struct xfp_variant variants[6];
	uint64_t parts[XFP_PARTS];

	(void)unused;
	p.bits = 0x1c;
	p.floor[XFP_CLASS_ATTENTION] = 0;
	policy = xfp_policy_of_unit(&p, &unit);
	assert_int_equal(xfp_list_variants(list, 6, &unit, &policy, XFP_SIGMA_AUTO, variants), 3);
	assert_true(variants[0].exact && !variants[2].exact);
	assert_true(xfp_survey_balanced(&unit, list, 6, false));
	xfp_variant_parts(&unit, &variants[2], true, parts);
	assert_int_equal(parts[XFP_PART_BALANCE], 64);
	assert_int_equal(parts[XFP_PART_OUTLIER], 48);
	p.floor[XFP_CLASS_ATTENTION] = 980000000; /* with a margin, since a sample may be favorable */
	policy = xfp_policy_of_unit(&p, &unit);
	assert_int_equal(xfp_list_variants(list, 6, &unit, &policy, XFP_SIGMA_AUTO, variants), 1);
	assert_int_equal(variants[0].sigma_milli, 4000);
	p.floor[XFP_CLASS_ATTENTION] = 0; /* with a requested threshold, no others */
	policy = xfp_policy_of_unit(&p, &unit);
	assert_int_equal(xfp_list_variants(list, 6, &unit, &policy, 4000, variants), 1);
	assert_int_equal(variants[0].sigma_milli, 4000);
	assert_int_equal(xfp_list_variants(list, 6, &unit, &policy, 0, variants), 2);
}

/* fp8 has no outliers, whatever the requested threshold, and nothing else is measured. */
static void test_fp8_is_offered(void **unused)
{
	const struct xfp_candidate fp8 = { .mode = XFP_MODE_FP8, .k = 8, .bytes = 4352, .cos_median = 0.9996 };
	struct xfp_parameters p = xfp_parameters_default();
	struct xfp_policy policy;
	struct xfp_variant variant;
	struct xfp_assignment assignment;

	(void)unused;
	p.bits = 0x17c;
	policy = xfp_policy_of_unit(&p, &unit);
	policy.floor = 0;
	assert_int_equal(xfp_list_variants(&fp8, 1, &unit, &policy, 4000, &variant), 1);
	assignment = xfp_variant_assignment(&variant, &policy);
	assert_int_equal(assignment.mode, XFP_MODE_FP8);
	assert_int_equal(assignment.bits, XFP_FP8_BIT);
	xfp_assignment_narrow(&assignment, &policy, &p);
	assert_int_equal(p.bits, XFP_FP8_BIT);
	assert_int_equal(p.modes, 1u << XFP_MODE_V2);
	strcpy(p.calibration.sha256, "0");
	xfp_assignment_narrow(&assignment, &policy, &p);
	assert_int_equal(p.modes, 1u << XFP_MODE_V2C); /* whose fit measures outputs */
}

/* A candidate without outliers shows whether there is a part BALANCE; one with outliers does not. */
static void test_balance_of_a_survey(void **unused)
{
	struct xfp_candidate list[] = {
		{ .mode = XFP_MODE_V2, .k = 3, .bytes = 3136, .cos_median = .98, .sigma_milli = 4000 },
		{ .mode = XFP_MODE_V2, .k = 3, .bytes = 3136, .cos_median = .98 },
	};
	const struct xfp_variant variant = { .mode = XFP_MODE_V2, .k = 3, .bytes = 3136 * 4 };
	struct xfp_ledger_unit stack = unit;
	uint64_t parts[XFP_PARTS], sum = 0;

	(void)unused;
	assert_true(xfp_survey_balanced(&unit, list, 2, false));
	list[1].bytes -= 64;
	assert_false(xfp_survey_balanced(&unit, list, 2, true));
	assert_true(xfp_survey_balanced(&unit, list, 1, true));
	assert_false(xfp_survey_balanced(&unit, list, 1, false));
	/* For a stack, all parts per matrix multiply, and no bytes are left for outliers. */
	stack.experts = 4;
	xfp_variant_parts(&stack, &variant, true, parts);
	for (int i = 0; i < XFP_PARTS; i++)
		sum += parts[i];
	assert_int_equal(parts[XFP_PART_INDEX], 4 * 64 * 32);
	assert_true(sum >= variant.bytes);
}

static void test_thresholds(void **unused)
{
	struct xfp_parameters p = xfp_parameters_default();
	struct xfp_thresholds t;

	(void)unused;
	p.outlier_sigma = 3300; /* and none, which shows the size of a unit without outliers */
	t = xfp_survey_thresholds(&p);
	assert_true(t.count == 2 && t.sigma_milli[0] == 0 && t.sigma_milli[1] == 3300);
	p.outlier_sigma = 0;
	t = xfp_survey_thresholds(&p);
	assert_true(t.count == 1 && t.sigma_milli[0] == 0);
	p.outlier_sigma = XFP_SIGMA_AUTO;
	assert_true(xfp_survey_thresholds(&p).count > 2);
}

/* ---- GPUs -------------------------------------------------------------------------------------- */

static void test_gpus(void **unused)
{
	const uint64_t parts[XFP_PARTS] = { [XFP_PART_INDEX] = 1000,
					    [XFP_PART_CODE] = 80,
					    [XFP_PART_GROUP] = 100,
					    [XFP_PART_BALANCE] = 64,
					    [XFP_PART_OUTLIER] = 40 };
	struct xfp_ledger_unit u = unit;

	(void)unused;
	assert_int_equal(xfp_gpu_split_of(&u), XFP_GPU_SPLIT_COLUMNS);
	/* Codebooks of rows are on every GPU, all else halved; so is a library. */
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2, parts, 2), 500 + 80 + 50 + 32 + 20);
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2C, parts, 2), 500 + 80 + 50 + 32 + 20);
	u.role = (char *)"gate";
	assert_int_equal(xfp_gpu_split_of(&u), XFP_GPU_SPLIT_ROWS);
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2, parts, 2), 500 + 40 + 50 + 64 + 20);
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2C, parts, 2), 500 + 80 + 50 + 64 + 20);
	/* 64 rows on 3 GPUs: the fullest has 22. */
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2, (const uint64_t[XFP_PARTS]){ [XFP_PART_INDEX] = 6400 }, 3),
			 2200);
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2, parts, 1), 1284);
	u.role = (char *)"in_proj_qkvz";
	assert_int_equal(xfp_gpu_split_of(&u), XFP_GPU_SPLIT_ROWS);
	u.role = (char *)"kv_a";
	assert_int_equal(xfp_gpu_split_of(&u), XFP_GPU_SPLIT_NONE);
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2, parts, 2), 1284);
	u.class_ = XFP_CLASS_ROUTED_EXPERT;
	u.experts = 8;
	assert_int_equal(xfp_gpu_split_of(&u), XFP_GPU_SPLIT_EXPERTS);
	assert_int_equal(xfp_gpu_max_split(&u), 8);
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2C, parts, 4), 250 + 80 + 25 + 64 + 10);
	/* An odd byte is rounded up, and a single expert is not split. */
	assert_int_equal(xfp_gpu_unit(&u, XFP_MODE_V2, (const uint64_t[XFP_PARTS]){ [XFP_PART_INDEX] = 1001 }, 4), 251);
	u.experts = 1;
	assert_int_equal(xfp_gpu_split_of(&u), XFP_GPU_SPLIT_NONE);
}

/* Tensors that are not units: embeddings and heads are split by rows, all others are on every GPU. */
static void test_kept_on_gpus(void **unused)
{
	struct xfp_ledger_tensor tensors[] = {
		{ .fate = XFP_FATE_KEPT, .class_ = XFP_CLASS_EMBEDDING, .rank = 2, .shape = { 10, 8 }, .bytes = 160 },
		{ .fate = XFP_FATE_KEPT, .class_ = XFP_CLASS_NORM, .rank = 1, .shape = { 8 }, .bytes = 16 },
		{ .fate = XFP_FATE_KEPT, .class_ = XFP_CLASS_ATTENTION, .rank = 2, .shape = { 8, 8 }, .bytes = 128 },
		{ .fate = XFP_FATE_QUANTIZED,
		  .class_ = XFP_CLASS_ATTENTION,
		  .rank = 2,
		  .shape = { 8, 8 },
		  .bytes = 128 },
		{ .fate = XFP_FATE_TIED, .class_ = XFP_CLASS_LM_HEAD, .rank = 2, .shape = { 10, 8 }, .bytes = 160 },
	};
	struct xfp_ledger_matrix matrix = { .tensor = 2 }; /* a unit that is kept: its parts count */
	const struct xfp_ledger ledger = {
		.tensors = tensors, .tensor_count = 5, .matrices = &matrix, .matrix_count = 1
	};

	(void)unused;
	assert_int_equal(xfp_gpu_kept(&ledger, 1), 160 + 16);
	assert_int_equal(xfp_gpu_kept(&ledger, 4), 3 * 16 + 16);
}

PROGRAM("test_goal")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_parameters),
		scratch_test(test_file),
		scratch_test(test_no_file),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_offers),
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_fp8_is_offered),
		cmocka_unit_test(test_balance_of_a_survey),
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_kept_on_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
