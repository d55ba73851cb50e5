/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/settings/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/suggestion.h"
#include "stages/settings/goal_settings.h"

#define BLANKS " \t\n"

/* ---- numbers and names ------------------------------------------------------------------------- */

static bool take_floor(const char *text, uint32_t *floor)
{
	return xfp_decimal_parse(text, XFP_NANO, floor) && *floor <= XFP_NANO;
}

static bool take_strict(struct xfp_settings *s, const char *text)
{
	return s->has_strict = take_floor(text, &s->strict);
}

static bool take_lazy(struct xfp_settings *s, const char *text)
{
	return s->has_lazy = take_floor(text, &s->lazy);
}

static bool take_bits(struct xfp_settings *s, const char *text)
{
	return s->has_bits = xfp_bits_parse(text, &s->parameters.bits);
}

static bool take_sigma(struct xfp_settings *s, const char *text)
{
	uint32_t sigma;

	/* No outliers must be given as "none", not 0. */
	if (!xfp_sigma_parse(text, &sigma) || (!sigma && strcmp(text, "none")))
		return false;
	s->parameters.outlier_sigma = sigma;
	return s->has_sigma = true;
}

static bool take_cap(struct xfp_settings *s, const char *text)
{
	s->has_cap = true;
	return xfp_decimal_parse(text, XFP_NANO, &s->parameters.outlier_cap) && s->parameters.outlier_cap <= XFP_NANO;
}

static bool take_balance(struct xfp_settings *s, const char *text)
{
	return xfp_decimal_parse(text, XFP_NANO, &s->parameters.balance) && s->parameters.balance <= XFP_NANO;
}

static bool take_rounds(const char *text, uint32_t *rounds)
{
	return xfp_decimal_parse(text, 1, rounds) && !strchr(text, '.') && *rounds >= 1 && *rounds <= 1000;
}

static bool take_iterations(struct xfp_settings *s, const char *text)
{
	return take_rounds(text, &s->parameters.lloyd_iterations);
}

static bool take_moe_iterations(struct xfp_settings *s, const char *text)
{
	return take_rounds(text, &s->parameters.moe_lloyd_iterations);
}

static bool take_mode(struct xfp_settings *s, const char *text)
{
	return xfp_modes_parse(text, &s->parameters.modes);
}

static bool take_size(const char *text, uint32_t *size)
{
	return xfp_decimal_parse(text, 1, size) && !strchr(text, '.') && *size;
}

static bool take_group(struct xfp_settings *s, const char *text)
{
	s->has_group = true;
	return take_size(text, &s->parameters.group_size) &&
	       xfp_group_size_fits(s->parameters.group_size, XFP_ALL_MODES);
}

static bool take_library(struct xfp_settings *s, const char *text)
{
	s->has_library = true;
	return take_size(text, &s->parameters.library_size) && xfp_library_size_fits(s->parameters.library_size);
}

static bool take_libfit(struct xfp_settings *s, const char *text)
{
	return xfp_libfit_parse(text, &s->parameters.libfit) && (s->has_libfit = true);
}

static bool take_fit(struct xfp_settings *s, const char *text)
{
	return xfp_fit_method_parse(text, &s->parameters.fit) && (s->has_fit = true);
}

static bool take_start(struct xfp_settings *s, const char *text)
{
	return xfp_start_parse(text, &s->parameters.start);
}

static bool take_lm_head(struct xfp_settings *s, const char *text)
{
	static const enum xfp_form forms[] = { XFP_FORM_FP8, XFP_FORM_KEEP, XFP_FORM_AUTO };
	enum xfp_lm_head head;

	if (!xfp_lm_head_parse(text, &head))
		return false;
	xfp_parameters_set_format(&s->parameters, XFP_CLASS_LM_HEAD, (struct xfp_format){ .form = forms[head] });
	return true;
}

static bool take_on_miss(struct xfp_settings *s, const char *text)
{
	return xfp_on_miss_parse(text, &s->parameters.on_miss);
}

static bool take_on_nonfinite(struct xfp_settings *s, const char *text)
{
	return xfp_on_nonfinite_parse(text, &s->parameters.on_nonfinite);
}

static bool take_sample(struct xfp_settings *s, const char *text)
{
	return xfp_moe_sample_parse(text, &s->parameters.moe_sample);
}

/* ---- lists ------------------------------------------------------------------------------------- */

static enum xfp_status no_such_class(const char *where, const char *name, struct xfp_error *err)
{
	char text[XFP_NO_CLASS];

	return xfp_fail(err, XFP_USAGE, "%s: %s", where, xfp_no_such_class(name, text));
}

/* The next "CLASS=VALUE" of *rest, which is cut off; a value may contain commas. */
static char *next_item(char **rest)
{
	char *item = *rest, *equals = item ? strchr(item, '=') : NULL, *next = equals ? strchr(equals + 1, '=') : NULL;

	*rest = NULL;
	if (!next)
		return item;
	while (next > equals && *next != ',')
		next--;
	if (next > equals) {
		*next = '\0';
		*rest = next + 1;
	}
	return item;
}

/* Parse "CLASS=VALUE,CLASS=VALUE" and call `take` for each; `wanted` describes a value for messages. */
static enum xfp_status each_class(struct xfp_settings *s, const char *where, const char *text, const char *wanted,
				  bool (*take)(struct xfp_settings *s, enum xfp_class class_, const char *value),
				  struct xfp_error *err)
{
	char *copy = strdup(text), *rest = copy, *item;
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);

	while (!status && (item = next_item(&rest))) {
		char *value = strchr(item, '=');
		enum xfp_class class_;

		if (value)
			*value++ = '\0';
		if (!value)
			status = xfp_fail(err, XFP_USAGE, "%s '%s': expected CLASS=%s", where, text, wanted);
		else if (!xfp_class_parse(item, &class_))
			status = no_such_class(where, item, err);
		else if (!take(s, class_, value))
			status = xfp_fail(err, XFP_USAGE, "%s '%s=%s': expected %s", where, item, value, wanted);
	}
	free(copy);
	return status;
}

static bool take_class_floor(struct xfp_settings *s, enum xfp_class class_, const char *value)
{
	return s->has_floor[class_] = take_floor(value, &s->floor[class_]);
}

static enum xfp_status set_floors(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	return each_class(s, where, text, "a cosine from 0 to 1, as in attention=0.995", take_class_floor, err);
}

static bool take_class_format(struct xfp_settings *s, enum xfp_class class_, const char *value)
{
	struct xfp_format format;

	if (!xfp_format_parse(value, &format))
		return false;
	xfp_parameters_set_format(&s->parameters, class_, format);
	return true;
}

static enum xfp_status set_formats(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	return each_class(s, where, text, "keep, fp8, bits from 2 to 6 or auto, as in attention=4 or attention=3,4",
			  take_class_format, err);
}

static bool has_override(const struct xfp_parameters *parameters, const struct xfp_override *override)
{
	char *wanted = xfp_override_text(override), *text;
	bool found = false;

	for (uint32_t i = 0; wanted && !found && i < parameters->override_count; i++) {
		text = xfp_override_text(&parameters->overrides[i]);
		found = text && !strcmp(text, wanted);
		free(text);
	}
	free(wanted);
	return found;
}

static enum xfp_status add_override(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	struct xfp_override override;
	enum xfp_status status = xfp_override_parse(text, &override, err);

	if (status == XFP_USAGE)
		return xfp_context(err, status, "%s '%s'", where, text);
	if (!status && s->repeated && has_override(&s->parameters, &override)) {
		free(override.pattern);
		return XFP_OK;
	}
	if (!status && !xfp_parameters_add_override(&s->parameters, &override)) {
		free(override.pattern);
		status = xfp_no_memory(err);
	}
	return status;
}

/* Parse several overrides separated by blanks, so that a makefile can set them. */
static enum xfp_status set_overrides(struct xfp_settings *s, const char *where, const char *text, struct xfp_error *err)
{
	char *copy = strdup(text), *rest = copy, *item;
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);
	bool any = false;

	while (!status && (item = strsep(&rest, BLANKS)))
		if (*item) {
			status = add_override(s, where, item, err);
			any = true;
		}
	if (!status && !any)
		status = xfp_fail(err, XFP_USAGE, "%s: is empty", where);
	free(copy);
	return status;
}

/* ---- the table --------------------------------------------------------------------------------- */

/* In the order of --help: settings that affect the size most come first. */
enum {
	TARGET_SIZE,
	TARGET_BPW,
	ENVELOPE,
	RESERVE,
	WEIGHT,
	STRICT,
	LAZY,
	FLOOR,
	FORMAT,
	OVERRIDE,
	BITS,
	SIGMA,
	CAP,
	BALANCE,
	ITERATIONS,
	MOE_ITERATIONS,
	MODE,
	GROUP,
	LIBRARY,
	LIBFIT,
	FIT,
	START,
	LM_HEAD,
	ON_MISS,
	ON_NONFINITE,
	SAMPLE,
	SETTINGS
};

const size_t xfp_settings_count = SETTINGS;

const struct xfp_setting xfp_settings_table[] = {
	[TARGET_SIZE] = { "target-size", "SIZE", "goal: bytes of the bundle, as in 14GiB; turns off default floors" },
	[TARGET_BPW] = { "target-bpw", "B", "goal: bits of the bundle per element, as in 4.25" },
	[ENVELOPE] = { "envelope", "SIZE|NxSIZE", "goal: memory of each of N GPUs, as in 2x96GiB" },
	[RESERVE] = { "reserve", "NAME=SIZE,...", "memory of each GPU for other data, as in kv=8GiB,act=10GiB" },
	[WEIGHT] = { "weight", "CLASS=W,...", "weight of errors of a class, or of role:ROLE, for a goal" },
	[STRICT] = { "min-cos-strict", "X",
		     "floor of the median cosine, except for routed_expert [0.998; attention 0.9995]; can only "
		     "raise those of embedding and lm_head [0.999, 0.9995]" },
	[LAZY] = { "min-cos-lazy", "X", "floor of routed_expert [0.995]" },
	[FLOOR] = { "floor", "CLASS=X,...", "floor of one class; may be repeated" },
	[FORMAT] = { "format", "CLASS=FORMAT", "how a class is stored: keep, fp8, bits as in 4 or 3,4, or auto" },
	[OVERRIDE] = { "override", "PATTERN=FORMAT",
		       "the same, or floor:X, for units by name, role:ROLE or class:CLASS" },
	[BITS] = { "bits", "LIST", "allowed bits per index, as in 2,3,4 or 2-6; 8: fp8 [mode auto: 2-6,8; else 2-6]" },
	[SIGMA] = { "outlier-sigma", "C|auto|none",
		    "weights beyond C standard deviations are outliers; auto: selected by a survey [mode auto: "
		    "auto; else 4]" },
	[CAP] = { "outlier-cap", "F", "largest share of outliers in a matrix [0.02; thresholds auto: 0.0625]" },
	[BALANCE] = { "balance", "A", "exponent of the columns' rms; 0: no balance [0.5]" },
	[ITERATIONS] = { "lloyd-iters", "N", "maximum rounds of Lloyd's algorithm [20]" },
	[MOE_ITERATIONS] = { "moe-lloyd-iters", "N", "the same for routed_expert [as for all]" },
	[MODE] = { "mode", "NAME",
		   "how weights are stored: v2, v2a, v2c, or auto, the smallest of v2, v2c and fp8 [auto]" },
	[GROUP] = { "group-size", "G", "columns of a group [v2a: 128; v2c: 16 and 32]" },
	[LIBRARY] = { "library-size", "L", "codebooks of a v2a library [32]" },
	[LIBFIT] = { "libfit", "NAME", "v2a libraries: refined or published [refined]" },
	[FIT] = { "fit", "NAME",
		  "v2 codebooks: lloyd, or optimal, with the least error at fifty times the cost [lloyd]" },
	[START] = { "start", "NAME", "initial codebooks: companded, quantile or minmax [companded]" },
	[LM_HEAD] = { "lm-head", "NAME", "the output head: quant, fp8 (without a floor) or keep [quant]" },
	[ON_MISS] = { "on-miss", "NAME", "if no candidate meets the floor: keep, best or fail [keep]" },
	[ON_NONFINITE] = { "on-nonfinite", "NAME", "if weights are NaN or infinite: fail or keep [fail]" },
	[SAMPLE] = { "moe-sample", "N|first:N", "experts that decide for a stack; 0: all [0]" },
};

/* The function that sets a setting: one of two kinds. */
static const struct {
	bool (*take)(struct xfp_settings *settings, const char *text);
	const char *wanted; /* expected value, if `take` returns false */
	enum xfp_status (*set)(struct xfp_settings *settings, const char *where, const char *text,
			       struct xfp_error *err);
} setters[SETTINGS] = {
	[STRICT] = { take_strict, "a cosine from 0 to 1, as in 0.99", NULL },
	[LAZY] = { take_lazy, "a cosine from 0 to 1, as in 0.98", NULL },
	[FLOOR] = { NULL, NULL, set_floors },
	[FORMAT] = { NULL, NULL, set_formats },
	[OVERRIDE] = { NULL, NULL, set_overrides },
	[BITS] = { take_bits, "bits from 2 to 6, as in 2,3,4 or 2-6, or 8", NULL },
	[SIGMA] = { take_sigma, "a positive number with at most three decimals, auto or none", NULL },
	[CAP] = { take_cap, "a share from 0 to 1, as in 0.02", NULL },
	[BALANCE] = { take_balance, "an exponent from 0 to 1, as in 0.5", NULL },
	[ITERATIONS] = { take_iterations, "rounds from 1 to 1000", NULL },
	[MOE_ITERATIONS] = { take_moe_iterations, "rounds from 1 to 1000", NULL },
	[MODE] = { take_mode, "auto, v2, v2a or v2c", NULL },
	[GROUP] = { take_group, "columns: a power of two from 16 to 1024", NULL },
	[LIBRARY] = { take_library, "codebooks: a power of two from 1 to 256", NULL },
	[LIBFIT] = { take_libfit, "refined or published", NULL },
	[FIT] = { take_fit, "lloyd or optimal", NULL },
	[START] = { take_start, "companded, quantile or minmax", NULL },
	[LM_HEAD] = { take_lm_head, "fp8, keep or quant", NULL },
	[ON_MISS] = { take_on_miss, "keep, best or fail", NULL },
	[ON_NONFINITE] = { take_on_nonfinite, "fail or keep", NULL },
	[SAMPLE] = { take_sample, "a number of experts, as in 4 or first:4", NULL },
	[TARGET_SIZE] = { NULL, NULL, xfp_set_target_size },
	[TARGET_BPW] = { NULL, NULL, xfp_set_target_bpw },
	[ENVELOPE] = { NULL, NULL, xfp_set_envelope },
	[RESERVE] = { NULL, NULL, xfp_set_reserve },
	[WEIGHT] = { NULL, NULL, xfp_set_weight },
};

int xfp_setting_find(const char *name)
{
	for (int i = 0; i < SETTINGS; i++)
		if (!strcmp(xfp_settings_table[i].name, name))
			return i;
	return -1;
}

const char *xfp_setting_meant(const char *word, char text[XFP_DID_YOU_MEAN])
{
	const char *names[SETTINGS];

	for (int i = 0; i < SETTINGS; i++)
		names[i] = xfp_settings_table[i].name;
	return xfp_did_you_mean("", word, names, SETTINGS, text);
}

bool xfp_setting_is_floor(int setting)
{
	return setting == STRICT || setting == LAZY || setting == FLOOR;
}

enum xfp_status xfp_setting_set(struct xfp_settings *settings, int setting, const char *where, const char *text,
				struct xfp_error *err)
{
	if (setters[setting].set)
		return setters[setting].set(settings, where, text, err);
	return setters[setting].take(settings, text)
		       ? XFP_OK
		       : xfp_fail(err, XFP_USAGE, "%s '%s': expected %s", where, text, setters[setting].wanted);
}

/* ---- layers ------------------------------------------------------------------------------------ */

/* Check a floor that was requested for a class whose units have none. */
static enum xfp_status check_floor(const struct xfp_parameters *p, enum xfp_class class_, struct xfp_error *err)
{
	const char *name = xfp_class_name(class_);
	char buf[24];

	if (p->override_count)
		return XFP_OK;
	if (class_ == XFP_CLASS_LM_HEAD && p->lm_head != XFP_LM_HEAD_QUANT)
		return xfp_fail(err, XFP_USAGE,
				"--floor lm_head requires --lm-head quant, the default: an output head that is kept or "
				"stored as fp8 has no floor");
	if (p->format[class_].form == XFP_FORM_KEEP || p->format[class_].form == XFP_FORM_FP8)
		return xfp_fail(err, XFP_USAGE,
				"--floor %s contradicts --format %s=%s: units that are kept or stored as fp8 "
				"have no floor",
				name, name, xfp_format_text(p->format[class_], buf));
	return XFP_OK;
}

/* Report settings that do not apply to the mode, instead of ignoring them silently. */
static enum xfp_status check_modes(const struct xfp_settings *s, struct xfp_error *err)
{
	const struct xfp_parameters *p = &s->parameters;
	bool libraries = p->modes & XFP_LIBRARY_MODES, v2a = p->modes >> XFP_MODE_V2A & 1;

	if (s->has_group && !libraries)
		return xfp_fail(err, XFP_USAGE,
				"--group-size %u: --mode v2 has a codebook for each row and no groups; omit one of "
				"them, or use --mode v2c",
				p->group_size);
	if (s->has_library && !v2a)
		return xfp_fail(err, XFP_USAGE,
				"--library-size %u: only libraries of v2a have a variable size; omit it, or use "
				"--mode v2a",
				p->library_size);
	if (s->has_libfit && p->libfit == XFP_LIBFIT_PUBLISHED && !v2a)
		return xfp_fail(err, XFP_USAGE,
				"--libfit published: applies only to libraries of v2a; omit it, or use --mode v2a");
	if (s->has_fit && p->fit == XFP_FIT_OPTIMAL && !(p->modes >> XFP_MODE_V2 & 1))
		return xfp_fail(err, XFP_USAGE,
				"--fit optimal: applies only to codebooks of v2; omit it, or use --mode v2");
	return XFP_OK;
}

/* Settings without effect are not recorded, so that they do not change the bundle. */
static enum xfp_status finish_modes(struct xfp_parameters *p, struct xfp_error *err)
{
	if (!(p->modes & XFP_LIBRARY_MODES))
		p->group_size = 0;
	if (!xfp_group_size_fits(p->group_size, p->modes))
		return xfp_fail(err, XFP_USAGE, "--group-size %u: groups of v2c have 16, 32 or 64 columns%s",
				p->group_size,
				p->modes == XFP_AUTO_MODES ? "; groups of --mode v2a may have more" : "");
	if (!(p->modes >> XFP_MODE_V2A & 1)) {
		p->library_size = 0;
		p->libfit = XFP_LIBFIT_REFINED;
	}
	if (!(p->modes >> XFP_MODE_V2 & 1))
		p->fit = XFP_FIT_LLOYD;
	return XFP_OK;
}

/* Set the defaults of settings that were not given. Settings copied from a bundle are complete. */
static void finish_usual(struct xfp_settings *s)
{
	struct xfp_parameters *p = &s->parameters;

	if (s->repeated)
		return;
	if (!s->has_bits)
		p->bits = xfp_bits_usual(p->modes);
	if (!s->has_sigma)
		p->outlier_sigma = xfp_sigma_usual(p->modes);
	if (!s->has_cap)
		p->outlier_cap = xfp_cap_usual(p->outlier_sigma);
}

/* Set the floor of a class that has none of its own in this layer. Floors of embeddings and output heads are stricter
 * than others, and a general floor can only raise them; not for a bundle made when all classes had one floor. */
static void take_general(struct xfp_settings *s, enum xfp_class class_)
{
	bool words = (class_ == XFP_CLASS_EMBEDDING || class_ == XFP_CLASS_LM_HEAD) && !s->parameters.keep_embeddings;
	uint32_t *floor = &s->parameters.floor[class_];

	if (class_ == XFP_CLASS_ROUTED_EXPERT)
		*floor = s->has_lazy ? s->lazy : *floor;
	else if (s->has_strict && (!words || s->strict > *floor))
		*floor = s->strict;
}

enum xfp_status xfp_settings_finish(struct xfp_settings *s, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (int i = 0; i < XFP_CLASSES; i++) {
		if (s->has_floor[i] && !status)
			status = check_floor(&s->parameters, (enum xfp_class)i, err);
		if (s->has_floor[i])
			s->parameters.floor[i] = s->floor[i];
		else
			take_general(s, (enum xfp_class)i);
		s->asked_floor[i] |= s->has_floor[i] || (i == XFP_CLASS_ROUTED_EXPERT ? s->has_lazy : s->has_strict);
		s->has_floor[i] = false;
	}
	s->has_strict = s->has_lazy = false;
	if (!status)
		status = check_modes(s, err);
	s->has_group = s->has_library = s->has_libfit = s->has_fit = false;
	finish_usual(s);
	if (!status)
		status = xfp_finish_goal(s, err);
	return status ? status : finish_modes(&s->parameters, err);
}
