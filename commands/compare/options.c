/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - xfp compare: the command line. Settings that affect fits are those of xfp convert.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/text/suffix.h"
#include "base/text/whole_number.h"
#include "checkpoints/hub.h"
#include "commands/compare/compare.h"
#include "kernels/encode/encode.h"
#include "stages/quantize/target.h"
#include "stages/settings/data.h"
#include "stages/settings/settings.h"

/* ---- values ------------------------------------------------------------------------------------ */

static enum xfp_status parse_rows(const struct xfp_option *option, const char *where, const char *text,
				  struct xfp_error *err)
{
	struct xfp_compare_request *request = option->context;

	if (!strcmp(text, "all"))
		request->rows = UINT64_MAX;
	else if (!xfp_whole_number_parse(text, 1, UINT64_MAX, &request->rows))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected a number of rows, or all", where, text);
	return XFP_OK;
}

/* Insert in order, "none" first, then descending; duplicates are ignored. */
static bool add_threshold(struct xfp_thresholds *list, uint32_t sigma)
{
	uint32_t at = 0;

	while (at < list->count && (!list->sigma_milli[at] || (sigma && list->sigma_milli[at] > sigma)))
		at++;
	if (!sigma)
		at = 0;
	if (at < list->count && list->sigma_milli[at] == sigma)
		return true;
	if (at && list->sigma_milli[at - 1] == sigma)
		return true;
	if (list->count == sizeof list->sigma_milli / sizeof *list->sigma_milli)
		return false;
	memmove(list->sigma_milli + at + 1, list->sigma_milli + at, (list->count - at) * sizeof *list->sigma_milli);
	list->sigma_milli[at] = sigma;
	list->count++;
	return true;
}

static enum xfp_status parse_thresholds(const struct xfp_option *option, const char *where, const char *text,
					struct xfp_error *err)
{
	struct xfp_thresholds *list = option->context;
	char *copy = strdup(text), *rest = copy, *item;
	bool good = true;

	if (!copy)
		return xfp_no_memory(err);
	if (!strcmp(text, "auto")) {
		*list = xfp_target_thresholds;
	} else {
		*list = (struct xfp_thresholds){ 0 };
		while (good && (item = strsep(&rest, ","))) {
			uint32_t sigma = 0;

			/* "none" means no outliers; 0 is invalid. */
			good = xfp_sigma_parse(item, &sigma) && sigma != XFP_SIGMA_AUTO &&
			       (sigma || !strcmp(item, "none")) && add_threshold(list, sigma);
		}
	}
	free(copy);
	if (good)
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE,
			"%s '%s': expected auto, or up to eight of none and positive numbers with at most "
			"three decimals, as in none,4,2.5",
			where, text);
}

/* The suffix is required, so that a typing error cannot overwrite a model file. */
static enum xfp_status parse_plot(const struct xfp_option *option, const char *where, const char *text,
				  struct xfp_error *err)
{
	struct xfp_compare_request *request = option->context;
	if (!xfp_names_file(text, ".svg") || !xfp_stem(text, ".svg"))
		return xfp_fail(err, XFP_USAGE, "%s '%s': the plot is SVG; give it a name that ends in .svg", where,
				text);
	request->plot = text;
	return XFP_OK;
}

/* ---- the command line -------------------------------------------------------------------------- */

/* Read the settings that a conversion reads from the environment. The bundle's path does not apply to a plot. */
static enum xfp_status from_environment(const struct xfp_option *options, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (const struct xfp_option *o = options; !status && o->name; o++) {
		char name[XFP_OPTION_VARIABLE];
		const char *text;

		xfp_option_variable(o->name, name);
		if (!o->value || !strcmp(o->name, "output") || !strcmp(o->name, "rows") || !(text = getenv(name)) ||
		    !*text)
			continue;
		status = xfp_option_use(o, name, text, err);
	}
	return status;
}

static enum xfp_status read_line(struct xfp_command_line *line, int argc, char **argv,
				 struct xfp_compare_request *request, struct xfp_settings *settings,
				 struct xfp_error *err)
{
	enum xfp_status status;
	const struct xfp_option options[] = {
		{ .name = "output",
		  .path = true,
		  .letter = 'o',
		  .value = "FILE.svg",
		  .complete = "FILE",
		  .text = "write a plot to this file",
		  .parse = parse_plot,
		  .context = request },
		{ .name = "rows",
		  .value = "N|all",
		  .complete = "all|64|256|1024",
		  .text = "rows of a unit to measure; all: exact figures [about 256]",
		  .parse = parse_rows,
		  .context = request },
		xfp_setting_option(XFP_SETTING_BITS, NULL, "bits per index to measure, as in 2,3,4; 8: fp8 [2-6,8]",
				   settings),
		{ .name = "outlier-sigma",
		  .value = "LIST|auto",
		  .complete = "auto|none|none,4",
		  .text = "outlier thresholds; auto: none,5,4,3.5,3,2.7,2.5 [auto]",
		  .parse = parse_thresholds,
		  .context = &request->thresholds },
		xfp_setting_option(XFP_SETTING_BALANCE, NULL, NULL, settings),
		xfp_setting_option(XFP_SETTING_GROUP, NULL, NULL, settings),
		xfp_setting_option(XFP_SETTING_LIBRARY, NULL, NULL, settings),
		xfp_setting_option(XFP_SETTING_LIBFIT, NULL, "v2a libraries: refined or published [both]", settings),
		xfp_setting_option(XFP_SETTING_ITERATIONS, NULL, NULL, settings),
		xfp_setting_option(XFP_SETTING_FIT, NULL, NULL, settings),
		xfp_setting_option(XFP_SETTING_START, NULL, NULL, settings),
		xfp_setting_option(XFP_SETTING_ON_NONFINITE, NULL,
				   "if weights are NaN or infinite: fail, or keep, which leaves the unit out [fail]",
				   settings),
		{ .name = "family",
		  .value = "NAME|FILE",
		  .complete = "FAMILY",
		  .text = "use the rules of this model family, whatever the config says",
		  .into = &request->family },
		{ .name = "per-unit", .text = "print results for each unit, too", .set = &request->per_unit },
		{ .name = "csv", .text = "print all measurements as CSV", .set = &request->csv },
		{ .name = "json", .text = "print all measurements as JSON", .set = &request->json },
		{ .name = "quiet", .letter = 'q', .text = "print no progress", .set = &request->quiet },
		{ 0 },
	};

	line->options = options;
	status = xfp_command_line_parse_after(line, argc, argv, from_environment(options, err), err);
	line->options = NULL; /* end of the table */
	return status;
}

/* Check the syntax of a TENSOR before the model is opened. */
static enum xfp_status check_pattern(const char *pattern, struct xfp_error *err)
{
	const char *class = xfp_after_prefix(pattern, XFP_CLASS_PREFIX);
	char text[XFP_NO_CLASS];
	enum xfp_class value;

	if (!*pattern)
		return xfp_fail(err, XFP_USAGE, "TENSOR is empty");
	if (class && !xfp_class_parse(class, &value))
		return xfp_fail(err, XFP_USAGE, "TENSOR '%s': %s", xfp_printable(pattern).text,
				xfp_no_such_class(class, text));
	return XFP_OK;
}

enum xfp_status xfp_compare_parse(int argc, char **argv, struct xfp_compare_request *request, struct xfp_error *err)
{
	struct xfp_settings settings = { .parameters = xfp_parameters_default() };
	struct xfp_command_line line = {
		.usage = "xfp compare [OPTION ...] MODEL [TENSOR ...]",
		.operand = "MODEL",
		.summary =
			"Measures bits, cosine and squared error of a model's weights in every mode and in common\n"
			"formats. TENSOR is a name or a glob of units, role:ROLE or class:CLASS; default: all units\n"
			"that a conversion would fit.",
		.column = 35,
		.brief = true,
	};
	const char *instructions = getenv("XFP_INSTRUCTIONS");
	enum xfp_status status;

	*request =
		(struct xfp_compare_request){ .thresholds = xfp_target_thresholds, .refined = true, .published = true };
	settings.parameters.modes = XFP_ALL_MODES;
	status = read_line(&line, argc, argv, request, &settings, err);
	request->printed = line.printed;
	if (status || line.printed)
		return status;
	if (instructions && *instructions && !xfp_encoder_use(instructions))
		return xfp_fail(err, XFP_USAGE,
				"XFP_INSTRUCTIONS=%s: expected plain, avx2, avx512 or neon, if this machine supports "
				"it",
				xfp_printable(instructions).text);
	if (request->csv && request->json)
		return xfp_fail(err, XFP_USAGE, "--csv or --json, not both");
	if (!line.argument_count)
		return xfp_fail(err, XFP_USAGE, "MODEL is missing; name a folder or a file");
	request->patterns = line.arguments + 1;
	request->pattern_count = (uint32_t)line.argument_count - 1;
	for (uint32_t i = 0; i < request->pattern_count; i++)
		if ((status = check_pattern(request->patterns[i], err)))
			return status;
	if ((status = xfp_settings_finish(&settings, err)))
		return status;
	request->parameters = settings.parameters;
	if (settings.given & XFP_SETTING_BIT(LIBFIT)) {
		request->refined = settings.parameters.libfit == XFP_LIBFIT_REFINED;
		request->published = !request->refined;
	}
	if (!(settings.given & XFP_SETTING_BIT(BITS)))
		request->parameters.bits = xfp_default_bits(XFP_AUTO_MODES);
	/* Thresholds are set one by one, and none may hit a cap that a conversion would not have. */
	request->parameters.outlier_sigma = XFP_SIGMA_AUTO;
	request->parameters.outlier_cap = XFP_CAP_AUTO;
	request->given = line.arguments[0];
	return xfp_model_find(request->given, &request->model, err);
}

void xfp_compare_request_free(struct xfp_compare_request *request)
{
	xfp_parameters_free(&request->parameters);
	free(request->model);
}
