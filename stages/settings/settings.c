/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/suggestion.h"
#include "stages/settings/goal_settings.h"

#define BLANKS " \t\n"

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

static bool set_class(struct xfp_settings *s, int setting, enum xfp_class class_, const char *value)
{
	struct xfp_format format;

	if (setting == XFP_SETTING_FLOOR) {
		if (!xfp_fraction_parse(value, &s->floor[class_]))
			return false;
		s->has_floor[class_] = true;
		return true;
	}
	if (!xfp_format_parse(value, &format))
		return false;
	xfp_parameters_set_format(&s->parameters, class_, format);
	return true;
}

/* Set floors or formats: "CLASS=VALUE,CLASS=VALUE". */
static enum xfp_status set_classes(struct xfp_settings *s, int setting, const char *where, const char *text,
				   struct xfp_error *err)
{
	const char *expected = xfp_settings_table[setting].expected;
	char *copy = strdup(text), *rest = copy, *item;
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);

	while (!status && (item = next_item(&rest))) {
		char *value = strchr(item, '=');
		enum xfp_class class_;

		if (value)
			*value++ = '\0';
		if (!value)
			status = xfp_fail(err, XFP_USAGE, "%s '%s': expected CLASS=%s", where, text, expected);
		else if (!xfp_class_parse(item, &class_))
			status = no_such_class(where, item, err);
		else if (!set_class(s, setting, class_, value))
			status = xfp_fail(err, XFP_USAGE, "%s '%s=%s': expected %s", where, item, value, expected);
	}
	free(copy);
	return status;
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

/* ---- setting ----------------------------------------------------------------------------------- */

int xfp_setting_find(const char *name)
{
	for (int i = 0; i < XFP_SETTING_OPTIONS; i++)
		if (!strcmp(xfp_settings_table[i].name, name))
			return i;
	return -1;
}

const char *xfp_setting_suggestion(const char *word, char text[XFP_DID_YOU_MEAN])
{
	const char *names[XFP_SETTING_OPTIONS];

	for (int i = 0; i < XFP_SETTING_OPTIONS; i++)
		names[i] = xfp_settings_table[i].name;
	return xfp_did_you_mean("", word, names, XFP_SETTING_OPTIONS, text);
}

bool xfp_setting_is_floor(int setting)
{
	return setting == XFP_SETTING_STRICT || setting == XFP_SETTING_LAZY || setting == XFP_SETTING_FLOOR;
}

static enum xfp_status set_value(struct xfp_settings *s, int setting, const char *where, const char *text,
				 struct xfp_error *err)
{
	const struct xfp_setting *row = &xfp_settings_table[setting];
	uint32_t sigma = XFP_SIGMA_AUTO;
	char range[40] = "";
	bool good;

	if (setting == XFP_SETTING_STRICT || setting == XFP_SETTING_LAZY)
		good = xfp_fraction_parse(text, setting == XFP_SETTING_STRICT ? &s->strict : &s->lazy);
	else if (setting == XFP_SETTING_SIGMA && xfp_sigma_parse(text, &sigma) && !sigma)
		good = !strcmp(text, "none") && xfp_setting_parse(row, text, &s->parameters); /* not "0" */
	else
		good = xfp_setting_parse(row, text, &s->parameters);
	if (row->max)
		snprintf(range, sizeof range, " from %u to %u", row->min, row->max);
	return good ? XFP_OK : xfp_fail(err, XFP_USAGE, "%s '%s': expected %s%s", where, text, row->expected, range);
}

enum xfp_status xfp_setting_set(struct xfp_settings *s, int setting, const char *where, const char *text,
				struct xfp_error *err)
{
	static enum xfp_status (*const setters[XFP_SETTINGS])(struct xfp_settings *, const char *, const char *,
							      struct xfp_error *) = {
		[XFP_SETTING_TARGET_SIZE] = xfp_set_target_size, [XFP_SETTING_TARGET_BPW] = xfp_set_target_bpw,
		[XFP_SETTING_ENVELOPE] = xfp_set_envelope,       [XFP_SETTING_RESERVE] = xfp_set_reserve,
		[XFP_SETTING_WEIGHT] = xfp_set_weight,           [XFP_SETTING_OVERRIDE] = set_overrides,
	};
	enum xfp_status status;

	if (setters[setting])
		status = setters[setting](s, where, text, err);
	else if (setting == XFP_SETTING_FLOOR || setting == XFP_SETTING_FORMAT)
		status = set_classes(s, setting, where, text, err);
	else
		status = set_value(s, setting, where, text, err);
	if (status)
		return status;
	if (setting == XFP_SETTING_LM_HEAD) /* --format lm_head=4 is the other way to set it */
		s->parameters.format[XFP_CLASS_LM_HEAD] = (struct xfp_format){ .form = XFP_FORM_AUTO };
	s->given |= 1u << setting;
	s->layer |= 1u << setting;
	return XFP_OK;
}

static enum xfp_status parse_setting(const struct xfp_option *option, const char *where, const char *text,
				     struct xfp_error *err)
{
	return xfp_setting_set(option->context, xfp_setting_find(option->name), where, text, err);
}

struct xfp_option xfp_setting_option(enum xfp_setting_number setting, const char *value, const char *text,
				     struct xfp_settings *settings)
{
	const struct xfp_setting *row = &xfp_settings_table[setting];

	return (struct xfp_option){ .name = row->name,
				    .value = value ? value : row->value,
				    .text = text ? text : row->text,
				    .complete = row->complete,
				    .choices = row->names,
				    .parse = parse_setting,
				    .context = settings };
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

	if ((s->layer & XFP_SETTING_BIT(GROUP)) && !libraries)
		return xfp_fail(err, XFP_USAGE,
				"--group-size %u: --mode v2 has a codebook for each row and no groups; omit one of "
				"them, or use --mode v2c",
				p->group_size);
	if ((s->layer & XFP_SETTING_BIT(LIBRARY)) && !v2a)
		return xfp_fail(err, XFP_USAGE,
				"--library-size %u: only libraries of v2a have a variable size; omit it, or use "
				"--mode v2a",
				p->library_size);
	if ((s->layer & XFP_SETTING_BIT(LIBFIT)) && p->libfit == XFP_LIBFIT_PUBLISHED && !v2a)
		return xfp_fail(err, XFP_USAGE,
				"--libfit published: applies only to libraries of v2a; omit it, or use --mode v2a");
	if ((s->layer & XFP_SETTING_BIT(FIT)) && p->fit == XFP_FIT_OPTIMAL && !(p->modes >> XFP_MODE_V2 & 1))
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
static void set_defaults(struct xfp_settings *s)
{
	struct xfp_parameters *p = &s->parameters;

	if (s->repeated)
		return;
	if (!(s->given & XFP_SETTING_BIT(BITS)))
		p->bits = xfp_default_bits(p->modes);
	if (!(s->given & XFP_SETTING_BIT(SIGMA)))
		p->outlier_sigma = xfp_default_sigma(p->modes);
	if (!(s->given & XFP_SETTING_BIT(CAP)))
		p->outlier_cap = xfp_default_cap(p->outlier_sigma);
}

/* Set the floor of a class that has none of its own in this layer. Floors of embeddings and output heads are stricter
 * than others, and a general floor can only raise them; not for a bundle made when all classes had one floor. */
static void derive_floor(struct xfp_settings *s, enum xfp_class class_)
{
	bool words = (class_ == XFP_CLASS_EMBEDDING || class_ == XFP_CLASS_LM_HEAD) && !s->parameters.keep_embeddings;
	uint32_t *floor = &s->parameters.floor[class_];

	if (class_ == XFP_CLASS_ROUTED_EXPERT)
		*floor = s->layer & XFP_SETTING_BIT(LAZY) ? s->lazy : *floor;
	else if ((s->layer & XFP_SETTING_BIT(STRICT)) && (!words || s->strict > *floor))
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
			derive_floor(s, (enum xfp_class)i);
		s->asked_floor[i] |=
			s->has_floor[i] ||
			s->layer & (i == XFP_CLASS_ROUTED_EXPERT ? XFP_SETTING_BIT(LAZY) : XFP_SETTING_BIT(STRICT));
		s->has_floor[i] = false;
	}
	if (!status)
		status = check_modes(s, err);
	set_defaults(s);
	if (!status)
		status = xfp_finish_goal(s, err);
	s->layer = 0;
	return status ? status : finish_modes(&s->parameters, err);
}
