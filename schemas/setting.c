/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/setting.h"

#include <stdio.h>
#include <string.h>

#include "base/text/whole_number.h"

#define MAX_V2C_GROUP 64

/* Names by value. */
static const char *const start_names[] = { "companded", "quantile", "minmax", NULL };
static const char *const on_miss_names[] = { "keep", "best", "fail", NULL };
static const char *const on_nonfinite_names[] = { "fail", "keep", NULL };
static const char *const lm_head_names[] = { "fp8", "keep", "quant", NULL };
static const char *const fit_names[] = { "lloyd", "optimal", NULL };
static const char *const libfit_names[] = { "refined", "published", NULL };

/* The members from `kind` on. */
#define AT(member) offsetof(struct xfp_parameters, member)
#define FRACTION(member) XFP_SETTING_FRACTION, .offset = AT(member)
#define COUNT(member, from, to) XFP_SETTING_COUNT, AT(member), .min = from, .max = to
#define POWER(member, from, to) XFP_SETTING_POWER, AT(member), .min = from, .max = to
#define NAMED(member, list) XFP_SETTING_NAMED, AT(member), .names = list

const struct xfp_setting xfp_settings_table[XFP_SETTINGS] = {
	[XFP_SETTING_TARGET_SIZE] = { "target-size", "SIZE",
				      "goal: bytes of the bundle, as in 14GiB; turns off default floors",
				      .kind = XFP_SETTING_CUSTOM },
	[XFP_SETTING_TARGET_BPW] = { "target-bpw", "B", "goal: bits of the bundle per element, as in 4.25",
				     .kind = XFP_SETTING_CUSTOM },
	[XFP_SETTING_ENVELOPE] = { "envelope", "SIZE|NxSIZE", "goal: memory of each of N GPUs, as in 2x96GiB",
				   .kind = XFP_SETTING_CUSTOM },
	[XFP_SETTING_RESERVE] = { "reserve", "NAME=SIZE,...",
				  "memory of each GPU for other data, as in kv=8GiB,act=10GiB",
				  .kind = XFP_SETTING_CUSTOM },
	[XFP_SETTING_WEIGHT] = { "weight", "CLASS=W,...", "weight of errors of a class, or of role:ROLE, for a goal",
				 .kind = XFP_SETTING_CUSTOM, .complete = "CLASS=" },
	[XFP_SETTING_STRICT] = { "min-cos-strict", "X",
				 "floor of the median cosine, except for routed_expert [0.998; attention 0.9995]; can "
				 "only raise those of embedding and lm_head [0.999, 0.9995]",
				 "a cosine from 0 to 1, as in 0.99", .kind = XFP_SETTING_CUSTOM },
	[XFP_SETTING_LAZY] = { "min-cos-lazy", "X", "floor of routed_expert [0.995]",
			       "a cosine from 0 to 1, as in 0.98", .kind = XFP_SETTING_CUSTOM },
	[XFP_SETTING_FLOOR] = { "floor", "CLASS=X,...", "floor of one class; may be repeated",
				"a cosine from 0 to 1, as in attention=0.995", "floors", XFP_SETTING_CUSTOM,
				.complete = "CLASS=" },
	[XFP_SETTING_FORMAT] = { "format", "CLASS=FORMAT",
				 "how a class is stored: keep, fp8, bits as in 4 or 3,4, or auto",
				 "keep, fp8, bits from 2 to 6 or auto, as in attention=4 or attention=3,4", "formats",
				 XFP_SETTING_CUSTOM, .optional = true, .complete = "CLASS=" },
	[XFP_SETTING_OVERRIDE] = { "override", "PATTERN=FORMAT",
				   "the same, or floor:X, for units by name, role:ROLE or class:CLASS",
				   .recorded = "overrides", .kind = XFP_SETTING_CUSTOM, .optional = true },
	[XFP_SETTING_BITS] = { "bits", "LIST",
			       "allowed bits per index, as in 2,3,4 or 2-6; 8: fp8 [mode auto: 2-6,8; else 2-6]",
			       "bits from 2 to 6, as in 2,3,4 or 2-6, or 8", "bits", XFP_SETTING_BIT_SET, AT(bits),
			       .complete = "2|3|4|5|6|2,3,4|2-4|2-6|2-6,8" },
	[XFP_SETTING_SIGMA] = { "outlier-sigma", "C|auto|none",
				"weights beyond C standard deviations are outliers; auto: selected by a survey [mode "
				"auto: auto; else 4]",
				"a positive number with at most three decimals, auto or none", "outlier_sigma",
				XFP_SETTING_THRESHOLD, AT(outlier_sigma), .complete = "auto|none|3|4|5" },
	[XFP_SETTING_CAP] = { "outlier-cap", "F",
			      "largest share of outliers in a matrix [0.02; thresholds auto: 0.0625]",
			      "a share from 0 to 1, as in 0.02", "outlier_cap", FRACTION(outlier_cap) },
	[XFP_SETTING_BALANCE] = { "balance", "A", "exponent of the columns' rms; 0: no balance [0.5]",
				  "an exponent from 0 to 1, as in 0.5", "balance", FRACTION(balance) },
	[XFP_SETTING_ITERATIONS] = { "lloyd-iters", "N", "maximum rounds of Lloyd's algorithm [20]", "rounds",
				     "lloyd_iterations", COUNT(lloyd_iterations, 1, 1000) },
	[XFP_SETTING_MOE_ITERATIONS] = { "moe-lloyd-iters", "N", "the same for routed_expert [as for all]", "rounds",
					 "moe_lloyd_iterations", COUNT(moe_lloyd_iterations, 1, 1000),
					 .optional = true },
	[XFP_SETTING_MODE] = { "mode", "NAME",
			       "how weights are stored: v2, v2a, v2c, or auto, the smallest of v2, v2c and fp8 [auto]",
			       "auto, v2, v2a or v2c", "mode", XFP_SETTING_MODE_SET, AT(modes),
			       .complete = "auto|v2|v2a|v2c" },
	[XFP_SETTING_GROUP] = { "group-size", "G", "columns of a group [v2a: 128; v2c: 16 and 32]",
				"columns: a power of two", "group_size", POWER(group_size, 16, 1024), .optional = true,
				.complete = "16|32|64|128|256" },
	[XFP_SETTING_LIBRARY] = { "library-size", "L", "codebooks of a v2a library [32]", "codebooks: a power of two",
				  "library_size", POWER(library_size, 1, 256), .optional = true,
				  .complete = "8|16|32|64" },
	[XFP_SETTING_LIBFIT] = { "libfit", "NAME", "v2a libraries: refined or published [refined]",
				 "refined or published", "libfit", NAMED(libfit, libfit_names), .optional = true },
	[XFP_SETTING_FIT] = { "fit", "NAME",
			      "v2 codebooks: lloyd, or optimal, with the least error at fifty times the cost [lloyd]",
			      "lloyd or optimal", "fit", NAMED(fit, fit_names), .optional = true },
	[XFP_SETTING_START] = { "start", "NAME", "initial codebooks: companded, quantile or minmax [companded]",
				"companded, quantile or minmax", "start", NAMED(start, start_names) },
	[XFP_SETTING_LM_HEAD] = { "lm-head", "NAME", "the output head: quant, fp8 (without a floor) or keep [quant]",
				  "fp8, keep or quant", "lm_head", NAMED(lm_head, lm_head_names) },
	[XFP_SETTING_ON_MISS] = { "on-miss", "NAME", "if no candidate meets the floor: keep, best or fail [keep]",
				  "keep, best or fail", "on_miss", NAMED(on_miss, on_miss_names) },
	[XFP_SETTING_ON_NONFINITE] = { "on-nonfinite", "NAME", "if weights are NaN or infinite: fail or keep [fail]",
				       "fail or keep", "on_nonfinite", NAMED(on_nonfinite, on_nonfinite_names) },
	[XFP_SETTING_SAMPLE] = { "moe-sample", "N|first:N", "experts that decide for a stack; 0: all [0]",
				 "a number of experts, as in 4 or first:4", "moe_sample", XFP_SETTING_EXPERTS,
				 AT(moe_sample), .optional = true },
	[XFP_SETTING_EMBEDDINGS] = { .recorded = "embeddings", .kind = XFP_SETTING_CUSTOM, .optional = true },
	[XFP_SETTING_CALIBRATION] = { .recorded = "calibration", .kind = XFP_SETTING_CUSTOM, .optional = true },
	[XFP_SETTING_ASSIGNED] = { .recorded = "assigned", .kind = XFP_SETTING_CUSTOM, .optional = true },
};

static bool is_power(uint64_t value)
{
	return value && !(value & (value - 1));
}

bool xfp_setting_parse(const struct xfp_setting *setting, const char *text, struct xfp_parameters *parameters)
{
	char *to = (char *)parameters + setting->offset;
	uint32_t number = 0;
	uint64_t whole = 0;
	bool good = false;

	switch (setting->kind) {
	case XFP_SETTING_CUSTOM:
		break;
	case XFP_SETTING_NAMED:
		while (setting->names[number] && strcmp(setting->names[number], text))
			number++;
		good = setting->names[number];
		break;
	case XFP_SETTING_FRACTION:
		good = xfp_fraction_parse(text, &number);
		break;
	case XFP_SETTING_COUNT:
	case XFP_SETTING_POWER:
		good = xfp_whole_number_parse(text, setting->min, setting->max, &whole) &&
		       (setting->kind == XFP_SETTING_COUNT || is_power(whole));
		number = (uint32_t)whole;
		break;
	case XFP_SETTING_MODE_SET:
		good = xfp_modes_parse(text, &number);
		break;
	case XFP_SETTING_BIT_SET:
		good = xfp_bits_parse(text, &number);
		break;
	case XFP_SETTING_THRESHOLD:
		good = xfp_sigma_parse(text, &number);
		break;
	case XFP_SETTING_EXPERTS:
		return xfp_moe_sample_parse(text, (void *)to);
	}
	if (good)
		memcpy(to, &number, sizeof number);
	return good;
}

const char *xfp_setting_text(const struct xfp_setting *setting, const struct xfp_parameters *parameters, char buf[24])
{
	const void *value = xfp_setting_address(setting, parameters);
	const uint32_t *number = value;

	switch (setting->kind) {
	case XFP_SETTING_NAMED:
		return setting->names[*number];
	case XFP_SETTING_FRACTION:
		return xfp_decimal_format(*number, XFP_NANO, buf);
	case XFP_SETTING_MODE_SET:
		return xfp_modes_name(*number);
	case XFP_SETTING_BIT_SET:
		return xfp_bits_format(*number, buf);
	case XFP_SETTING_THRESHOLD:
		return xfp_sigma_text(*number, buf);
	case XFP_SETTING_EXPERTS:
		return xfp_moe_sample_text(*(const struct xfp_moe_sample *)value, buf);
	default:
		snprintf(buf, 24, "%u", *number);
		return buf;
	}
}

bool xfp_group_size_fits(uint32_t columns, uint32_t modes)
{
	const struct xfp_setting *setting = &xfp_settings_table[XFP_SETTING_GROUP];
	uint32_t max = modes >> XFP_MODE_V2A & 1 ? setting->max : MAX_V2C_GROUP;

	return !columns || (is_power(columns) && columns >= setting->min && columns <= max);
}

bool xfp_library_size_fits(uint32_t entries)
{
	return !entries || (is_power(entries) && entries <= xfp_settings_table[XFP_SETTING_LIBRARY].max);
}
