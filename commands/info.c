/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.c - `xfp info`: describe a bundle from its index alone.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "base/text/text.h"
#include "commands/info_device.h"
#include "commands/ui/commands.h"
#include "commands/ui/composition_print.h"
#include "commands/ui/report.h"
#include "schemas/json_print.h"
#include "schemas/layout/classes.h"
#include "schemas/parameters.h"

/* ---- JSON -------------------------------------------------------------------------------------- */

/* What decided the unit's format: null if the bundle does not record it (`recorded` is NULL), or if only defaults
 * applied. */
static json_t *policy_json(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit)
{
	struct xfp_policy policy = { .fixed = false };
	char *format = NULL, *floor = NULL;
	json_t *json;

	if (recorded) {
		policy = xfp_recorded_policy(recorded, unit);
		format = xfp_policy_format_by(&recorded->parameters, &policy);
		floor = xfp_policy_floor_by(&recorded->parameters, &policy);
	}
	json = XFP_JSON(
		{ "format_by", xfp_json_text_or_null(format) }, { "floor_by", xfp_json_text_or_null(floor) },
		{ "fixed", recorded ? json_boolean(policy.fixed) : json_null() },
		{ "sampled_experts", recorded ? json_integer(xfp_recorded_sample(recorded, unit)) : json_null() });
	free(format);
	free(floor);
	return json;
}

static json_t *unit_json(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded,
			 const struct xfp_unit_info *unit)
{
	return XFP_JSON({ "name", xfp_json_text(unit->name) }, { "class", xfp_json_text(unit->class_name) },
			{ "role", xfp_json_text(unit->role) }, { "mode", xfp_json_text(unit->mode_name) },
			{ "k", xfp_json_count(unit->k) }, { "group_size", xfp_json_count_or_null(unit->group_size) },
			{ "library_size", xfp_json_count_or_null(unit->library_size) },
			{ "rows", xfp_json_count(unit->rows) }, { "cols", xfp_json_count(unit->cols) },
			{ "experts", xfp_json_count(unit->experts) }, { "weights", xfp_json_count(unit->weights) },
			{ "bytes", xfp_json_count(unit->bytes) },
			{ "true_bits", json_real(xfp_unit_stored_bits(unit)) },
			{ "paper_bits", json_real(xfp_unit_paper_bits(bundle, unit)) },
			{ "outliers", xfp_json_count(unit->outliers) }, { "cos_median", json_real(unit->cos_median) },
			{ "cos_p5", json_real(unit->cos_p5) }, { "floor", json_real(unit->floor) },
			{ "met", json_boolean(unit->met) },
			{ "missed", xfp_json_text_or_null(xfp_unit_missed(recorded, unit)) });
}

static json_t *tensor_json(const struct xfp_tensor_info *tensor)
{
	json_t *shape = json_array();

	for (uint32_t i = 0; i < tensor->rank; i++)
		xfp_json_add(&shape, xfp_json_count(tensor->shape[i]));
	return XFP_JSON({ "name", xfp_json_text(tensor->name) }, { "fate", xfp_json_text(tensor->fate_name) },
			{ "reason", xfp_json_text(tensor->reason) }, { "class", xfp_json_text(tensor->class_name) },
			{ "dtype", xfp_json_text(tensor->dtype_name) }, { "shape", shape });
}

/* `device` NULL: no device section. */
static enum xfp_status print_json(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded,
				  const struct xfp_cuda_device *device, struct xfp_error *err)
{
	json_t *units = json_array(), *tensors = json_array(), *method, *root;
	struct xfp_bundle_info info;
	struct xfp_tensor_info tensor;
	struct xfp_composition composition = xfp_composition_of_bundle(bundle);
	struct xfp_unit_info unit;

	xfp_bundle_describe(bundle, &info);
	for (uint32_t u = 0; u < info.units; u++) {
		json_t *one = xfp_bundle_unit(bundle, u, &unit) ? unit_json(bundle, recorded, &unit) : NULL;

		xfp_json_join(&one, policy_json(recorded, &unit));
		if (recorded && recorded->outputs)
			xfp_json_put(&one, "outputs", xfp_report_outputs(recorded, u));
		if (device)
			xfp_json_put(&one, "device", xfp_info_device_unit_json(bundle, u));
		xfp_json_add(&units, one);
	}
	for (uint32_t t = 0; t < info.tensors; t++)
		xfp_json_add(&tensors, xfp_bundle_tensor(bundle, t, &tensor) ? tensor_json(&tensor) : NULL);
	/* xfp.json unchanged; null if it is not valid JSON, which libxfp does not check. */
	method = json_loadb(info.json, info.json_bytes, 0, NULL);
	root = XFP_JSON({ "version", xfp_json_count(info.version) }, { "family", xfp_json_text(info.family) },
			{ "weights", xfp_json_count(info.weights) }, { "bytes", xfp_json_count(info.file_bytes) },
			{ "whole", xfp_composition_json(&composition) }, { "method", method ? method : json_null() },
			{ "units", units }, { "tensors", tensors });
	if (device)
		xfp_json_put(&root, "device", xfp_info_device_json(bundle, device));
	return xfp_json_print(root, err);
}

/* ---- text -------------------------------------------------------------------------------------- */

/* " NAME=VALUE", with the parameter names of the bundle. */
static void print_value(FILE *out, const char *prefix, const char *name, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *shown = json_is_string(value) ? json_string_value(value) : text;

	fprintf(out, " %s%s=%s", prefix, xfp_printable(name).text, xfp_printable(shown ? shown : "?").text);
	free(text);
}

/* Floors are decimal strings. */
static bool is_zero(const json_t *floor)
{
	const char *text = json_string_value(floor);

	return text ? !text[strspn(text, "0.")] : !(json_number_value(floor) > 0);
}

static bool all_zero(json_t *floors)
{
	const char *name;
	json_t *value;

	json_object_foreach (floors, name, value) {
		if (!is_zero(value))
			return false;
	}
	return true;
}

/* With a goal, floors are off unless given. */
static void print_conditions(FILE *out, json_t *floors)
{
	const char *name;
	json_t *value;

	if (all_zero(floors))
		fputs(" bits chosen for a goal, no floors", out);
	else
		fputs(" bits chosen for a goal, with", out);
	json_object_foreach (floors, name, value) {
		if (!is_zero(value))
			print_value(out, "floor:", name, value);
	}
}

/* Parameters of single classes or units. */
static void print_exceptions(FILE *out, const char *name, json_t *value)
{
	const char *class, *source = json_string_value(json_object_get(value, "source"));
	json_t *format;

	if (!strcmp(name, "calibration") && source) {
		fprintf(out, " calibrated with %" JSON_INTEGER_FORMAT " tokens of %s",
			json_integer_value(json_object_get(value, "tokens")), xfp_printable(source).text);
		return;
	}
	if (strcmp(name, "formats")) {
		print_value(out, "", name, value);
		return;
	}
	json_object_foreach (value, class, format) {
		print_value(out, "format:", class, format);
	}
}

/* Print each member that differs from its default. Returns whether any does. */
static bool print_changes(FILE *out, const char *prefix, json_t *parameters, json_t *defaults)
{
	bool any = false;
	const char *name;
	json_t *value;

	json_object_foreach (parameters, name, value) {
		json_t *usual = json_object_get(defaults, name);

		if (json_is_object(value) && json_is_object(usual) && json_object_get(parameters, "assigned")) {
			print_conditions(out, value);
			any = true;
		} else if (json_is_object(value) && json_is_object(usual) && all_zero(value)) {
			fputs(" no floors", out);
			any = true;
		} else if (!strcmp(name, "assigned")) {
			any = true; /* the units themselves show their assignments */
		} else if (json_is_object(value) && json_is_object(usual)) {
			any |= print_changes(out, "floor:", value, usual);
		} else if (!json_equal(value, usual)) {
			if (usual)
				print_value(out, prefix, name, value);
			else
				print_exceptions(out, name, value);
			any = true;
		}
	}
	return any;
}

/* The defaults of a bundle's mode, for what the bundle does not state. */
static json_t *default_parameters(json_t *parameters)
{
	const char *mode = json_string_value(json_object_get(parameters, "mode")),
		   *sigma = json_string_value(json_object_get(parameters, "outlier_sigma"));
	struct xfp_parameters usual = xfp_parameters_default();
	uint32_t threshold;
	json_t *root;
	char *text;

	if (mode)
		xfp_modes_parse(mode, &usual.modes);
	usual.bits = xfp_default_bits(usual.modes);
	usual.outlier_sigma = xfp_default_sigma(usual.modes);
	if (!sigma || !xfp_sigma_parse(sigma, &threshold))
		threshold = usual.outlier_sigma;
	usual.outlier_cap = xfp_default_cap(threshold);
	text = xfp_parameters_to_json(&usual);
	root = text ? json_loads(text, 0, NULL) : NULL;
	free(text);
	return root;
}

/* Print the method, on one or more lines. The bundle's text is untrusted and must be escaped for the terminal. */
static void print_method(const struct xfp_bundle_info *info)
{
	json_t *root = json_loadb(info->json, info->json_bytes, 0, NULL);
	json_t *parameters = json_object_get(root, "parameters"), *defaults = default_parameters(parameters);
	const char *mode = json_string_value(json_object_get(parameters, "mode"));
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (!out)
		goto done;
	if (mode && defaults) {
		fprintf(out, "method %s;", xfp_printable(mode).text);
		if (!print_changes(out, "", parameters, defaults))
			fputs(" default parameters", out);
	} else {
		fputs("method not stated", out);
	}
	if (xfp_text_end(&text))
		xfp_fold(stdout, text.bytes, 0);
	putchar('\n');
	free(text.bytes);
done:
	json_decref(root);
	json_decref(defaults);
}

static void print_text(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded, const char *path,
		       bool all_units)
{
	struct xfp_composition composition = xfp_composition_of_bundle(bundle);
	struct xfp_bundle_info info;
	char weights[32];

	xfp_bundle_describe(bundle, &info);
	composition.compact = recorded && recorded->parameters.modes >> XFP_MODE_V2C & 1;
	xfp_screen_printf(stdout, "%s\n", path);
	xfp_composition_print(stdout, "", &composition);
	printf("format version %" PRIu32 ", family %s, %s weights in %" PRIu32 " units\n", info.version,
	       xfp_printable(info.family).text, xfp_human((double)info.weights, "", weights), info.units);
	print_method(&info);
	xfp_report_table(stdout, bundle, recorded);
	if (all_units) {
		putchar('\n');
		xfp_report_units(stdout, bundle, recorded);
	}
}

int xfp_main_info(int argc, char **argv)
{
	struct xfp_bundle *bundle = NULL;
	struct xfp_recorded recorded = { .family = NULL };
	const struct xfp_cuda_device *device = NULL;
	const char *device_name = NULL;
	bool json = false, units = false, has_record = false;
	const struct xfp_option options[] = {
		{ .name = "json", .text = "print one JSON object with every unit and tensor", .set = &json },
		{ .name = "units", .text = "print a line for every unit, too", .set = &units },
		{ .name = "device",
		  .value = "NAME",
		  .complete =
			  "a10|a100|a40|b200|b300|gb10|gh200|h100|h100-pcie|h200|l4|l40s|rtx-3090|rtx-4090|rtx-5090|"
			  "rtx-6000-ada|rtx-a6000|rtx-pro-6000",
		  .text = "print instead how units are stored on a GPU such as\nh100; needs no GPU",
		  .into = &device_name },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp info [--json] [--units] [--device NAME] BUNDLE",
		.operand = "BUNDLE",
		.summary = "Prints the contents of a bundle. Reads only the index; xfp verify checks weights.",
		.options = options,
	};
	struct xfp_error err;
	const char *path;
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	if (!(path = xfp_command_line_bundle(&line)))
		return XFP_USAGE;
	if (device_name && xfp_info_device(device_name, &device, &err))
		return xfp_command_line_refuse(&line, "%s", err.text);
	xfp_mapped_begin(argv[0], path, NULL);
	status = (int)xfp_bundle_open(path, &bundle, &err);
	/* A bundle of another version may have parameters unknown here; its units are still printed. */
	if (!status)
		has_record = !xfp_recorded_read(bundle, path, &recorded, NULL);
	if (!status && json)
		status = (int)print_json(bundle, has_record ? &recorded : NULL, device, &err);
	else if (!status && device)
		status = (int)xfp_info_device_print(bundle, device, &err);
	else if (!status)
		print_text(bundle, has_record ? &recorded : NULL, path, units);
	if (status)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	xfp_recorded_free(&recorded);
	xfp_bundle_close(bundle);
	xfp_mapped_end();
	return status;
}
