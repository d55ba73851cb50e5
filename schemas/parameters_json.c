/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/setting.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMBEDDINGS_UNITS "units" /* value of "embeddings", in bundles that have the member */

/* The members, in the order in which they are written. */
static const enum xfp_setting_number members[] = {
	XFP_SETTING_MODE,        XFP_SETTING_BITS,         XFP_SETTING_FLOOR,   XFP_SETTING_FORMAT,
	XFP_SETTING_OVERRIDE,    XFP_SETTING_SIGMA,        XFP_SETTING_CAP,     XFP_SETTING_BALANCE,
	XFP_SETTING_ITERATIONS,  XFP_SETTING_START,        XFP_SETTING_LM_HEAD, XFP_SETTING_EMBEDDINGS,
	XFP_SETTING_ON_MISS,     XFP_SETTING_ON_NONFINITE, XFP_SETTING_SAMPLE,  XFP_SETTING_GROUP,
	XFP_SETTING_LIBRARY,     XFP_SETTING_FIT,          XFP_SETTING_LIBFIT,  XFP_SETTING_MOE_ITERATIONS,
	XFP_SETTING_CALIBRATION, XFP_SETTING_ASSIGNED,
};
#define MEMBERS (sizeof members / sizeof *members)

static bool is_number(const struct xfp_setting *setting)
{
	return setting->kind == XFP_SETTING_COUNT || setting->kind == XFP_SETTING_POWER;
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* A member of each class: its floor, or its format unless that is the default. */
static json_t *write_classes(const struct xfp_parameters *p, bool floors, bool *failed)
{
	json_t *object = json_object();
	char text[24];

	for (unsigned i = 0; i < XFP_CLASSES; i++)
		if (floors || p->format[i].form != XFP_FORM_AUTO)
			*failed |=
				json_object_set_new(object, xfp_class_name(i),
						    json_string(floors ? xfp_decimal_format(p->floor[i], XFP_NANO, text)
								       : xfp_format_text(p->format[i], text)));
	return object;
}

static json_t *write_overrides(const struct xfp_parameters *p, bool *failed)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->override_count; i++) {
		char *text = xfp_override_text(&p->overrides[i]);

		*failed |= !text || json_array_append_new(list, json_string(text));
		free(text);
	}
	return list;
}

static json_t *write_calibration(const struct xfp_calibrated *calibration)
{
	return json_pack("{s:s, s:I, s:s}", "sha256", calibration->sha256, "tokens", (json_int_t)calibration->tokens,
			 "source", calibration->source);
}

static json_t *write_assigned(const struct xfp_parameters *p)
{
	char *text = xfp_assignments_text(p->assigned, p->assigned_count);
	json_t *assigned = text ? json_string(text) : NULL;

	free(text);
	return assigned;
}

/* The value of a member; null if it is omitted. NULL, or *failed: out of memory. */
static json_t *write_value(enum xfp_setting_number number, const struct xfp_parameters *p, bool *failed)
{
	const struct xfp_setting *setting = &xfp_settings_table[number];
	const uint32_t *value = xfp_setting_address(setting, p);
	char text[24];

	switch (number) {
	case XFP_SETTING_FLOOR:
	case XFP_SETTING_FORMAT:
		return write_classes(p, number == XFP_SETTING_FLOOR, failed);
	case XFP_SETTING_OVERRIDE:
		return p->override_count ? write_overrides(p, failed) : json_null();
	case XFP_SETTING_EMBEDDINGS:
		return p->keep_embeddings ? json_null() : json_string(EMBEDDINGS_UNITS);
	case XFP_SETTING_CALIBRATION:
		return *p->calibration.sha256 ? write_calibration(&p->calibration) : json_null();
	case XFP_SETTING_ASSIGNED:
		return p->assigned_count ? write_assigned(p) : json_null();
	default:
		if (setting->optional && !*value)
			return json_null();
		return is_number(setting) ? json_integer(*value) : json_string(xfp_setting_text(setting, p, text));
	}
}

char *xfp_parameters_to_json(const struct xfp_parameters *p)
{
	json_t *object = json_object();
	bool failed = !object;
	char *text;

	for (size_t i = 0; i < MEMBERS; i++) {
		const struct xfp_setting *setting = &xfp_settings_table[members[i]];
		json_t *value = write_value(members[i], p, &failed);

		if (!value)
			failed = true;
		else if (!json_is_null(value) && !(json_is_object(value) && !json_object_size(value)))
			failed |= json_object_set(object, setting->recorded, value) != 0;
		json_decref(value);
	}
	text = failed ? NULL : json_dumps(object, JSON_INDENT(2));
	json_decref(object);
	return text;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* A JSON object whose members are removed as they are read; those left at the end are unknown. The first error is
 * kept. */
struct parameter_reader {
	json_t *object;
	const char *where;
	enum xfp_status status;
	struct xfp_error *err;
};

static void complain(struct parameter_reader *r, const char *name, const char *what)
{
	if (!r->status)
		r->status = xfp_fail(r->err, XFP_BAD_INPUT, "%s: \"%s\" %s", r->where, name, what);
}

/* A text member, valid until the next call with its name. NULL after an error. */
static const char *get_text(struct parameter_reader *r, const char *name)
{
	json_t *value = json_object_get(r->object, name);

	if (!value)
		complain(r, name, "is missing");
	else if (!json_is_string(value))
		complain(r, name, "is not text");
	return json_string_value(value);
}

static void consume(struct parameter_reader *r, const char *name, bool good)
{
	if (!good)
		complain(r, name, "has an impossible value");
	json_object_del(r->object, name);
}

static void check_empty(struct parameter_reader *r)
{
	const char *left = json_object_iter_key(json_object_iter(r->object));

	if (left)
		complain(r, left, "is unknown");
}

/* Members of classes: all floors, or formats that are not the default. */
static void read_classes(struct parameter_reader *r, const char *name, bool floors, struct xfp_parameters *p)
{
	struct parameter_reader classes = { json_object_get(r->object, name), r->where, XFP_OK, r->err };

	if (!json_is_object(classes.object))
		complain(r, name, "is not an object");
	if (r->status)
		return;
	for (unsigned i = 0; i < XFP_CLASSES; i++) {
		const char *class = xfp_class_name(i), *text;

		if (!floors && !json_object_get(classes.object, class))
			continue;
		text = get_text(&classes, class);
		consume(&classes, class,
			text && (floors ? xfp_fraction_parse(text, &p->floor[i])
					: xfp_format_parse(text, &p->format[i])));
	}
	check_empty(&classes);
	r->status = classes.status;
	json_object_del(r->object, name);
}

static void read_overrides(struct parameter_reader *r, const char *name, struct xfp_parameters *p)
{
	json_t *list = json_object_get(r->object, name), *item;
	struct xfp_override override;
	size_t i;

	if (!json_is_array(list))
		complain(r, name, "is not a list");
	json_array_foreach(list, i, item)
	{
		const char *text = json_string_value(item);

		if (r->status)
			return;
		if (!text || xfp_override_parse(text, &override, NULL)) {
			complain(r, name, "has an impossible value");
		} else if (!xfp_parameters_add_override(p, &override)) {
			free(override.pattern);
			r->status = xfp_no_memory(r->err);
		}
	}
	json_object_del(r->object, name);
}

static bool is_printable(const char *text)
{
	while (*text > ' ' && *text <= '~')
		text++;
	return !*text;
}

static void read_calibration(struct parameter_reader *r, const char *name, struct xfp_calibrated *to)
{
	struct parameter_reader members = { json_object_get(r->object, name), r->where, XFP_OK, r->err };
	const char *sha256, *source;
	json_int_t tokens;

	if (!json_is_object(members.object)) {
		complain(r, name, "is not an object");
		return;
	}
	sha256 = get_text(&members, "sha256");
	source = get_text(&members, "source");
	if (sha256 && source) {
		tokens = json_integer_value(json_object_get(members.object, "tokens"));
		snprintf(to->sha256, sizeof to->sha256, "%s", sha256);
		snprintf(to->source, sizeof to->source, "%s", source);
		to->tokens = (uint64_t)tokens;
		consume(&members, "tokens", tokens > 0);
		consume(&members, "sha256", strlen(sha256) == 64 && strspn(sha256, "0123456789abcdef") == 64);
		consume(&members, "source", *source && strlen(source) < sizeof to->source && is_printable(source));
	}
	check_empty(&members);
	r->status = r->status ? r->status : members.status;
	json_object_del(r->object, name);
}

static void read_number(struct parameter_reader *r, const struct xfp_setting *setting, struct xfp_parameters *p)
{
	const json_t *number = json_object_get(r->object, setting->recorded);
	char digits[24];

	snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	consume(r, setting->recorded, json_is_integer(number) && xfp_setting_parse(setting, digits, p));
}

static void read_value(struct parameter_reader *r, enum xfp_setting_number number, uint32_t units,
		       struct xfp_parameters *p)
{
	const struct xfp_setting *setting = &xfp_settings_table[number];
	const char *name = setting->recorded, *text;

	if (!json_object_get(r->object, name)) {
		if (!setting->optional)
			complain(r, name, "is missing");
	} else if (number == XFP_SETTING_FLOOR || number == XFP_SETTING_FORMAT) {
		read_classes(r, name, number == XFP_SETTING_FLOOR, p);
	} else if (number == XFP_SETTING_OVERRIDE) {
		read_overrides(r, name, p);
	} else if (number == XFP_SETTING_CALIBRATION) {
		read_calibration(r, name, &p->calibration);
	} else if (is_number(setting)) {
		read_number(r, setting, p);
	} else if ((text = get_text(r, name)) && number == XFP_SETTING_EMBEDDINGS) {
		p->keep_embeddings = false;
		consume(r, name, !strcmp(text, EMBEDDINGS_UNITS));
	} else if (text && number == XFP_SETTING_ASSIGNED) {
		consume(r, name, xfp_assignments_parse(text, units, &p->assigned, &p->assigned_count));
	} else {
		consume(r, name, text && xfp_setting_parse(setting, text, p));
	}
}

enum xfp_status xfp_parameters_from_json(const char *text, const char *where, uint32_t units,
					 struct xfp_parameters *out, struct xfp_error *err)
{
	struct parameter_reader r = { .where = where, .err = err };
	struct xfp_parameters p = { .keep_embeddings = true };
	json_error_t problem;

	errno = 0;
	/* When memory runs out, jansson reports a syntax error. */
	if (!(r.object = json_loads(text, JSON_REJECT_DUPLICATES, &problem)))
		return errno == ENOMEM ? xfp_no_memory_for(err, where)
				       : xfp_fail(err, XFP_BAD_INPUT, "%s: not JSON (line %d: %s)", where, problem.line,
						  problem.text);
	if (!json_is_object(r.object)) {
		json_decref(r.object);
		return xfp_fail(err, XFP_BAD_INPUT, "%s: not a JSON object", where);
	}
	for (size_t i = 0; i < MEMBERS; i++)
		read_value(&r, members[i], units, &p);
	if (!r.status && !xfp_group_size_fits(p.group_size, p.modes))
		complain(&r, "group_size", "has an impossible value");
	check_empty(&r);
	json_decref(r.object);
	if (!r.status)
		*out = p;
	else
		xfp_parameters_free(&p);
	return r.status;
}
