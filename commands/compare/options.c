/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - what xfp compare is asked: settings that decide fits, as xfp convert knows them, and its own.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/next_option.h"
#include "checkpoints/hub.h"
#include "commands/compare/compare.h"
#include "kernels/encode/encode.h"
#include "stages/quantize/aim.h"
#include "stages/settings/data.h"
#include "stages/settings/settings.h"

enum { OPT_ROWS = 256, OPT_SIGMA, OPT_LIBFIT, OPT_FAMILY, OPT_PER_UNIT, OPT_CSV, OPT_JSON, OPT_VERSION, OPT_SETTING };

/* In the order of --help. Those of OPT_SETTING are settings.h's; a text that is NULL, too. */
static const struct row {
	const char *name;
	int id;
	const char *value, *text;
} rows[] = {
	{ "output", 'o', "FILE.svg", "a plot of all of it" },
	{ "rows", OPT_ROWS, "N|all", "rows of a unit that are looked at; all: exact figures [about 256]" },
	{ "bits", OPT_SETTING, "LIST", "bits an index that are measured, as in 2,3,4 or 2-6 [2-6]" },
	{ "outlier-sigma", OPT_SIGMA, "LIST|auto",
	  "outlier thresholds; auto: none,5,4,3.5,3,2.7,2.5, those of a survey [auto]" },
	{ "balance", OPT_SETTING, NULL, NULL },
	{ "group-size", OPT_SETTING, NULL, NULL },
	{ "library-size", OPT_SETTING, NULL, NULL },
	{ "libfit", OPT_LIBFIT, "NAME", "v2a libraries: refined or published [both]" },
	{ "lloyd-iters", OPT_SETTING, NULL, NULL },
	{ "fit", OPT_SETTING, NULL, NULL },
	{ "start", OPT_SETTING, NULL, NULL },
	{ "on-nonfinite", OPT_SETTING, "NAME", "NaN or infinity in a unit: fail, or keep, which leaves it out [fail]" },
	{ "family", OPT_FAMILY, "NAME|FILE", "rules of this model family, not those the config names" },
	{ "per-unit", OPT_PER_UNIT, NULL, "tables, rows of --csv and objects of --json for each unit, too" },
	{ "csv", OPT_CSV, NULL, "everything that was measured, as CSV" },
	{ "json", OPT_JSON, NULL, "the same as JSON" },
	{ "help", 'h', NULL, "this text" },
	{ "version", OPT_VERSION, NULL, "the version" },
};
#define ROWS (sizeof rows / sizeof rows[0])

static const char *value_of(const struct row *row)
{
	return row->value || row->id != OPT_SETTING ? row->value
						    : xfp_settings_table[xfp_setting_find(row->name)].value;
}

void xfp_compare_help(const char *program)
{
	printf("usage: %s [OPTION ...] MODEL [TENSOR ...]\n"
	       "\n"
	       "Measures every way to store the weights of a model, and shows bits, cosine and squared error\n"
	       "beside those of the formats that people know. TENSOR is a name or a glob of units, role:ROLE\n"
	       "or class:CLASS; without one it is all units that a conversion would fit.\n"
	       "\n",
	       program);
	for (size_t i = 0; i < ROWS; i++) {
		const char *value = value_of(&rows[i]), *text = rows[i].text;
		char left[64];

		if (!text)
			text = xfp_settings_table[xfp_setting_find(rows[i].name)].text;
		snprintf(left, sizeof left, "--%s%s%s", rows[i].name, value ? " " : "", value ? value : "");
		if (rows[i].id < 256)
			printf("  -%c, %-28s %s\n", rows[i].id, left, text);
		else
			printf("      %-28s %s\n", left, text);
	}
}

/* ---- values ------------------------------------------------------------------------------------ */

static enum xfp_status set_rows(struct xfp_compare_request *request, const char *text, struct xfp_error *err)
{
	char *end;

	errno = 0;
	request->rows = strcmp(text, "all") ? strtoull(text, &end, 10) : UINT64_MAX;
	if (request->rows != UINT64_MAX && (!isdigit((unsigned char)*text) || *end || errno || !request->rows))
		return xfp_fail(err, XFP_USAGE, "--rows '%s': expected a number of rows, or all", text);
	return XFP_OK;
}

/* Into its place: none first, then falling; what is there is not added again. */
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

static enum xfp_status set_thresholds(struct xfp_thresholds *list, const char *text, struct xfp_error *err)
{
	char *copy = strdup(text), *rest = copy, *item;
	bool good = true;

	if (!copy)
		return xfp_no_memory(err);
	if (!strcmp(text, "auto")) {
		*list = xfp_aim_thresholds;
	} else {
		*list = (struct xfp_thresholds){ 0 };
		while (good && (item = strsep(&rest, ","))) {
			uint32_t sigma = 0;

			/* No outliers are none, not 0. */
			good = xfp_sigma_parse(item, &sigma) && sigma != XFP_SIGMA_AUTO &&
			       (sigma || !strcmp(item, "none")) && add_threshold(list, sigma);
		}
	}
	free(copy);
	if (good)
		return XFP_OK;
	return xfp_fail(err, XFP_USAGE,
			"--outlier-sigma '%s': expected auto, or up to eight of none and positive numbers with at most "
			"three decimals, as in none,4,2.5",
			text);
}

static enum xfp_status set_libfit(struct xfp_compare_request *request, const char *text, struct xfp_error *err)
{
	enum xfp_libfit libfit;

	if (!xfp_libfit_parse(text, &libfit))
		return xfp_fail(err, XFP_USAGE, "--libfit '%s': expected refined or published", text);
	request->refined = libfit == XFP_LIBFIT_REFINED;
	request->published = libfit == XFP_LIBFIT_PUBLISHED;
	return XFP_OK;
}

/* A typing error must not cost a file of the model. */
static enum xfp_status set_plot(struct xfp_compare_request *request, const char *text, struct xfp_error *err)
{
	if (!xfp_names_file(text, ".svg") || strlen(text) < 5 || strcmp(text + strlen(text) - 4, ".svg"))
		return xfp_fail(err, XFP_USAGE, "--output '%s': the plot is SVG; give it a name that ends in .svg",
				text);
	request->plot = text;
	return XFP_OK;
}

/* ---- the command line -------------------------------------------------------------------------- */

static enum xfp_status set(struct xfp_compare_request *request, struct xfp_settings *settings, int id, const char *text,
			   struct xfp_error *err)
{
	char where[40];

	switch (id) {
	case 'o':
		return set_plot(request, text, err);
	case OPT_ROWS:
		return set_rows(request, text, err);
	case OPT_SIGMA:
		return set_thresholds(&request->thresholds, text, err);
	case OPT_LIBFIT:
		return set_libfit(request, text, err);
	case OPT_FAMILY:
		request->family = text;
		return XFP_OK;
	case OPT_PER_UNIT:
		request->per_unit = true;
		return XFP_OK;
	case OPT_CSV:
		request->csv = true;
		return XFP_OK;
	case OPT_JSON:
		request->json = true;
		return XFP_OK;
	default:
		snprintf(where, sizeof where, "--%s", rows[id - OPT_SETTING].name);
		return xfp_setting_set(settings, xfp_setting_find(rows[id - OPT_SETTING].name), where, text, err);
	}
}

static enum xfp_status read_options(int argc, char **argv, struct xfp_compare_request *request,
				    struct xfp_settings *settings, struct xfp_error *err)
{
	struct option table[ROWS + 1] = { { 0 } };
	enum xfp_status status = XFP_OK;
	int id;

	for (size_t i = 0; i < ROWS; i++)
		table[i] = (struct option){ rows[i].name, value_of(&rows[i]) ? required_argument : no_argument, NULL,
					    rows[i].id == OPT_SETTING ? OPT_SETTING + (int)i : rows[i].id };
	optind = 0;
	while (!status && (id = xfp_next_option(argc, argv, "o:", table, err)) != -1) {
		if (id == 'h' || id == OPT_VERSION) {
			request->help = id == 'h';
			request->version = id == OPT_VERSION;
			return XFP_OK;
		}
		if (id == '?')
			return XFP_USAGE;
		status = set(request, settings, id, optarg, err);
	}
	return status;
}

enum xfp_status xfp_compare_parse(int argc, char **argv, struct xfp_compare_request *request, struct xfp_error *err)
{
	struct xfp_settings settings = { .parameters = xfp_parameters_default() };
	const char *instructions = getenv("XFP_INSTRUCTIONS");
	enum xfp_status status;

	*request = (struct xfp_compare_request){ .thresholds = xfp_aim_thresholds, .refined = true, .published = true };
	settings.parameters.modes = XFP_ALL_MODES;
	status = read_options(argc, argv, request, &settings, err);
	if (status || request->help || request->version)
		return status;
	if (instructions && *instructions && !xfp_encoder_use(instructions))
		return xfp_fail(err, XFP_USAGE,
				"XFP_INSTRUCTIONS=%s: plain, avx2, avx512 and neon, where the machine has them",
				xfp_printable(instructions).text);
	if (request->csv && request->json)
		return xfp_fail(err, XFP_USAGE, "--csv or --json, not both");
	if (optind == argc)
		return xfp_fail(err, XFP_USAGE, "which MODEL? Name a folder or a file");
	request->patterns = argv + optind + 1;
	request->pattern_count = (uint32_t)(argc - optind - 1);
	for (uint32_t i = 0; i < request->pattern_count; i++)
		if (!*request->patterns[i])
			return xfp_fail(err, XFP_USAGE, "TENSOR is empty");
	if ((status = xfp_settings_finish(&settings, err)))
		return status;
	request->parameters = settings.parameters;
	/* Thresholds are told one by one, and none of them is to meet a cap that a conversion would not have. */
	request->parameters.outlier_sigma = XFP_SIGMA_AUTO;
	request->parameters.outlier_cap = XFP_CAP_AUTO;
	return xfp_model_find(argv[optind], &request->model, err);
}

void xfp_compare_request_free(struct xfp_compare_request *request)
{
	xfp_parameters_free(&request->parameters);
	free(request->model);
}
