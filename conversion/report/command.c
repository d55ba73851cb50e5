/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/report/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/shell.h"
#include "base/text/text.h"
#include "schemas/setting.h"

/* Defaults with these modes: bits, thresholds and their cap depend on them. */
static struct xfp_parameters defaults_of(const struct xfp_parameters *p)
{
	struct xfp_parameters usual = xfp_parameters_default();

	if (p->modes != usual.modes) {
		usual.bits = xfp_default_bits(p->modes);
		usual.outlier_sigma = xfp_default_sigma(p->modes);
	}
	usual.outlier_cap = xfp_default_cap(p->outlier_sigma);
	return usual;
}

static void add_word(FILE *out, const char *name, const char *value)
{
	fprintf(out, " --%s ", name);
	xfp_shell_quote(out, value);
}

static bool has_floor(const struct xfp_parameters *p, int class_)
{
	enum xfp_form form = p->format[class_].form;

	return form != XFP_FORM_KEEP && form != XFP_FORM_FP8 &&
	       (class_ != XFP_CLASS_LM_HEAD || p->lm_head == XFP_LM_HEAD_QUANT);
}

static void add_classes(FILE *out, const struct xfp_parameters *p, const struct xfp_parameters *usual)
{
	char value[100], number[24];

	for (int i = 0; i < XFP_CLASSES; i++) {
		const char *name = xfp_class_name((enum xfp_class)i);

		if (p->floor[i] != usual->floor[i] && has_floor(p, i)) {
			snprintf(value, sizeof value, "%s=%s", name, xfp_decimal_format(p->floor[i], XFP_NANO, number));
			add_word(out, "floor", value);
		}
		if (p->format[i].form != XFP_FORM_AUTO) {
			snprintf(value, sizeof value, "%s=%s", name, xfp_format_text(p->format[i], number));
			add_word(out, "format", value);
		}
	}
}

char *xfp_report_options(const struct xfp_parameters *p)
{
	struct xfp_parameters usual = defaults_of(p);
	bool complete = true;
	struct xfp_text text;
	FILE *out;

	if (*p->calibration.sha256 || p->assigned_count || p->keep_embeddings || !(out = xfp_text_begin(&text)))
		return NULL;
	for (int i = 0; i < XFP_SETTING_OPTIONS; i++) {
		const struct xfp_setting *setting = &xfp_settings_table[i];
		char ours[24], theirs[24];
		const char *value;

		if (!setting->recorded || setting->kind == XFP_SETTING_CUSTOM)
			continue;
		value = xfp_setting_text(setting, p, ours);
		if (strcmp(value, xfp_setting_text(setting, &usual, theirs)))
			add_word(out, setting->name, value);
	}
	add_classes(out, p, &usual);
	for (uint32_t i = 0; i < p->override_count; i++) {
		char *value = xfp_override_text(&p->overrides[i]);

		complete &= value != NULL;
		if (value)
			add_word(out, "override", value);
		free(value);
	}
	xfp_parameters_free(&usual);
	if (xfp_text_end(&text) && complete)
		return text.bytes;
	free(text.bytes);
	return NULL;
}
