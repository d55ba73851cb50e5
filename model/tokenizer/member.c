/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/member.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

#define MAX_DEPTH 8

void xfp_part_refuse(struct xfp_part_reader *r, const char *where, const char *format, ...)
{
	char text[512];
	va_list args;

	if (r->status)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	r->status = xfp_fail(r->err, XFP_BAD_INPUT, "%s: %s: %s", r->file, where, text);
}

const char *xfp_part_type(struct xfp_part_reader *r, const char *where, const json_t *object)
{
	if (!r->status && !json_is_object(object))
		xfp_part_refuse(r, where, "not an object");
	return xfp_part_text(r, where, object, "type", NULL);
}

void xfp_part_only(struct xfp_part_reader *r, const char *where, const json_t *object, const char *const *names)
{
	const char *name;
	json_t *value;

	if (r->status)
		return;
	if (!json_is_object(object)) {
		xfp_part_refuse(r, where, "not an object");
		return;
	}
	json_object_foreach ((json_t *)object, name, value) {
		bool known = false;

		for (const char *const *n = names; *n && !known; n++)
			known = !strcmp(*n, name);
		if (!known)
			xfp_part_refuse(r, where, "member \"%s\" is not known to this version",
					xfp_printable(name).text);
	}
}

static const json_t *member(const struct xfp_part_reader *r, const json_t *object, const char *name)
{
	const json_t *value = r->status ? NULL : json_object_get(object, name);

	return json_is_null(value) ? NULL : value;
}

bool xfp_part_bool(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name, bool missing)
{
	const json_t *value = member(r, object, name);

	if (value && !json_is_boolean(value))
		xfp_part_refuse(r, where, "%s is neither true nor false", name);
	return value ? json_is_true(value) : missing;
}

const char *xfp_part_text(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name,
			  const char *missing)
{
	const json_t *value = member(r, object, name);

	if (value && !json_is_string(value))
		xfp_part_refuse(r, where, "%s is not a text", name);
	else if (!value && !missing)
		xfp_part_refuse(r, where, "%s is missing", name);
	if (r->status)
		return "";
	return value ? json_string_value(value) : missing;
}

uint32_t xfp_part_number(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name)
{
	const json_t *value = member(r, object, name);
	json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

	if (number >= 0 && number < INT32_MAX)
		return (uint32_t)number;
	xfp_part_refuse(r, where, "%s is not a number from 0 to 2147483646", name);
	return 0;
}

const json_t *xfp_part_list(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name)
{
	const json_t *value = member(r, object, name);

	if (!json_is_array(value))
		xfp_part_refuse(r, where, "%s is not a list", name);
	return r->status ? NULL : value;
}

void xfp_part_sequence(struct xfp_part_reader *r, const char *where, const json_t *object, const char *name,
		       xfp_part_parser *parse, void *to, int depth)
{
	const char *const names[] = { "type", name, NULL };
	const json_t *all = xfp_part_list(r, where, object, name);

	xfp_part_only(r, where, object, names);
	if (depth == MAX_DEPTH)
		xfp_part_refuse(r, where, "Sequences are nested too deeply");
	for (size_t i = 0; !r->status && i < json_array_size(all); i++) {
		char part[96];

		snprintf(part, sizeof part, "%.64s[%zu]", where, i);
		parse(r, part, json_array_get(all, i), to, depth + 1);
	}
}
