/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/user_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/mapped.h"
#include "stages/settings/like.h"
#include "stages/settings/profile.h"

enum xfp_status xfp_user_settings_add(struct xfp_user_settings *given, int setting, const char *where, const char *text,
				      struct xfp_error *err)
{
	struct xfp_user_setting *grown = realloc(given->list, (given->count + 1) * sizeof *grown);

	if (!grown)
		return xfp_no_memory(err);
	given->list = grown;
	grown += given->count++;
	*grown = (struct xfp_user_setting){ .setting = setting, .text = strdup(text) };
	snprintf(grown->where, sizeof grown->where, "%s", where);
	return grown->text ? XFP_OK : xfp_no_memory(err);
}

void xfp_user_settings_free(struct xfp_user_settings *given)
{
	for (size_t i = 0; i < given->count; i++)
		free(given->list[i].text);
	free(given->list);
	*given = (struct xfp_user_settings){ .count = 0 };
}

/* Check that a setting given with --like matches the settings of the bundle. */
static enum xfp_status check(const char *like, const char *before, const struct xfp_user_setting *given,
			     const struct xfp_settings *now, struct xfp_error *err)
{
	char *after = xfp_parameters_to_json(&now->parameters);
	enum xfp_status status = XFP_OK;

	if (!before || !after)
		status = xfp_no_memory(err);
	else if (strcmp(before, after))
		status = xfp_fail(err, XFP_USAGE,
				  "%s '%s': contradicts --like %s, which was not made with it; see xfp info",
				  given->where, given->text, like);
	free(after);
	return status;
}

/* Apply the settings. `like` NULL: any value is allowed. */
static enum xfp_status apply(const struct xfp_user_settings *given, const char *like, struct xfp_settings *settings,
			     struct xfp_error *err)
{
	char *before = like ? xfp_parameters_to_json(&settings->parameters) : NULL;
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < given->count; i++) {
		const struct xfp_user_setting *one = &given->list[i];

		status = xfp_setting_set(settings, one->setting, one->where, one->text, err);
		if (!status && like)
			status = check(like, before, one, settings, err);
	}
	if (!status)
		status = xfp_settings_finish(settings, err);
	/* Floors are compared here, all at once; the message names the last one. */
	for (size_t i = given->count; !status && like && i-- > 0;)
		if (xfp_setting_is_floor(given->list[i].setting))
			status = check(like, before, &given->list[i], settings, err);
	free(before);
	return status;
}

/* Find the setting that requests a quantized output head, for the message if the model has none. */
static enum xfp_status find_head(const struct xfp_user_settings *given, struct xfp_request *r, struct xfp_error *err)
{
	for (size_t i = given->count; r->parameters.lm_head == XFP_LM_HEAD_QUANT && i-- > 0;) {
		const struct xfp_user_setting *last = &given->list[i];

		if (last->setting != XFP_SETTING_LM_HEAD &&
		    (last->setting != XFP_SETTING_FORMAT || !strstr(last->text, "lm_head=")))
			continue;
		r->head_asked = xfp_formatted("%s '%s'", last->where, last->text);
		return r->head_asked ? XFP_OK : xfp_no_memory(err);
	}
	return XFP_OK;
}

/* With a goal, a floor is a condition only if it was given. */
static enum xfp_status settle_goal(const struct xfp_request *r, struct xfp_settings *settings, struct xfp_error *err)
{
	if (!settings->goal.kind)
		return XFP_OK;
	if (r->like)
		return xfp_fail(err, XFP_USAGE, "%s: contradicts --like %s, which determines how units are stored",
				settings->goal.option, r->like);
	for (int i = 0; i < XFP_CLASSES; i++)
		if (!settings->asked_floor[i])
			settings->parameters.floor[i] = 0;
	return XFP_OK;
}

/* Error feedback exists for groups of columns, so auto means v2c and fp8. A bundle's calibration is repeated. */
static enum xfp_status settle_calibration(struct xfp_request *r, struct xfp_parameters *p, struct xfp_error *err)
{
	struct xfp_calibration_request *wanted = &r->calibration;
	const char *option = *wanted->variable ? wanted->variable : "--calibrate";
	char sample[24];

	if (wanted->self + !!wanted->text + !!wanted->ids > 1)
		return xfp_fail(err, XFP_USAGE, "%s contradict one another; give one of them",
				*wanted->variable ? "XFP_CALIBRATE_TEXT, XFP_CALIBRATE_IDS and XFP_CALIBRATE=self"
						  : "--calibrate-text, --calibrate-ids and --calibrate-self");
	if (r->like && wanted->wanted && !*p->calibration.sha256)
		return xfp_fail(err, XFP_USAGE, "%s: contradicts --like %s, which was not made with it; see xfp info",
				option, r->like);
	if (r->like || !wanted->wanted) {
		wanted->wanted = *p->calibration.sha256;
		return XFP_OK;
	}
	if (p->modes == XFP_AUTO_MODES && p->fit == XFP_FIT_OPTIMAL)
		return xfp_fail(err, XFP_USAGE,
				"--fit optimal: applies only to codebooks of v2, which %s does not use; omit one of "
				"them",
				option);
	if (p->moe_sample.experts)
		return xfp_fail(err, XFP_USAGE,
				"--moe-sample %s: with %s all experts decide for their stack, by their outputs; omit "
				"one of them, or use --moe-sample 0",
				xfp_moe_sample_text(p->moe_sample, sample), option);
	if (p->modes == XFP_AUTO_MODES)
		p->modes = 1u << XFP_MODE_V2C;
	if (p->modes == 1u << XFP_MODE_V2C)
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE, "%s: mode %s has no calibration; omit it, or use --mode v2c or auto", option,
			xfp_modes_name(p->modes));
}

enum xfp_status xfp_user_settings_resolve(const struct xfp_user_settings *given, struct xfp_options *o,
					  struct xfp_error *err)
{
	struct xfp_request *r = &o->request;
	struct xfp_calibration_request *wanted = &r->calibration;
	struct xfp_settings settings = { .parameters = xfp_parameters_default(), .repeated = r->like };
	enum xfp_status status = XFP_OK;

	wanted->wanted |= wanted->self || wanted->tokens;
	settings.calibrated = wanted->wanted;
	if (r->like && o->profile) {
		status = xfp_fail(err, XFP_USAGE, "--like %s: has settings of its own; leave out --profile %s", r->like,
				  o->profile);
	} else if (r->like) {
		xfp_mapped_begin(r->program, r->like, NULL);
		status = xfp_like_settings(r->like, &settings.parameters, &r->family, err);
		xfp_mapped_end();
	} else if (o->profile) {
		status = xfp_profile_read(o->profile, &settings, err);
	} else if (settings.calibrated) {
		/* Without --calibrate, the defaults are this profile. */
		status = xfp_profile_read(XFP_DEFAULT_PROFILE, &settings, err);
		settings.given = 0;
		memset(settings.asked_floor, 0, sizeof settings.asked_floor);
	}
	if (!status)
		status = apply(given, r->like, &settings, err);
	if (!status)
		status = settle_goal(r, &settings, err);
	if (!status)
		status = settle_calibration(r, &settings.parameters, err);
	r->parameters = settings.parameters;
	r->goal = settings.goal;
	return status ? status : find_head(given, r, err);
}
