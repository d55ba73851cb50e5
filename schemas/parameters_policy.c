/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameters_policy.c - formats, overrides and samples among the parameters: parsing and formatting.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/suggestion.h"
#include "base/utf8.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/parameters.h"

#define FLOOR_PREFIX "floor:"
#define FIRST_PREFIX "first:"
#define MAX_EXPERTS 1000000u

const char *xfp_after_prefix(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(text, prefix, length) ? NULL : text + length;
}

void xfp_parameters_free(struct xfp_parameters *parameters)
{
	for (uint32_t i = 0; i < parameters->override_count; i++)
		free(parameters->overrides[i].pattern);
	free(parameters->overrides);
	parameters->overrides = NULL;
	parameters->override_count = 0;
	free(parameters->assigned);
	parameters->assigned = NULL;
	parameters->assigned_count = 0;
}

void xfp_parameters_set_format(struct xfp_parameters *parameters, enum xfp_class class_, struct xfp_format format)
{
	if (class_ == XFP_CLASS_LM_HEAD) {
		parameters->lm_head = format.form == XFP_FORM_KEEP  ? XFP_LM_HEAD_KEEP
				      : format.form == XFP_FORM_FP8 ? XFP_LM_HEAD_FP8
								    : XFP_LM_HEAD_QUANT;
		if (format.form != XFP_FORM_BITS)
			format = (struct xfp_format){ .form = XFP_FORM_AUTO };
	}
	parameters->format[class_] = format;
}

bool xfp_parameters_add_override(struct xfp_parameters *parameters, const struct xfp_override *override)
{
	struct xfp_override *grown =
		realloc(parameters->overrides, ((size_t)parameters->override_count + 1) * sizeof *grown);

	if (!grown)
		return false;
	parameters->overrides = grown;
	grown[parameters->override_count++] = *override;
	return true;
}

/* ---- formats ----------------------------------------------------------------------------------- */

bool xfp_format_parse(const char *text, struct xfp_format *format)
{
	static const char *const names[] = { "auto", "keep", "fp8" };
	struct xfp_format read = { .form = XFP_FORM_BITS };

	for (int i = 0; i < XFP_FORM_BITS; i++)
		if (!strcmp(text, names[i]))
			read.form = (enum xfp_form)i;
	if (read.form == XFP_FORM_BITS && !xfp_bits_parse(text, &read.bits))
		return false;
	if (read.bits == XFP_FP8_BIT)
		read = (struct xfp_format){ .form = XFP_FORM_FP8 };
	*format = read;
	return true;
}

const char *xfp_format_text(struct xfp_format format, char buf[24])
{
	switch (format.form) {
	case XFP_FORM_KEEP:
		return "keep";
	case XFP_FORM_FP8:
		return "fp8";
	case XFP_FORM_BITS:
		return xfp_bits_format(format.bits, buf);
	default:
		return "auto";
	}
}

/* ---- overrides --------------------------------------------------------------------------------- */

enum xfp_status xfp_override_parse(const char *text, struct xfp_override *override, struct xfp_error *err)
{
	const char *equals = strrchr(text, '='), *value = equals ? equals + 1 : "",
		   *floor = xfp_after_prefix(value, FLOOR_PREFIX), *class = xfp_after_prefix(text, XFP_CLASS_PREFIX);
	struct xfp_override read = { .is_floor = floor };
	char list[XFP_NO_CLASS];
	enum xfp_class ignored;

	if (!equals || equals == text)
		return xfp_fail(err, XFP_USAGE,
				"expected PATTERN=keep|fp8|BITS|auto|floor:X, as in '*.o_proj.weight=5'");
	if (strpbrk(text, " \t\n"))
		return xfp_fail(err, XFP_USAGE, "blanks separate overrides; match one with ? in the pattern");
	if (!xfp_utf8_valid(text, strlen(text)))
		return xfp_fail(err, XFP_USAGE, "the pattern is not UTF-8, but all names are");
	if (floor ? !xfp_fraction_parse(floor, &read.floor) : !xfp_format_parse(value, &read.format))
		return xfp_fail(err, XFP_USAGE,
				"'%s' is neither keep, fp8, bits from 2 to 6 (4, or 3,4), auto nor a floor as in "
				"floor:0.995",
				value);
	if (!(read.pattern = strndup(text, (size_t)(equals - text))))
		return xfp_no_memory(err);
	if (class && !xfp_class_parse(xfp_after_prefix(read.pattern, XFP_CLASS_PREFIX), &ignored)) {
		xfp_fail(err, XFP_USAGE, "%s",
			 xfp_no_such_class(xfp_after_prefix(read.pattern, XFP_CLASS_PREFIX), list));
		free(read.pattern);
		return XFP_USAGE;
	}
	*override = read;
	return XFP_OK;
}

const char *xfp_no_such_class(const char *name, char text[XFP_NO_CLASS])
{
	const char *names[XFP_CLASSES];
	char list[XFP_CLASS_LIST], meant[XFP_DID_YOU_MEAN];

	for (int i = 0; i < XFP_CLASSES; i++)
		names[i] = xfp_class_name((enum xfp_class)i);
	xfp_did_you_mean("", name, names, XFP_CLASSES, meant);
	snprintf(text, XFP_NO_CLASS, "no class '%s'%s %s are %s", xfp_printable(name).text, *meant ? meant : ";",
		 *meant ? "Classes" : "classes", xfp_class_list(list));
	return text;
}

char *xfp_override_text(const struct xfp_override *override)
{
	char buf[24];
	const char *value = override->is_floor ? xfp_decimal_format(override->floor, XFP_NANO, buf)
					       : xfp_format_text(override->format, buf),
		   *kind = override->is_floor ? FLOOR_PREFIX : "";
	size_t size = strlen(override->pattern) + strlen(kind) + strlen(value) + 2;
	char *text = malloc(size);

	if (text)
		snprintf(text, size, "%s=%s%s", override->pattern, kind, value);
	return text;
}

/* ---- samples ----------------------------------------------------------------------------------- */

bool xfp_moe_sample_parse(const char *text, struct xfp_moe_sample *sample)
{
	const char *first = xfp_after_prefix(text, FIRST_PREFIX), *digit = first ? first : text;
	struct xfp_moe_sample read = { .first = first };

	if (!*digit)
		return false;
	for (; *digit; digit++) {
		if (!isdigit((unsigned char)*digit))
			return false;
		read.experts = read.experts * 10 + (uint32_t)(*digit - '0');
		if (read.experts > MAX_EXPERTS)
			return false;
	}
	if (!read.experts) /* there is no order if all experts decide */
		read.first = false;
	*sample = read;
	return true;
}

const char *xfp_moe_sample_text(struct xfp_moe_sample sample, char buf[24])
{
	snprintf(buf, 24, "%s%u", sample.first ? FIRST_PREFIX : "", (unsigned)sample.experts);
	return buf;
}
