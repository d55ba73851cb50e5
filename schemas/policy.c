/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/glob.h"

/* ---- matching ---------------------------------------------------------------------------------- */

/* A name may hold characters that mean something in a pattern. */
static bool matches_glob(const char *pattern, const char *name)
{
	return !strcmp(pattern, name) || xfp_glob_matches(pattern, name);
}

static bool matches_class(const char *pattern, enum xfp_class class_)
{
	const char *name = xfp_after(pattern, XFP_CLASS_PREFIX);

	return name && !strcmp(name, xfp_class_name(class_));
}

bool xfp_override_matches(const struct xfp_override *override, const char *name, const char *role,
			  enum xfp_class class_)
{
	const char *wanted = xfp_after(override->pattern, XFP_ROLE_PREFIX);

	if (xfp_after(override->pattern, XFP_CLASS_PREFIX))
		return matches_class(override->pattern, class_);
	return wanted ? matches_glob(wanted, role) : matches_glob(override->pattern, name);
}

/* ---- one unit ---------------------------------------------------------------------------------- */

/* What the class alone says. */
static struct xfp_policy of_class(const struct xfp_parameters *p, enum xfp_class class_)
{
	struct xfp_policy policy = {
		.format = p->format[class_],
		.floor = p->floor[class_],
		.format_by = p->format[class_].form == XFP_FORM_AUTO ? XFP_BY_DEFAULT : XFP_BY_CLASS,
		.floor_by = XFP_BY_DEFAULT,
	};

	if (class_ == XFP_CLASS_LM_HEAD && p->lm_head != XFP_LM_HEAD_QUANT) {
		policy.format = (struct xfp_format){ p->lm_head == XFP_LM_HEAD_KEEP ? XFP_FORM_KEEP : XFP_FORM_FP8, 0 };
		policy.format_by = XFP_BY_DEFAULT;
	}
	return policy;
}

/* Measure once, choose often: a format limits what is chosen, not what is measured, so that
 * one fit serves every policy. What the format allows beyond --bits is measured, too. */
static uint32_t measured_bits(const struct xfp_parameters *p, uint32_t allowed)
{
	struct xfp_parameters both = { .bits = p->bits | allowed }, some = { .bits = allowed };
	uint32_t base = xfp_parameters_base_bits(&both), extended = xfp_parameters_extended_bits(&both);

	if (!(allowed & base))
		return extended;
	return xfp_parameters_extended_bits(&some) ? base | extended : base;
}

struct xfp_policy xfp_policy_of(const struct xfp_parameters *p, const char *name, const char *role,
				enum xfp_class class_)
{
	struct xfp_policy policy = of_class(p, class_);

	for (uint32_t i = 0; i < p->override_count; i++) {
		const struct xfp_override *o = &p->overrides[i];

		if (!xfp_override_matches(o, name, role, class_))
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

struct xfp_policy xfp_policy_of_unit(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit)
{
	return xfp_policy_of(parameters, unit->name, unit->role, unit->class_);
}

struct xfp_parameters xfp_policy_parameters(const struct xfp_parameters *parameters, const struct xfp_policy *policy)
{
	struct xfp_parameters seen = *parameters;

	if (policy->measured)
		seen.bits = policy->measured;
	return seen;
}

enum xfp_plan xfp_policy_plan(const struct xfp_policy *policy)
{
	return policy->format.form == XFP_FORM_KEEP  ? XFP_PLAN_KEEP
	       : policy->format.form == XFP_FORM_FP8 ? XFP_PLAN_FP8
						     : XFP_PLAN_FIT;
}

/* ---- matrices that the rules keep -------------------------------------------------------------- */

bool xfp_policy_extends(enum xfp_class class_)
{
	return class_ == XFP_CLASS_EMBEDDING || class_ == XFP_CLASS_ROUTER || class_ == XFP_CLASS_VISION ||
	       class_ == XFP_CLASS_MTP || class_ == XFP_CLASS_OTHER;
}

static bool stores_smaller(const struct xfp_format *format)
{
	return format->form == XFP_FORM_FP8 || format->form == XFP_FORM_BITS;
}

/* Whether an override reaches a kept matrix that has no unit yet. */
static bool reaches(const struct xfp_override *o, const char *name, enum xfp_class class_)
{
	return !strcmp(o->pattern, name) || (xfp_policy_extends(class_) && matches_class(o->pattern, class_));
}

bool xfp_policy_takes(const struct xfp_parameters *parameters, const char *name, enum xfp_class class_)
{
	bool reached = xfp_policy_extends(class_) && stores_smaller(&parameters->format[class_]);
	struct xfp_policy policy;

	for (uint32_t i = 0; !reached && i < parameters->override_count; i++) {
		const struct xfp_override *o = &parameters->overrides[i];

		reached = !o->is_floor && stores_smaller(&o->format) && reaches(o, name, class_);
	}
	if (!reached)
		return false;
	policy = xfp_policy_of(parameters, name, xfp_class_name(class_), class_);
	return stores_smaller(&policy.format);
}

/* ---- who said so ------------------------------------------------------------------------------- */

static char *quoted(const struct xfp_override *override)
{
	char *text = xfp_override_text(override), *quoted = NULL;

	if (text && asprintf(&quoted, "--override '%s'", text) < 0)
		quoted = NULL;
	free(text);
	return quoted;
}

char *xfp_policy_format_by(const struct xfp_parameters *parameters, const struct xfp_policy *policy,
			   enum xfp_class class_)
{
	char buf[24], *text = NULL;

	if (policy->format_by >= 0)
		return quoted(&parameters->overrides[policy->format_by]);
	if (policy->format_by == XFP_BY_CLASS && asprintf(&text, "--format %s=%s", xfp_class_name(class_),
							  xfp_format_text(parameters->format[class_], buf)) < 0)
		text = NULL;
	return text;
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

/* Spread: the middles of equal stretches. */
uint32_t xfp_sample_expert(const struct xfp_moe_sample *sample, uint32_t experts, uint32_t i)
{
	return sample->first ? i : (uint32_t)((2 * (uint64_t)i + 1) * experts / (2 * (uint64_t)sample->experts));
}
