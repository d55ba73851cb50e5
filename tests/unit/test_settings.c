/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings by name, their layers, and profiles.
 */
#include <stdlib.h>
#include <string.h>

#include "stages/settings/profile.h"
#include "stages/settings/settings.h"
#include "tests/unit/round_floors.h"
#include "tests/unit/scratch.h"

static void give(struct xfp_settings *s, const char *name, const char *value)
{
	struct xfp_error err;

	if (xfp_setting_set(s, xfp_setting_find(name), name, value, &err))
		fail_msg("%s", err.text);
}

static void finish(struct xfp_settings *s)
{
	struct xfp_error err;

	if (xfp_settings_finish(s, &err))
		fail_msg("%s", err.text);
}

static void begin(struct xfp_settings *s)
{
	*s = (struct xfp_settings){ .parameters = round_floors() };
}

/* Within a layer a named class has precedence, in any order; a later layer overrides it. */
static void layers(void **state)
{
	struct xfp_settings s;

	(void)state;
	begin(&s);
	give(&s, "floor", "attention=0.5,norm=0.6");
	give(&s, "min-cos-strict", "0.7");
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 990000000); /* not before it is finished */
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 500000000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_NORM], 600000000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_DENSE_MLP], 700000000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ROUTED_EXPERT], 980000000);
	give(&s, "min-cos-strict", "0.8");
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 800000000);
	give(&s, "min-cos-lazy", "0.9");
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 800000000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ROUTED_EXPERT], 900000000);
}

/* Commas separate both classes and bits. */
static void lists(void **state)
{
	struct xfp_settings s;

	(void)state;
	begin(&s);
	give(&s, "format", "attention=3,4,router=fp8,mtp=2,dense_mlp=2-4");
	assert_int_equal(s.parameters.format[XFP_CLASS_ATTENTION].bits, 0x18);
	assert_int_equal(s.parameters.format[XFP_CLASS_ROUTER].form, XFP_FORM_FP8);
	assert_int_equal(s.parameters.format[XFP_CLASS_MTP].bits, 0x04);
	assert_int_equal(s.parameters.format[XFP_CLASS_DENSE_MLP].bits, 0x1c);
	give(&s, "format", "attention=auto");
	assert_int_equal(s.parameters.format[XFP_CLASS_ATTENTION].form, XFP_FORM_AUTO);
	give(&s, "override", "  a=4 b=keep\n");
	give(&s, "override", "c=floor:0.5");
	assert_int_equal(s.parameters.override_count, 3);
	assert_string_equal(s.parameters.overrides[1].pattern, "b");
	assert_string_equal(s.parameters.overrides[2].pattern, "c");
	/* --lm-head and --format lm_head= are the same: the last one applies */
	give(&s, "format", "lm_head=4");
	give(&s, "lm-head", "keep");
	assert_int_equal(s.parameters.lm_head, XFP_LM_HEAD_KEEP);
	assert_int_equal(s.parameters.format[XFP_CLASS_LM_HEAD].form, XFP_FORM_AUTO);
	xfp_parameters_free(&s.parameters);
}

static void wrong(void **state)
{
	static const struct {
		const char *name, *value, *says;
	} cases[] = {
		{ "format", "attention", "expected CLASS=" },
		{ "format", "attention=9", "here 'attention=9': expected keep, fp8" },
		{ "format", "attention=3,router", "here 'attention=3,router': expected" },
		{ "format", "experts=4", "no class 'experts'" },
		{ "floor", "attention=3,4", "here 'attention=3,4': expected a cosine" },
		{ "override", "a", "here 'a': expected PATTERN=" },
		{ "override", " ", "here: is empty" },
		{ "moe-sample", "some", "here 'some': expected a number of experts" },
		{ "lloyd-iters", "0", "rounds from 1 to 1000" },
		{ "lloyd-iters", "1001", "rounds from 1 to 1000" },
		{ "lloyd-iters", "2.", "rounds from 1 to 1000" },
		{ "moe-lloyd-iters", "0", "rounds from 1 to 1000" },
		{ "group-size", "24", "here '24': expected columns: a power of two from 16 to 1024" },
		{ "library-size", "512", "here '512': expected codebooks: a power of two from 1 to 256" },
		{ "lm-head", "x", "here 'x': expected fp8, keep or quant" },
		{ "outlier-sigma", "0", "here '0': expected a positive number" },
		{ "min-cos-strict", "1.1", "here '1.1': expected a cosine" },
		{ "min-cos-lazy", "1.1", "here '1.1': expected a cosine" },
		{ "floor", "attention=1.1", "here 'attention=1.1': expected a cosine" },
	};
	struct xfp_settings s, unchanged;
	struct xfp_error err;

	(void)state;
	begin(&s);
	give(&s, "floor", "attention=0.5");
	memcpy(&unchanged, &s, sizeof s);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(xfp_setting_set(&s, xfp_setting_find(cases[i].name), "here", cases[i].value, &err),
				 XFP_USAGE);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
		if (!strchr(cases[i].value, ',') && memcmp(&s, &unchanged, sizeof s)) /* lists are stored in part */
			fail_msg("--%s %s is stored", cases[i].name, cases[i].value);
	}
	assert_int_equal(xfp_setting_find("jobs"), -1);
	assert_int_equal(xfp_setting_find(""), -1);
}

/* A floor for a class without one. */
static void idle_floors(void **state)
{
	struct xfp_settings s;
	struct xfp_error err;

	(void)state;
	begin(&s);
	give(&s, "floor", "lm_head=0.9");
	give(&s, "lm-head", "fp8");
	assert_int_equal(xfp_settings_finish(&s, &err), XFP_USAGE);
	begin(&s);
	give(&s, "floor", "lm_head=0.9");
	finish(&s);
	give(&s, "format", "embedding=fp8");
	give(&s, "floor", "embedding=0.9");
	assert_int_equal(xfp_settings_finish(&s, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "--floor embedding contradicts --format embedding=fp8"));
}

/* The floors of embeddings and heads are stricter than others', and a general floor only raises them. */
static void stricter_floors(void **state)
{
	struct xfp_settings s;

	(void)state;
	begin(&s);
	give(&s, "min-cos-strict", "0.95");
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 950000000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_EMBEDDING], 999000000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_LM_HEAD], 999000000);
	give(&s, "min-cos-strict", "0.9995");
	give(&s, "floor", "lm_head=0.9");
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_EMBEDDING], 999500000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_LM_HEAD], 900000000);
	/* A layer without a setting does not reset it. */
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_LM_HEAD], 900000000);
	/* For a bundle from before embeddings had a floor of their own. */
	begin(&s);
	s.parameters.keep_embeddings = true;
	give(&s, "min-cos-strict", "0.95");
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_EMBEDDING], 950000000);
}

/* Default bits of modes: fp8 is one candidate of auto. */
static void usual_bits(void **state)
{
	static const struct {
		const char *mode, *bits;
		uint32_t want;
	} cases[] = {
		{ "auto", NULL, 0x17c }, { "v2c", NULL, 0x7c },  { "auto", "2-6", 0x7c },
		{ "v2", "4,8", 0x110 },  { "auto", "8", 0x100 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_settings s;

		begin(&s);
		give(&s, "mode", cases[i].mode);
		if (cases[i].bits)
			give(&s, "bits", cases[i].bits);
		finish(&s);
		assert_int_equal(s.parameters.bits, cases[i].want);
	}
}

/* ---- profiles ---------------------------------------------------------------------------------- */

static void profile(void **state)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "bits = 2,3,4\r\n"
				   "\tmin-cos-strict=0.96   \n"
				   "  # another\n"
				   "override = role:o=5 *.k_proj.weight=keep\n"
				   "floor = attention=0.97";
	struct xfp_settings s;
	struct xfp_error err;

	(void)state;
	begin(&s);
	if (xfp_profile_parse(text, "x.profile", &s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s.parameters.bits, 0x1c);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 970000000);
	assert_int_equal(s.parameters.floor[XFP_CLASS_OTHER], 960000000);
	assert_int_equal(s.parameters.override_count, 2);
	/* later layers have precedence */
	give(&s, "min-cos-strict", "0.5");
	finish(&s);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 500000000);
	xfp_parameters_free(&s.parameters);
}

static void put(void **state, const char *name, const char *text)
{
	scratch_write(state, name, text, strlen(text));
}

/* The settings of a base profile are a layer below: its floors of classes are overridden by a general floor. */
static void based_profile(void **state)
{
	struct xfp_settings s;
	struct xfp_error err;
	char *own = scratch_path(state, "own.profile"), *loop = scratch_path(state, "loop.profile"), *text;

	put(state, "base.profile", "bits = 2,3\nfloor = attention=0.97\nlloyd-iters = 7\n");
	put(state, "own.profile", "# mine\nprofile = base.profile\nmin-cos-strict = 0.9\nmoe-lloyd-iters = 3\n");
	begin(&s);
	if (xfp_profile_read(own, &s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s.parameters.bits, 0x0c);
	assert_int_equal(s.parameters.lloyd_iterations, 7);
	assert_int_equal(s.parameters.moe_lloyd_iterations, 3);
	assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], 900000000);
	put(state, "base.profile", "bits = 2\nbitz = 3\n");
	assert_int_equal(xfp_profile_read(own, &s, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "own.profile:2: "));
	assert_non_null(strstr(err.text, "base.profile:2: unknown setting 'bitz'; did you mean bits or fit?"));
	/* a chain of base profiles, the last one by its full path */
	put(state, "base.profile", "bits = 2\n");
	text = xfp_formatted("profile = %s/base.profile\nlloyd-iters = 5\n", (const char *)*state);
	assert_non_null(text);
	put(state, "middle.profile", text);
	free(text);
	put(state, "own.profile", "profile = middle.profile\n");
	begin(&s);
	if (xfp_profile_read(own, &s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s.parameters.bits, 0x04);
	assert_int_equal(s.parameters.lloyd_iterations, 5);
	put(state, "loop.profile", "profile = ./loop.profile\n");
	assert_int_equal(xfp_profile_read(loop, &s, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "check whether one is based on itself"));
	free(own);
	free(loop);
}

/* Floors for calibrated units are a layer of their own, above the other floors of the file. */
static void calibrated_profile(void **state)
{
	struct xfp_settings s;
	struct xfp_error err;
	char *own = scratch_path(state, "own.profile");

	put(state, "base.profile",
	    "calibrated min-cos-lazy = 0.91\nfloor = attention=0.97,embedding=0.999\n"
	    "calibrated  min-cos-strict = 0.92\n"
	    "min-cos-lazy = 0.99\ncalibrated floor = lm_head=0.93\n");
	put(state, "own.profile", "profile = base.profile\nfloor = dense_mlp=0.98\n");
	for (int calibrated = 0; calibrated < 2; calibrated++) {
		begin(&s);
		s.calibrated = calibrated;
		if (xfp_profile_read(own, &s, &err))
			fail_msg("%s", err.text);
		assert_int_equal(s.parameters.floor[XFP_CLASS_ROUTED_EXPERT], calibrated ? 910000000 : 990000000);
		assert_int_equal(s.parameters.floor[XFP_CLASS_ATTENTION], calibrated ? 920000000 : 970000000);
		assert_int_equal(s.parameters.floor[XFP_CLASS_LM_HEAD], calibrated ? 930000000 : 999000000);
		assert_int_equal(s.parameters.floor[XFP_CLASS_EMBEDDING], 999000000); /* can only be raised */
		assert_int_equal(s.parameters.floor[XFP_CLASS_DENSE_MLP], 980000000);
	}
	free(own);
}

static void bad_profiles(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "bits = 2\nbit = 3\n", "x.profile:2: unknown setting 'bit'" },
		{ "\n\nbits\n", "x.profile:3: expected option = value" },
		{ "bits = 2 # the least\n", "x.profile:1: bits '2 # the least': expected bits" },
		{ "jobs = 4\n", "x.profile:1: unknown setting 'jobs'" },
		{ "--bits = 4\n", "x.profile:1: unknown setting '--bits'" },
		{ "# x\nformat = attention=9\n", "x.profile:2: format 'attention=9': expected keep" },
		{ "override = x\n", "x.profile:1: override 'x': expected PATTERN=" },
		{ "floor = lm_head=0.9\nlm-head = keep\n", "x.profile: --floor lm_head requires" },
		{ "bits = 2\nprofile = small\n", "x.profile:2: profile: must be the first setting" },
		{ "calibrated bits = 2\n", "x.profile:1: calibrated bits: only floors and on-miss are different" },
		{ "calibrated min-cos-lazy = 2\n", "x.profile:1: min-cos-lazy '2': expected a cosine" },
		{ "calibrated profile = small\n", "x.profile:1: unknown setting 'profile'" },
		{ "calibrated = 1\n", "x.profile:1: unknown setting 'calibrated'" },
		{ "profile = nothing.profile\n", "x.profile:1: profile nothing.profile: no such file" },
	};
	struct xfp_settings s;
	struct xfp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(&s);
		assert_int_equal(xfp_profile_parse(cases[i].text, "x.profile", &s, &err), XFP_USAGE);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
	}
}

PROGRAM("test_settings")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers),         cmocka_unit_test(lists),           cmocka_unit_test(wrong),
		cmocka_unit_test(idle_floors),    cmocka_unit_test(profile),         scratch_test(based_profile),
		cmocka_unit_test(bad_profiles),   cmocka_unit_test(stricter_floors), cmocka_unit_test(usual_bits),
		scratch_test(calibrated_profile),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
