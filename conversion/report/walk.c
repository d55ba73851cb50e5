/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - the points of xfp walk, and which of them this bundle is.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/shell.h"
#include "base/text/text.h"
#include "conversion/report/inputs.h"
#include "conversion/report/json_input.h"

#define COMMAND "xfp walk MODEL --json"
#define MAX_POINTS 100000
#define SAME_SIZE .05 /* relative; predictions of small bundles are less exact */

uint64_t xfp_report_walk_cost(const struct xfp_report_walk *walk, const struct xfp_report_point *point)
{
	return walk->gpus ? point->gpu : point->bytes;
}

/* ---- points ------------------------------------------------------------------------------------ */

/* Join the options with spaces, quoted for a shell. */
static char *read_options(struct xfp_json_input *input, const json_t *object)
{
	json_t *list = xfp_json_input_list(input, object, "options"), *word;
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	size_t i;

	json_array_foreach(list, i, word)
	{
		if (!json_is_string(word))
			xfp_json_input_fault(input, "options", "a list of texts");
		if (!out || input->status)
			break;
		if (i)
			fputc(' ', out);
		xfp_shell_quote(out, json_string_value(word));
	}
	if (xfp_text_end(&text))
		return text.bytes;
	free(text.bytes);
	return NULL;
}

static uint64_t count_or(struct xfp_json_input *input, const json_t *object, const char *key, uint64_t otherwise)
{
	return json_is_null(json_object_get(object, key)) ? otherwise : xfp_json_input_count(input, object, key);
}

/* A member that may be null: NaN then. */
static double measured(struct xfp_json_input *input, const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key)) ? NAN : xfp_json_input_number(input, object, key);
}

static void read_probe(struct xfp_json_input *input, const json_t *probe, struct xfp_report_point *point)
{
	static const char *const verdicts[] = {
		[XFP_REPORT_PASSED] = "passed", [XFP_REPORT_GARBAGE] = "garbage", [XFP_REPORT_TOO_LARGE] = "too large"
	};
	const char *verdict = xfp_json_input_text(input, probe, "verdict");

	for (int v = XFP_REPORT_PASSED; v <= XFP_REPORT_TOO_LARGE; v++)
		if (!strcmp(verdict, verdicts[v]))
			point->verdict = (enum xfp_report_verdict)v;
	if (point->verdict == XFP_REPORT_NOT_PROBED)
		xfp_json_input_fault(input, "verdict", "passed, garbage or too large");
	point->bytes = xfp_json_input_count(input, probe, "built_bytes");
	point->gpu = count_or(input, probe, "built_gpu_bytes", point->gpu);
	point->divergence = measured(input, probe, "kl");
	point->agreement = measured(input, probe, "agreement");
	point->perplexity = measured(input, probe, "perplexity");
	point->score = measured(input, probe, "score");
}

/* Refuse a walk of another model: the bytes and the bits of a point give the number of weights. */
static void check_weights(struct xfp_json_input *input, const struct xfp_report *report, double bytes, double bits)
{
	double weights = bits > 0 ? 8 * bytes / bits : 0, own = (double)report->composition.elements;

	if (input->status || fabs(weights - own) <= 1e-6 * own)
		return;
	input->status = xfp_fail(input->err, XFP_BAD_INPUT,
				 "%s: of a model with %.0f weights, but the bundle's has %.0f; make it with %s",
				 input->path, weights, own, input->command);
}

static void read_point(struct xfp_json_input *input, const json_t *object, const struct xfp_report *report,
		       struct xfp_report_point *point)
{
	const json_t *probe = json_object_get(object, "probe"), *fits = json_object_get(object, "fits");

	*point = (struct xfp_report_point){ .name = strdup(xfp_json_input_text(input, object, "point")),
					    .options = read_options(input, object),
					    .bytes = xfp_json_input_count(input, object, "bytes"),
					    .gpu = count_or(input, object, "gpu_bytes", 0),
					    .bits = xfp_json_input_number(input, object, "bits"),
					    .unit_bits = xfp_json_input_number(input, object, "true_bits"),
					    .error = xfp_json_input_number(input, object, "error"),
					    .unweighted = xfp_json_input_number(input, object, "unweighted_error"),
					    .fits = !json_is_false(fits),
					    .divergence = NAN,
					    .agreement = NAN,
					    .perplexity = NAN,
					    .score = NAN };
	check_weights(input, report, (double)point->bytes, point->bits);
	if (!json_is_null(probe))
		read_probe(input, probe, point);
	if (!input->status && (!point->name || !point->options))
		input->status = xfp_no_memory(input->err);
}

/* ---- the point of this bundle ------------------------------------------------------------------ */

static bool is_built_as(const json_t *object, const char *sha256)
{
	const char *built = json_string_value(json_object_get(json_object_get(object, "probe"), "sha256"));

	return built && !strcmp(built, sha256);
}

static bool has_floor(const json_t *object, const char *key, uint32_t floor)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) && fabs(json_number_value(value) * XFP_NANO - floor) < .5;
}

static double distance(const struct xfp_report *report, const struct xfp_report_point *point)
{
	return fabs((double)point->bytes / (double)report->info.file_bytes - 1);
}

/* Whether the bundle has the settings of a point, as far as both record them. A solved bundle has a size instead of
 * floors. */
static bool has_settings(const struct xfp_report *report, const json_t *object)
{
	const struct xfp_parameters *p = report->recorded ? &report->recorded->parameters : NULL;

	if (!p || p->assigned_count)
		return p && json_is_integer(json_object_get(object, "target"));
	return has_floor(object, "lazy", p->floor[XFP_CLASS_ROUTED_EXPERT]) &&
	       has_floor(object, "strict", p->floor[XFP_CLASS_ATTENTION]);
}

/* The point that was built with this SHA-256; else, of those with the same settings, the nearest in size. */
static uint32_t find_chosen(const struct xfp_report *report, const struct xfp_report_walk *walk, const json_t *list)
{
	uint32_t chosen = XFP_REPORT_NO_POINT;

	for (uint32_t i = 0; i < walk->count; i++) {
		const json_t *object = json_array_get(list, i);

		if (is_built_as(object, report->sha256))
			return i;
		if (has_settings(report, object) && distance(report, &walk->points[i]) < SAME_SIZE &&
		    (chosen == XFP_REPORT_NO_POINT ||
		     distance(report, &walk->points[i]) < distance(report, &walk->points[chosen])))
			chosen = i;
	}
	return chosen;
}

/* ---- the file ---------------------------------------------------------------------------------- */

static uint32_t read_number(struct xfp_json_input *input, const struct xfp_report_walk *walk, const char *key)
{
	uint64_t number = count_or(input, input->root, key, XFP_REPORT_NO_POINT);

	if (number != XFP_REPORT_NO_POINT && number >= walk->count)
		xfp_json_input_fault(input, key, "the number of a point");
	return (uint32_t)number;
}

static void read_points(struct xfp_json_input *input, const struct xfp_report *report, struct xfp_report_walk *walk)
{
	json_t *list = xfp_json_input_list(input, input->root, "points"), *object;
	size_t i;

	if (json_array_size(list) > MAX_POINTS)
		xfp_json_input_fault(input, "points", "a list of points");
	if (input->status)
		return;
	walk->points = calloc(json_array_size(list) + 1, sizeof *walk->points);
	if (!walk->points)
		input->status = xfp_no_memory(input->err);
	json_array_foreach(list, i, object)
	{
		if (input->status)
			break;
		read_point(input, object, report, &walk->points[walk->count++]);
		walk->probed |= walk->points[i].verdict != XFP_REPORT_NOT_PROBED;
		walk->measured |= !isnan(walk->points[i].divergence);
		walk->scored |= !isnan(walk->points[i].score);
	}
	walk->garbage = read_number(input, walk, "garbage");
	walk->passed = read_number(input, walk, "passed");
	walk->largest = read_number(input, walk, "largest");
	walk->recommended = read_number(input, walk, "recommended");
	walk->chosen = input->status ? XFP_REPORT_NO_POINT : find_chosen(report, walk, list);
}

enum xfp_status xfp_report_read_walk(const char *path, const struct xfp_report *report, struct xfp_report_walk *walk,
				     struct xfp_error *err)
{
	struct xfp_json_input input;

	*walk = (struct xfp_report_walk){ .count = 0 };
	if (!xfp_json_input_open(&input, path, COMMAND, err)) {
		xfp_json_input_family(&input, report->info.family);
		walk->limit = count_or(&input, input.root, "limit", 0);
		walk->gpus = (uint32_t)count_or(&input, input.root, "gpus", 0);
		read_points(&input, report, walk);
	}
	json_decref(input.root);
	if (input.status)
		xfp_report_walk_free(walk);
	return input.status;
}

void xfp_report_walk_free(struct xfp_report_walk *walk)
{
	for (uint32_t i = 0; i < walk->count; i++) {
		free(walk->points[i].name);
		free(walk->points[i].options);
	}
	free(walk->points);
	*walk = (struct xfp_report_walk){ .count = 0 };
}
