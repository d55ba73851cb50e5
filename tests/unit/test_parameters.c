/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/setting.h"
#include "tests/unit/round_floors.h"
#include "tests/unit/unit.h"

static void decimals(void **state)
{
	static const struct {
		const char *text;
		uint32_t scale, value;
	} good[] = {
		{ "0.985", XFP_NANO, 985000000 },
		{ "1", XFP_NANO, XFP_NANO },
		{ "1.0", XFP_NANO, XFP_NANO },
		{ "0", XFP_NANO, 0 },
		{ "0.000000001", XFP_NANO, 1 },
		{ ".5", XFP_NANO, 500000000 },
		{ "4.294967295", XFP_NANO, UINT32_MAX },
		{ "4", 1000, 4000 },
		{ "3.125", 1000, 3125 },
		{ "007.50", 1000, 7500 },
		{ "4294967.295", 1000, UINT32_MAX },
		{ "12", 1, 12 },
	};
	static const char *const bad[] = {
		"",
		".",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1e-3",
		"1,5",
		"0x1",
		"nan",
		"inf",
		"1..2",
		"1.2.3",
		"0.0000000001",
		"4.294967296",
		"5",
		"99999999999999999999",
		"0.1234567890",
	};
	uint32_t value;
	char buf[24];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (!xfp_decimal_parse(good[i].text, good[i].scale, &value))
			fail_msg("%s is refused", good[i].text);
		assert_int_equal(value, good[i].value);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		value = 7;
		if (xfp_decimal_parse(bad[i], XFP_NANO, &value) || value != 7)
			fail_msg("%s is taken", bad[i]);
	}
	assert_false(xfp_decimal_parse("3.1254", 1000, &value));
	assert_false(xfp_decimal_parse("1.0", 1, &value));
	assert_string_equal(xfp_decimal_format(985000000, XFP_NANO, buf), "0.985");
	assert_string_equal(xfp_decimal_format(XFP_NANO, XFP_NANO, buf), "1.0");
	assert_string_equal(xfp_decimal_format(0, XFP_NANO, buf), "0.0");
	assert_string_equal(xfp_decimal_format(1, XFP_NANO, buf), "0.000000001");
	assert_string_equal(xfp_decimal_format(UINT32_MAX, XFP_NANO, buf), "4.294967295");
	assert_string_equal(xfp_decimal_format(4000, 1000, buf), "4.0");
	assert_string_equal(xfp_decimal_format(4050, 1000, buf), "4.05");
	assert_string_equal(xfp_decimal_format(12, 1, buf), "12.0");
}

/* Every value has a unique text that parses to it. */
static void decimals_round_trip(void **state)
{
	uint64_t random = 1;
	char buf[24];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint32_t scale = i & 1 ? XFP_NANO : 1000, value = (uint32_t)test_random(&random), back;

		if (i & 2)
			value %= 2000;
		assert_true(xfp_decimal_parse(xfp_decimal_format(value, scale, buf), scale, &back));
		assert_int_equal(value, back);
	}
}

static void bit_sets(void **state)
{
	static const struct {
		const char *text;
		uint32_t bits;
	} good[] = {
		{ "2,3,4", 0x1c }, { "2-6", 0x7c }, { "6", 0x40 },      { "5,2", 0x24 },  { "2,4-6", 0x74 },
		{ "3-3", 0x08 },   { "8", 0x100 },  { "2-6,8", 0x17c }, { "8,4", 0x110 },
	};
	static const char *const bad[] = { "",    "1",    "7",  "2,", ",2",    "2-",  "4-3", "2-7",
					   "2 3", "2,,3", "23", "x",  "2-3-4", "2-8", "8-8", "9" };
	uint32_t bits;
	char buf[24];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (!xfp_bits_parse(good[i].text, &bits))
			fail_msg("%s is refused", good[i].text);
		assert_int_equal(bits, good[i].bits);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (xfp_bits_parse(bad[i], &bits))
			fail_msg("%s is taken", bad[i]);
	assert_string_equal(xfp_bits_format(0x7c, buf), "2,3,4,5,6");
	assert_string_equal(xfp_bits_format(0x48, buf), "3,6");
	assert_string_equal(xfp_bits_format(0x17c, buf), "2,3,4,5,6,8");
	assert_string_equal(xfp_bits_format(0, buf), "");
}

static void base_and_extended(void **state)
{
	static const struct {
		uint32_t bits, base, extended;
	} sets[] = {
		{ 0x7c, 0x1c, 0x60 },   { 0x1c, 0x1c, 0 },   { 0x60, 0x60, 0 },
		{ 0x24, 0x04, 0x20 },   { 0x40, 0x40, 0 },   { 0x17c, 0x1c, 0x160 },
		{ 0x160, 0x60, 0x100 }, { 0x100, 0x100, 0 }, { 0x124, 0x04, 0x120 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		struct xfp_parameters p = { .bits = sets[i].bits };

		assert_int_equal(xfp_parameters_base_bits(&p), sets[i].base);
		assert_int_equal(xfp_parameters_extended_bits(&p), sets[i].extended);
	}
}

static void defaults(void **state)
{
	struct xfp_parameters p = xfp_parameters_default();

	(void)state;
	assert_int_equal(p.modes, XFP_AUTO_MODES);
	assert_int_equal(p.bits, 0x17c);
	assert_int_equal(p.lm_head, XFP_LM_HEAD_QUANT);
	assert_false(p.keep_embeddings);
	assert_int_equal(p.floor[XFP_CLASS_ATTENTION], 999500000);
	assert_int_equal(p.floor[XFP_CLASS_LINEAR_ATTENTION], 999500000);
	assert_int_equal(p.floor[XFP_CLASS_EMBEDDING], 999000000);
	assert_int_equal(p.floor[XFP_CLASS_LM_HEAD], 999500000);
	assert_int_equal(p.floor[XFP_CLASS_OTHER], 998000000);
	assert_int_equal(p.floor[XFP_CLASS_ROUTED_EXPERT], 995000000);
	assert_int_equal(p.outlier_sigma, XFP_SIGMA_AUTO);
	assert_int_equal(p.outlier_cap, 62500000);
	assert_int_equal(p.balance, 500000000);
	assert_int_equal(p.lloyd_iterations, 20);
}

/* The defaults if neither threshold nor cap is given. */
static void usual_thresholds(void **state)
{
	(void)state;
	assert_int_equal(xfp_default_sigma(XFP_AUTO_MODES), XFP_SIGMA_AUTO);
	for (int mode = XFP_MODE_V2; mode < XFP_MODES; mode++)
		assert_int_equal(xfp_default_sigma(1u << mode), 4000);
	assert_int_equal(xfp_default_cap(XFP_SIGMA_AUTO), 62500000);
	assert_int_equal(xfp_default_cap(4000), 20000000);
	assert_int_equal(xfp_default_cap(0), 20000000);
}

static void thresholds(void **state)
{
	static const struct {
		const char *text, *shown;
		uint32_t sigma;
	} good[] = {
		{ "auto", "auto", XFP_SIGMA_AUTO },
		{ "none", "0.0", 0 },
		{ "0.0", "0.0", 0 },
		{ "4", "4.0", 4000 },
		{ "2.75", "2.75", 2750 },
		{ "4294967.294", "4294967.294", 4294967294 },
	};
	static const char *const bad[] = { "", "Auto", "automatic", "-1", "4 sigma", "4.0001", "4294967.295" };
	uint32_t sigma;
	char buf[24];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(xfp_sigma_parse(good[i].text, &sigma));
		assert_int_equal(sigma, good[i].sigma);
		assert_string_equal(xfp_sigma_text(sigma, buf), good[i].shown);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (xfp_sigma_parse(bad[i], &sigma))
			fail_msg("%s is taken", bad[i]);
}

/* The values that settings allow, and their texts. */
static void values(void **state)
{
	static const struct {
		enum xfp_setting_number setting;
		const char *text, *shown;
		uint32_t value;
	} good[] = {
		{ XFP_SETTING_START, "quantile", "quantile", XFP_START_QUANTILE },
		{ XFP_SETTING_ON_MISS, "fail", "fail", XFP_MISS_FAIL },
		{ XFP_SETTING_ON_NONFINITE, "keep", "keep", XFP_NONFINITE_KEEP },
		{ XFP_SETTING_LM_HEAD, "quant", "quant", XFP_LM_HEAD_QUANT },
		{ XFP_SETTING_FIT, "optimal", "optimal", XFP_FIT_OPTIMAL },
		{ XFP_SETTING_LIBFIT, "published", "published", XFP_LIBFIT_PUBLISHED },
		{ XFP_SETTING_BALANCE, "1", "1.0", XFP_NANO },
		{ XFP_SETTING_ITERATIONS, "1000", "1000", 1000 },
		{ XFP_SETTING_GROUP, "1024", "1024", 1024 },
		{ XFP_SETTING_LIBRARY, "1", "1", 1 },
		{ XFP_SETTING_MODE, "v2c", "v2c", 1u << XFP_MODE_V2C },
		{ XFP_SETTING_BITS, "2-4", "2,3,4", 0x1c },
		{ XFP_SETTING_SIGMA, "4", "4.0", 4000 },
	};
	static const struct {
		enum xfp_setting_number setting;
		const char *text;
	} bad[] = {
		{ XFP_SETTING_START, "Quantile" },    { XFP_SETTING_START, "" },
		{ XFP_SETTING_BALANCE, "1.1" },       { XFP_SETTING_ITERATIONS, "0" },
		{ XFP_SETTING_ITERATIONS, "2." },     { XFP_SETTING_ITERATIONS, "1001" },
		{ XFP_SETTING_GROUP, "24" },          { XFP_SETTING_GROUP, "8" },
		{ XFP_SETTING_GROUP, "2048" },        { XFP_SETTING_LIBRARY, "0" },
		{ XFP_SETTING_LIBRARY, "512" },       { XFP_SETTING_MODE, "keep" },
		{ XFP_SETTING_FLOOR, "attention=1" }, { XFP_SETTING_STRICT, "0.9" },
		{ XFP_SETTING_LAZY, "0.9" },          { XFP_SETTING_SIGMA, "4294967.295" },
		{ XFP_SETTING_SAMPLE, "first:" },
	};
	struct xfp_parameters p, unchanged;
	uint32_t value;
	char buf[24];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		const struct xfp_setting *setting = &xfp_settings_table[good[i].setting];

		assert_true(xfp_setting_parse(setting, good[i].text, &p));
		memcpy(&value, xfp_setting_address(setting, &p), sizeof value);
		assert_int_equal(value, good[i].value);
		assert_string_equal(xfp_setting_text(setting, &p, buf), good[i].shown);
	}
	memset(&p, 0x55, sizeof p);
	memcpy(&unchanged, &p, sizeof p);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (xfp_setting_parse(&xfp_settings_table[bad[i].setting], bad[i].text, &p))
			fail_msg("%s is allowed", bad[i].text);
		if (memcmp(&p, &unchanged, sizeof p))
			fail_msg("%s is stored", bad[i].text);
	}
	for (int i = 0; i < XFP_SETTINGS; i++)
		if (!xfp_setting_address(&xfp_settings_table[i], &p) !=
		    (xfp_settings_table[i].kind == XFP_SETTING_CUSTOM))
			fail_msg("the address of %s", xfp_settings_table[i].name);
	assert_null(xfp_setting_address(&xfp_settings_table[XFP_SETTING_STRICT], &p));
	assert_null(xfp_setting_address(&xfp_settings_table[XFP_SETTING_LAZY], &p));
}

static void formats(void **state)
{
	static const char *const good[] = { "auto", "keep", "fp8", "4", "3,4", "2,3,4,5,6", "4,8" };
	static const char *const bad[] = { "", "kept", "7", "4,", "fp4", "4 ", "AUTO" };
	struct xfp_parameters p = round_floors();
	struct xfp_format format;
	char buf[24];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (!xfp_format_parse(good[i], &format))
			fail_msg("%s is refused", good[i]);
		assert_string_equal(xfp_format_text(format, buf), good[i]);
		assert_int_equal(xfp_format_is_fixed(format), i == 3);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (xfp_format_parse(bad[i], &format))
			fail_msg("%s is taken", bad[i]);
	assert_true(xfp_format_parse("8", &format));
	assert_string_equal(xfp_format_text(format, buf), "fp8");
	/* The head's format is that of --lm-head, in either spelling. */
	xfp_parameters_set_format(&p, XFP_CLASS_LM_HEAD, (struct xfp_format){ XFP_FORM_BITS, 0x20 });
	assert_int_equal(p.lm_head, XFP_LM_HEAD_QUANT);
	assert_int_equal(p.format[XFP_CLASS_LM_HEAD].bits, 0x20);
	xfp_parameters_set_format(&p, XFP_CLASS_LM_HEAD, (struct xfp_format){ XFP_FORM_KEEP, 0 });
	assert_int_equal(p.lm_head, XFP_LM_HEAD_KEEP);
	assert_int_equal(p.format[XFP_CLASS_LM_HEAD].form, XFP_FORM_AUTO);
	assert_int_equal(p.format[XFP_CLASS_LM_HEAD].bits, 0);
}

static void overrides(void **state)
{
	static const char *const good[] = { "a=4",           "*.x=keep", "role:q=floor:0.995",
					    "class:mtp=fp8", "a=b=2,3",  "[a-c]?=auto" };
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "expected PATTERN=" },   { "a", "expected PATTERN=" },
		{ "=4", "expected PATTERN=" }, { "a=", "'' is neither" },
		{ "a=7", "'7' is neither" },   { "a=floor:1.1", "'floor:1.1' is neither" },
		{ "a=floor:", "is neither" },  { "class:all=4", "no class 'all'" },
		{ "a b=4", "blanks" },         { "\xff=4", "not UTF-8" },
	};
	struct xfp_override override;
	struct xfp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		char *text;

		if (xfp_override_parse(good[i], &override, &err))
			fail_msg("%s: %s", good[i], err.text);
		assert_non_null(text = xfp_override_text(&override));
		assert_string_equal(text, good[i]);
		free(text);
		free(override.pattern);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(xfp_override_parse(bad[i].text, &override, &err), XFP_USAGE);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: %s", bad[i].text, err.text);
	}
}

static void samples(void **state)
{
	static const char *const good[] = { "0", "1", "first:4", "1000000" };
	static const char *const bad[] = { "", "first:", "-1", "4 ", "1000001", "last:4", "99999999999999999999" };
	struct xfp_moe_sample sample;
	char buf[24];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(xfp_moe_sample_parse(good[i], &sample));
		assert_string_equal(xfp_moe_sample_text(sample, buf), good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (xfp_moe_sample_parse(bad[i], &sample))
			fail_msg("%s is taken", bad[i]);
	assert_true(xfp_moe_sample_parse("first:0", &sample));
	assert_string_equal(xfp_moe_sample_text(sample, buf), "0");
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static void same(const struct xfp_parameters *a, const struct xfp_parameters *b)
{
	for (int i = 0; i < XFP_SETTINGS; i++) {
		const struct xfp_setting *s = &xfp_settings_table[i];
		char one[24], other[24];

		if (s->recorded && s->kind != XFP_SETTING_CUSTOM)
			assert_string_equal(xfp_setting_text(s, a, one), xfp_setting_text(s, b, other));
	}
	assert_memory_equal(a->floor, b->floor, sizeof a->floor);
	assert_int_equal(a->keep_embeddings, b->keep_embeddings);
	assert_string_equal(a->calibration.sha256, b->calibration.sha256);
	assert_string_equal(a->calibration.source, b->calibration.source);
	assert_int_equal(a->calibration.tokens, b->calibration.tokens);
	for (unsigned i = 0; i < XFP_CLASSES; i++) {
		assert_int_equal(a->format[i].form, b->format[i].form);
		assert_int_equal(a->format[i].bits, b->format[i].bits);
	}
	assert_int_equal(a->override_count, b->override_count);
	for (uint32_t i = 0; i < a->override_count; i++) {
		assert_string_equal(a->overrides[i].pattern, b->overrides[i].pattern);
		assert_int_equal(a->overrides[i].is_floor, b->overrides[i].is_floor);
		assert_int_equal(a->overrides[i].floor, b->overrides[i].floor);
		assert_int_equal(a->overrides[i].format.form, b->overrides[i].format.form);
		assert_int_equal(a->overrides[i].format.bits, b->overrides[i].format.bits);
	}
}

static void add_override(struct xfp_parameters *p, const char *text)
{
	struct xfp_error err = { 0 };
	struct xfp_override override;

	if (xfp_override_parse(text, &override, &err))
		fail_msg("%s: %s", text, err.text);
	assert_true(xfp_parameters_add_override(p, &override));
}

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void json(void **state)
{
	struct xfp_parameters p = round_floors(), q;
	struct xfp_error err = { 0 };
	char *text;

	(void)state;
	setlocale(LC_ALL, ""); /* no locale may affect the result */
	text = xfp_parameters_to_json(&p);
	assert_non_null(text);
	assert_non_null(strstr(text, "\"mode\": \"auto\""));
	/* Without them, bundles have the bytes that they had before these parameters existed. */
	assert_null(strstr(text, "formats"));
	assert_null(strstr(text, "overrides"));
	assert_null(strstr(text, "moe_sample"));
	assert_non_null(strstr(text, "\"bits\": \"2,3,4,5,6,8\""));
	assert_non_null(strstr(text, "\"embeddings\": \"units\""));
	assert_null(strstr(text, "moe_lloyd_iterations"));
	assert_null(strstr(text, "calibration"));
	assert_non_null(strstr(text, "\"routed_expert\": \"0.98\""));
	assert_non_null(strstr(text, "\"outlier_sigma\": \"auto\""));
	assert_non_null(strstr(text, "\"outlier_cap\": \"0.0625\""));
	assert_true(strstr(text, "\"mode\"") < strstr(text, "\"bits\"") &&
		    strstr(text, "\"floors\"") < strstr(text, "\"on_nonfinite\""));
	if (xfp_parameters_from_json(text, "here", 0, &q, &err))
		fail_msg("%s", err.text);
	same(&p, &q);
	free(text);

	p = (struct xfp_parameters){
		.modes = XFP_AUTO_MODES,
		.group_size = 64,
		.library_size = 1,
		.libfit = XFP_LIBFIT_PUBLISHED,
		.fit = XFP_FIT_OPTIMAL,
		.bits = 0x44,
		.outlier_sigma = 0,
		.outlier_cap = XFP_NANO,
		.balance = 1,
		.lloyd_iterations = 1000,
		.moe_lloyd_iterations = 1,
		.start = XFP_START_MINMAX,
		.lm_head = XFP_LM_HEAD_FP8,
		.keep_embeddings = true,
		.on_miss = XFP_MISS_FAIL,
		.on_nonfinite = XFP_NONFINITE_KEEP,
		.calibration = { .sha256 = SHA256, .tokens = 32768, .source = "text:" SHA256 },
	};
	for (uint32_t i = 0; i < XFP_CLASSES; i++)
		p.floor[i] = XFP_NANO - i;
	p.format[XFP_CLASS_ATTENTION] = (struct xfp_format){ XFP_FORM_BITS, 0x18 };
	p.format[XFP_CLASS_EMBEDDING].form = XFP_FORM_FP8;
	p.format[XFP_CLASS_OTHER].form = XFP_FORM_KEEP;
	p.moe_sample = (struct xfp_moe_sample){ 4, true };
	add_override(&p, "*.o_proj.weight=5");
	add_override(&p, "role:a=b=floor:0.25");
	add_override(&p, "\xc3\xbc=auto");
	text = xfp_parameters_to_json(&p);
	for (int i = 0; i < XFP_SETTING_OPTIONS; i++) {
		const char *recorded = xfp_settings_table[i].recorded;
		char member[32];

		snprintf(member, sizeof member, "\"%s\":", recorded ? recorded : "mode"); /* "fit" is not "libfit" */
		if (!strstr(text, member))
			fail_msg("%s is not recorded", member);
	}
	assert_null(strstr(text, "\"embeddings\""));
	if (xfp_parameters_from_json(text, "here", 0, &q, &err))
		fail_msg("%s", err.text);
	same(&p, &q);
	assert_string_equal(q.overrides[1].pattern, "role:a=b");
	free(text);
	xfp_parameters_free(&p);
	xfp_parameters_free(&q);
}

/* Replace the first `from` in `text` by `to`. */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *made = calloc(1, strlen(text) + strlen(to) + 1);

	if (!at)
		fail_msg("no %s", from);
	memcpy(made, text, (size_t)(at - text));
	strcat(made, to);
	strcat(made, at + strlen(from));
	return made;
}

#define SHA256_OF(text) "\"tokens\": 1, \"sha256\": \"" text "\""
#define FROM(text) "\"source\": \"" text "\""

static void bad_json(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{ "\"mode\": \"v2\",", "", "\"mode\" is missing" },
		{ "\"v2\"", "\"v9\"", "\"mode\" has an impossible value" },
		{ "\"v2\"", "\"v3\"", "\"mode\" has an impossible" },
		{ "\"v2\"", "\"keep\"", "\"mode\" has an impossible" },
		{ "\"v2\"", "2", "\"mode\" is not text" },
		{ "\"bits\": \"2,3,4,5,6\"", "\"bits\": \"1\"", "\"bits\"" },
		{ "\"attention\": \"0.99\",", "", "\"attention\" is missing" },
		{ "\"attention\"", "\"attentive\"", "\"attention\" is missing" },
		{ "\"attention\": \"0.99\"", "\"attention\": \"1.01\"", "\"attention\" has" },
		{ "\"attention\": \"0.99\"", "\"attention\": 0.99", "\"attention\" is not text" },
		{ "\"other\": \"0.99\"", "\"other\": \"0.99\", \"x\": 1", "\"x\" is unknown" },
		{ "\"outlier_sigma\": \"4.0\"", "\"outlier_sigma\": \"4.0001\"", "\"outlier_sigma\"" },
		{ "\"outlier_sigma\": \"4.0\"", "\"outlier_sigma\": \"Auto\"", "\"outlier_sigma\" has" },
		{ "\"lloyd_iterations\": 20", "\"lloyd_iterations\": -1", "\"lloyd_iterations\"" },
		{ "\"lloyd_iterations\": 20", "\"lloyd_iterations\": 4294967296", "\"lloyd_iterations\"" },
		{ "\"lloyd_iterations\": 20", "\"lloyd_iterations\": 4294967295", "\"lloyd_iterations\" has" },
		{ "\"lloyd_iterations\": 20", "\"lloyd_iterations\": 0", "\"lloyd_iterations\" has" },
		{ "\"bits\"", "\"library_size\": 512, \"bits\"", "\"library_size\" has" },
		{ "\"bits\"", "\"group_size\": 8, \"bits\"", "\"group_size\" has" },
		{ "\"bits\"", "\"group_size\": 128, \"bits\"", "\"group_size\" has" },
		{ "\"lloyd_iterations\": 20", "\"lloyd_iterations\": 2.5", "\"lloyd_iterations\"" },
		{ "\"units\"", "\"kept\"", "\"embeddings\" has an impossible" },
		{ "\"units\"", "true", "\"embeddings\" is not text" },
		{ "\"on_miss\": \"keep\"", "\"on_miss\": \"keep\", \"bits\": \"2\"", "here" },
		{ "\"on_miss\": \"keep\"", "\"on_miss\": \"keep\", \"more\": {}", "\"more\" is unknown" },
		{ "\"bits\"", "\"formats\": [], \"bits\"", "\"formats\" is not an object" },
		{ "\"bits\"", "\"formats\": {\"norms\": \"fp8\"}, \"bits\"", "\"norms\" is unknown" },
		{ "\"bits\"", "\"formats\": {\"norm\": \"fp7\"}, \"bits\"", "\"norm\" has an impossible value" },
		{ "\"bits\"", "\"formats\": {\"norm\": 8}, \"bits\"", "\"norm\" is not text" },
		{ "\"bits\"", "\"overrides\": {}, \"bits\"", "\"overrides\" is not a list" },
		{ "\"bits\"", "\"overrides\": [4], \"bits\"", "\"overrides\" has" },
		{ "\"bits\"", "\"overrides\": [\"a=4\", \"a\"], \"bits\"", "\"overrides\" has" },
		{ "\"bits\"", "\"moe_sample\": \"last:4\", \"bits\"", "\"moe_sample\" has" },
		{ "\"bits\"", "\"moe_lloyd_iterations\": \"5\", \"bits\"", "\"moe_lloyd_iterations\" has" },
		{ "\"bits\"", "\"calibration\": 1, \"bits\"", "\"calibration\" is not an object" },
		{ "\"bits\"", "\"calibration\": {" SHA256_OF(SHA256) "}, \"bits\"", "\"source\" is missing" },
		{ "\"bits\"", "\"calibration\": {" SHA256_OF("0") ", " FROM("a") "}, \"bits\"", "\"sha256\" has" },
		{ "\"bits\"", "\"calibration\": {" SHA256_OF(SHA256) ", " FROM("") "}, \"bits\"", "\"source\" has" },
		{ "\"bits\"", "\"calibration\": {" SHA256_OF(SHA256) ", " FROM("a b") "}, \"bits\"", "\"source\" has" },
		{ "\"bits\"", "\"calibration\": {\"sha256\": \"" SHA256 "\", \"tokens\": 0, " FROM("a") "}, \"bits\"",
		  "\"tokens\" has" },
		{ "\"bits\"", "\"calibration\": {" SHA256_OF(SHA256) ", " FROM("a") ", \"more\": 1}, \"bits\"",
		  "\"more\" is unknown" },
		{ "{", "[", "here: not JSON" },
	};
	struct xfp_parameters p = round_floors(), q = { .bits = 99 };
	struct xfp_error err = { 0 };
	char *good;

	(void)state;
	p.modes = 1u << XFP_MODE_V2;
	p.bits = xfp_default_bits(p.modes);
	p.outlier_sigma = XFP_SIGMA_DEFAULT;
	good = xfp_parameters_to_json(&p);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *text = replaced(good, cases[i].from, cases[i].to);

		if (xfp_parameters_from_json(text, "here", 0, &q, &err) != XFP_BAD_INPUT)
			fail_msg("taken: %s", text);
		if (!strstr(err.text, cases[i].says) || strncmp(err.text, "here: ", 6))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
		assert_int_equal(q.bits, 99);
		free(text);
	}
	assert_int_equal(xfp_parameters_from_json("[]", "here", 0, &q, &err), XFP_BAD_INPUT);
	assert_int_equal(xfp_parameters_from_json("", "here", 0, &q, NULL), XFP_BAD_INPUT);
	free(good);
}

PROGRAM("test_parameters")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals),   cmocka_unit_test(decimals_round_trip),
		cmocka_unit_test(bit_sets),   cmocka_unit_test(base_and_extended),
		cmocka_unit_test(defaults),   cmocka_unit_test(usual_thresholds),
		cmocka_unit_test(thresholds), cmocka_unit_test(values),
		cmocka_unit_test(formats),    cmocka_unit_test(overrides),
		cmocka_unit_test(samples),    cmocka_unit_test(json),
		cmocka_unit_test(bad_json),
	};

	return cmocka_run_group_tests_name("parameters", tests, NULL, NULL);
}
