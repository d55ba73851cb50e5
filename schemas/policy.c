/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/glob.h"
#include "schemas/setting.h"

/* ---- matching ---------------------------------------------------------------------------------- */

/* A name may contain characters that are special in a pattern. */
static bool matches_glob(const char *pattern, const char *name)
{
	return !strcmp(pattern, name) || xfp_glob_matches(pattern, name);
}

static bool matches_class(const char *pattern, enum xfp_class class_)
{
	const char *name = xfp_after_prefix(pattern, XFP_CLASS_PREFIX);

	return name && !strcmp(name, xfp_class_name(class_));
}

static bool is_tied(const char *role, enum xfp_class class_)
{
	return class_ == XFP_CLASS_EMBEDDING && !strcmp(role, XFP_ROLE_TIED);
}

/* The properties of a unit that patterns match; a tied unit has two sets of them. */
struct subject {
	const char *name, *role;
	enum xfp_class class_;
	bool tied;
};

static struct subject words_of(const char *name)
{
	return (struct subject){ name, xfp_class_name(XFP_CLASS_EMBEDDING), XFP_CLASS_EMBEDDING, true };
}

static struct subject head_of(void)
{
	return (struct subject){ XFP_HEAD_NAME, xfp_class_name(XFP_CLASS_LM_HEAD), XFP_CLASS_LM_HEAD, true };
}

static bool matches(const struct xfp_override *override, const struct subject *subject)
{
	const char *wanted = xfp_after_prefix(override->pattern, XFP_ROLE_PREFIX);

	if (xfp_after_prefix(override->pattern, XFP_CLASS_PREFIX))
		return matches_class(override->pattern, subject->class_);
	if (!wanted)
		return matches_glob(override->pattern, subject->name);
	return matches_glob(wanted, subject->role) || (subject->tied && matches_glob(wanted, XFP_ROLE_TIED));
}

bool xfp_override_matches(const struct xfp_override *override, const char *name, const char *role,
			  enum xfp_class class_)
{
	const struct subject one = { name, role, class_, false }, words = words_of(name), head = head_of();

	return is_tied(role, class_) ? matches(override, &words) || matches(override, &head) : matches(override, &one);
}

/* ---- one unit ---------------------------------------------------------------------------------- */

/* The policy of a class, before overrides. */
static struct xfp_policy policy_of_class(const struct xfp_parameters *p, enum xfp_class class_)
{
	struct xfp_policy policy = {
		.format = p->format[class_],
		.floor = p->floor[class_],
		.format_by = p->format[class_].form == XFP_FORM_AUTO ? XFP_BY_DEFAULT : XFP_BY_CLASS,
		.floor_by = XFP_BY_DEFAULT,
		.by_class = class_,
		.rounds = class_ == XFP_CLASS_ROUTED_EXPERT ? p->moe_lloyd_iterations : 0,
	};

	if (class_ == XFP_CLASS_LM_HEAD && p->lm_head != XFP_LM_HEAD_QUANT) {
		policy.format = (struct xfp_format){ p->lm_head == XFP_LM_HEAD_KEEP ? XFP_FORM_KEEP : XFP_FORM_FP8, 0 };
		policy.format_by = XFP_BY_DEFAULT;
	}
	return policy;
}

/* Measure once, choose often: a format restricts the choice, not the measurements, so that one fit serves every policy.
 * Bits that the format allows in addition to --bits are also measured. fp8, which needs no fitting, is measured only if
 * it is allowed. */
static uint32_t measured_bits(const struct xfp_parameters *p, uint32_t allowed)
{
	uint32_t fp8 = allowed & XFP_FP8_BIT, fitted = allowed & ~XFP_FP8_BIT;
	struct xfp_parameters both = { .bits = (p->bits & ~XFP_FP8_BIT) | fitted }, some = { .bits = fitted };
	uint32_t base = xfp_parameters_base_bits(&both), extended = xfp_parameters_extended_bits(&both);

	if (!fitted)
		return fp8;
	if (!(fitted & base))
		return extended | fp8;
	return (xfp_parameters_extended_bits(&some) ? base | extended : base) | fp8;
}

static struct xfp_policy policy_of(const struct xfp_parameters *p, const struct subject *subject)
{
	struct xfp_policy policy = policy_of_class(p, subject->class_);

	for (uint32_t i = 0; i < p->override_count; i++) {
		const struct xfp_override *o = &p->overrides[i];

		if (!matches(o, subject))
			continue;
		if (o->is_floor) {
			policy.floor = o->floor;
			policy.floor_by = (int32_t)i;
		} else {
			policy.format = o->format;
			policy.format_by = (int32_t)i;
		}
	}
	policy.fixed = xfp_format_is_fixed(policy.format);
	if (policy.format.form == XFP_FORM_KEEP || policy.format.form == XFP_FORM_FP8) {
		policy.floor = 0;
		policy.floor_by = XFP_BY_DEFAULT;
		return policy;
	}
	if (policy.format.form == XFP_FORM_AUTO)
		policy.format.bits = p->bits;
	policy.measured = measured_bits(p, policy.format.bits);
	return policy;
}

/* The rank of a format: explicitly requested bits rank above default ones, and more bits above fewer. */
static uint32_t asks(const struct xfp_policy *policy)
{
	switch (policy->format.form) {
	case XFP_FORM_KEEP:
		return UINT32_MAX;
	case XFP_FORM_FP8:
		return UINT32_MAX - 1;
	default:
		return policy->format.form == XFP_FORM_BITS ? policy->format.bits : 0;
	}
}

struct xfp_policy xfp_policy_of(const struct xfp_parameters *p, const char *name, const char *role,
				enum xfp_class class_)
{
	const struct subject one = { name, role, class_, false }, first = words_of(name), second = head_of();
	struct xfp_policy words, head, both;

	if (!is_tied(role, class_))
		return policy_of(p, &one);
	words = policy_of(p, &first);
	head = policy_of(p, &second);
	if (head.format_by == XFP_BY_DEFAULT && head.format.form != XFP_FORM_AUTO)
		head.format_by = XFP_BY_HEAD;
	both = asks(&head) > asks(&words) ? head : words;
	/* keep and fp8 have no floor, and rank above formats that have one. */
	if (xfp_policy_plan(&both) == XFP_PLAN_FIT) {
		/* With calibration, the floor of lm_head is one of outputs, which are not measured for a tied unit. */
		bool heads = head.floor > words.floor && (head.floor_by >= 0 || !*p->calibration.sha256);

		both.floor = heads ? head.floor : words.floor;
		both.floor_by = heads ? head.floor_by : words.floor_by;
	}
	return both;
}

struct xfp_policy xfp_policy_of_unit(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit)
{
	return xfp_policy_of(parameters, unit->name, unit->role, unit->class_);
}

struct xfp_parameters xfp_policy_parameters(const struct xfp_parameters *parameters, const struct xfp_policy *policy)
{
	struct xfp_parameters seen = *parameters;

	if (policy->measured)
		seen.bits = policy->measured;
	if (policy->rounds)
		seen.lloyd_iterations = policy->rounds;
	return seen;
}

enum xfp_plan xfp_policy_plan(const struct xfp_policy *policy)
{
	return policy->format.form == XFP_FORM_KEEP  ? XFP_PLAN_KEEP
	       : policy->format.form == XFP_FORM_FP8 ? XFP_PLAN_FP8
						     : XFP_PLAN_FIT;
}

/* ---- matrices that the rules keep -------------------------------------------------------------- */

bool xfp_policy_extends(const struct xfp_parameters *parameters, enum xfp_class class_)
{
	if (class_ == XFP_CLASS_EMBEDDING)
		return parameters->keep_embeddings;
	return class_ == XFP_CLASS_ROUTER || class_ == XFP_CLASS_VISION || class_ == XFP_CLASS_MTP ||
	       class_ == XFP_CLASS_OTHER;
}

static bool stores_smaller(const struct xfp_format *format)
{
	return format->form == XFP_FORM_FP8 || format->form == XFP_FORM_BITS;
}

/* Whether an override applies to a kept matrix that has no unit yet. */
static bool reaches(const struct xfp_parameters *p, const struct xfp_override *o, const char *name,
		    enum xfp_class class_)
{
	return !strcmp(o->pattern, name) || (xfp_policy_extends(p, class_) && matches_class(o->pattern, class_));
}

bool xfp_policy_quantizes(const struct xfp_parameters *parameters, const char *name, enum xfp_class class_)
{
	bool reached = xfp_policy_extends(parameters, class_) && stores_smaller(&parameters->format[class_]);
	struct xfp_policy policy;

	for (uint32_t i = 0; !reached && i < parameters->override_count; i++) {
		const struct xfp_override *o = &parameters->overrides[i];

		reached = !o->is_floor && stores_smaller(&o->format) && reaches(parameters, o, name, class_);
	}
	if (!reached)
		return false;
	policy = xfp_policy_of(parameters, name, xfp_class_name(class_), class_);
	return stores_smaller(&policy.format);
}

/* ---- origin of a setting ----------------------------------------------------------------------- */

static char *quoted(const struct xfp_override *override)
{
	char *text = xfp_override_text(override), *quoted = NULL;

	if (text && asprintf(&quoted, "--override '%s'", text) < 0)
		quoted = NULL;
	free(text);
	return quoted;
}

char *xfp_policy_format_by(const struct xfp_parameters *parameters, const struct xfp_policy *policy)
{
	char buf[24], *text = NULL;
	int length = 0;

	if (policy->format_by >= 0)
		return quoted(&parameters->overrides[policy->format_by]);
	if (policy->format_by == XFP_BY_CLASS)
		length = asprintf(&text, "--format %s=%s", xfp_class_name(policy->by_class),
				  xfp_format_text(parameters->format[policy->by_class], buf));
	else if (policy->format_by == XFP_BY_HEAD)
		length = asprintf(&text, "--lm-head %s", xfp_setting_name(XFP_SETTING_LM_HEAD, parameters->lm_head));
	return length < 0 ? NULL : text;
}

char *xfp_policy_floor_by(const struct xfp_parameters *parameters, const struct xfp_policy *policy)
{
	return policy->floor_by >= 0 ? quoted(&parameters->overrides[policy->floor_by]) : NULL;
}

/* ---- samples ----------------------------------------------------------------------------------- */

uint32_t xfp_sample_experts(const struct xfp_moe_sample *sample, uint32_t experts)
{
	return sample->experts < experts ? sample->experts : 0;
}

/* Evenly spread experts are the middles of equal ranges. */
uint32_t xfp_sample_expert(const struct xfp_moe_sample *sample, uint32_t experts, uint32_t i)
{
	return sample->first ? i : (uint32_t)((2 * (uint64_t)i + 1) * experts / (2 * (uint64_t)sample->experts));
}
