/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - prints the points of a walk and the recommendation, as text, JSON or CSV.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "commands/ui/record.h"
#include "commands/walk/walk.h"
#include "conversion/composition.h"
#include "schemas/json_print.h"

#define WIDEST 100 /* columns of a command */

/* "v2c3 80, fp8 2, keep 1": units by mode and bits per index. */
static void mix_text(const struct xfp_walk_point *point, char text[XFP_TABLE_CELL])
{
	size_t used = 0;

	*text = '\0';
	for (int mode = XFP_MODES - 1; mode >= 0; mode--)
		for (int k = 0; k <= (int)XFP_FP8_BITS; k++) {
			char bits[8] = "";

			if (!point->stored[mode][k] || used >= XFP_TABLE_CELL - 1)
				continue;
			if (mode >= XFP_MODE_V2)
				snprintf(bits, sizeof bits, "-%d", k);
			used += (size_t)snprintf(text + used, XFP_TABLE_CELL - used, "%s%s%s %" PRIu32,
						 used ? ", " : "", xfp_mode_name((enum xfp_mode)mode), bits,
						 point->stored[mode][k]);
		}
}

static json_t *modes_json(const struct xfp_walk_point *point)
{
	json_t *list = json_array();

	for (int mode = 0; mode < XFP_MODES; mode++)
		for (int k = 0; k <= (int)XFP_FP8_BITS; k++)
			if (point->stored[mode][k])
				xfp_json_add(&list,
					     XFP_JSON({ "mode", xfp_json_text(xfp_mode_name((enum xfp_mode)mode)) },
						      { "bits", mode >= XFP_MODE_V2 ? json_integer(k) : json_null() },
						      { "units", xfp_json_count(point->stored[mode][k]) }));
	return list;
}

static json_t *classes_json(const struct xfp_walk_point *point)
{
	json_t *classes = json_object();

	for (int i = 0; i < XFP_CLASSES; i++)
		if (point->weights[i])
			xfp_json_put(&classes, xfp_class_name((enum xfp_class)i),
				     json_real(xfp_bits_per_weight(point->size[i], point->weights[i])));
	return classes;
}

static double unit_bits(const struct xfp_walk_point *point)
{
	uint64_t bytes = 0, weights = 0;

	for (int i = 0; i < XFP_CLASSES; i++) {
		bytes += point->size[i];
		weights += point->weights[i];
	}
	return xfp_bits_per_weight(bytes, weights);
}

static json_t *options_json(const struct xfp_walk_point *point)
{
	json_t *list = json_array();

	for (char *const *word = point->words; *word; word++)
		xfp_json_add(&list, xfp_json_text(*word));
	return list;
}

static json_t *floor_json(const struct xfp_walk_point *point, uint32_t floor)
{
	return point->target ? json_null() : json_real((double)floor / XFP_NANO);
}

static json_t *measured(const struct xfp_walk_probe *probe, double value)
{
	return probe->measured ? xfp_json_number(value) : json_null();
}

static json_t *probe_json(const struct xfp_walk_probe *probe, bool gpus)
{
	static const char *const verdicts[] = {
		[XFP_WALK_PASSED] = "passed", [XFP_WALK_GARBAGE] = "garbage", [XFP_WALK_TOO_LARGE] = "too large"
	};

	if (probe->verdict == XFP_WALK_UNKNOWN)
		return json_null();
	return XFP_JSON({ "verdict", xfp_json_text(verdicts[probe->verdict]) },
			{ "sha256", xfp_json_text(probe->sha256) }, { "built_bytes", xfp_json_count(probe->bytes) },
			{ "built_gpu_bytes", gpus ? xfp_json_count(probe->gpu) : json_null() },
			{ "kl", measured(probe, probe->kl) }, { "agreement", measured(probe, probe->agreement) },
			{ "perplexity", measured(probe, probe->perplexity) },
			{ "source_perplexity", measured(probe, probe->source_perplexity) },
			{ "repeats", measured(probe, probe->repeats) },
			{ "score", probe->scored ? xfp_json_number(probe->score) : json_null() });
}

static json_t *point_json(const struct xfp_walk_command *w, const struct xfp_walk_point *point)
{
	const bool gpus = w->limit.kind == XFP_GOAL_ENVELOPE, limited = w->walk.limit.bytes;
	char name[XFP_WALK_NAME], mix[XFP_TABLE_CELL];

	mix_text(point, mix);
	return XFP_JSON({ "point", xfp_json_text(xfp_walk_name(point, name)) }, { "options", options_json(point) },
			{ "lazy", floor_json(point, point->lazy) }, { "strict", floor_json(point, point->strict) },
			{ "profile", xfp_json_text_or_null(point->profile) },
			{ "target", xfp_json_count_or_null(point->target) }, { "bytes", xfp_json_count(point->bytes) },
			{ "gpu_bytes", gpus ? xfp_json_count(point->gpu) : json_null() },
			{ "margin", limited ? json_integer(point->margin) : json_null() },
			{ "fits", limited ? json_boolean(point->fits) : json_null() },
			{ "bits", json_real(point->bits) }, { "paper_bits", json_real(point->paper) },
			{ "true_bits", json_real(unit_bits(point)) }, { "error", json_real(point->error) },
			{ "unweighted_error", json_real(point->unweighted) }, { "units", xfp_json_count(point->units) },
			{ "surveyed", xfp_json_count(point->surveyed) }, { "missed", xfp_json_count(point->missed) },
			{ "mix", xfp_json_text(mix) }, { "modes", modes_json(point) },
			{ "classes", classes_json(point) }, { "probe", probe_json(&point->probe, gpus) });
}

static json_t *points_json(const struct xfp_walk_command *w)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->walk.count; i++)
		xfp_json_add(&list, point_json(w, &w->walk.point[i]));
	return list;
}

static json_t *index_json(uint32_t point)
{
	return point == XFP_WALK_NONE ? json_null() : json_integer(point);
}

static enum xfp_status print_json(const struct xfp_walk_command *w, const struct xfp_conversion *c,
				  struct xfp_error *err)
{
	const struct xfp_walk_point *best = w->found.best == XFP_WALK_NONE ? NULL : &w->walk.point[w->found.best];
	const bool continued = w->probe && w->judge.text;
	char *command = best ? xfp_walk_convert_command(w, c, best, 0) : NULL;
	json_t *root = XFP_JSON(
		{ "model", xfp_json_text(c->request->model) }, { "family", xfp_json_text(c->units.ledger->family) },
		{ "limit", xfp_json_count_or_null(w->walk.limit.bytes) },
		{ "gpus", w->limit.kind == XFP_GOAL_ENVELOPE ? xfp_json_count(w->limit.gpus) : json_null() },
		{ "source_repeats", continued ? json_real(w->walk.source_repeats) : json_null() },
		{ "points", points_json(w) }, { "garbage", index_json(w->found.garbage) },
		{ "passed", index_json(w->found.passed) }, { "largest", index_json(w->found.largest) },
		{ "recommended", index_json(w->found.best) }, { "command", xfp_json_text_or_null(command) });

	free(command);
	return xfp_json_print(root, err);
}

static enum xfp_status print_csv(const struct xfp_walk_command *w, struct xfp_error *err)
{
	const struct xfp_record_columns columns = xfp_csv_header(
		"point%q,lazy,strict,profile,target,bytes,gpu_bytes,margin,fits,bits,paper_bits,error,units,"
		"surveyed,missed,mix%q,verdict,built_bytes,built_gpu_bytes,kl,agreement,perplexity,repeats,score");
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < w->walk.count; i++)
		status = xfp_csv_row(&columns, point_json(w, &w->walk.point[i]), err);
	return status;
}

/* Columns of the table, one for each class of units. Long names are cut at their last part. */
static void columns_text(const struct xfp_walk *walk, char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size,
				       "%s=point,size=bytes%%B,on a GPU=gpu_bytes?%%B,margin?%%B,bits/weight=bits%%.3f,"
				       "error%%.5f,units=mix",
				       walk->count && walk->point[0].floors ? "lazy/strict" : "point");

	for (int i = 0; i < XFP_CLASSES && walk->count && used < size; i++)
		if (walk->point[0].weights[i])
			used += (size_t)snprintf(text + used, size - used, ",%s%%.2f",
						 xfp_class_name((enum xfp_class)i));
}

static enum xfp_status print_table(const struct xfp_walk_command *w, struct xfp_error *err)
{
	char columns[400];

	columns_text(&w->walk, columns, sizeof columns);
	return xfp_record_table(columns, NULL, points_json(w), err);
}

static void print_basis(const struct xfp_walk_command *w, const struct xfp_conversion *c)
{
	const char *hint = xfp_walk_uses_surveys(w, c) ? " (--survey measures)" : "";
	uint32_t units = 0, surveyed = 0;

	for (uint32_t i = 0; i < w->walk.count; i++) {
		units += w->walk.point[i].units;
		surveyed += w->walk.point[i].surveyed;
	}
	if (!surveyed && units)
		printf("\nSizes are estimates, from typical cosines%s.\n", hint);
	else if (surveyed < units)
		printf("\nSizes follow from measurements and, where there are none, typical cosines%s.\n", hint);
	else
		printf("\nSizes follow from %s.\n", *hint ? "surveys" : "measurements");
	if (w->walk.count && w->walk.point[0].floors)
		puts("Floors are least cosines: lazy of routed experts, strict of the other classes.");
	puts("Errors are mean relative squared errors of weights.");
	puts("Units are counted by mode and bits: v2c-5 2 means 2 units of mode v2c at 5 bits.");
	if (!w->walk.limit.bytes)
		puts(w->probe ? "No limit: every point fits, and the smallest that passed is recommended."
			      : "No limit: every point fits, and none is recommended; --envelope or --target-size\n"
				"sets a limit.");
}

/* A line about a boundary. */
static void print_boundary(const struct xfp_walk_command *w, const char *what, uint32_t point)
{
	char name[XFP_WALK_NAME];

	if (point != XFP_WALK_NONE)
		printf("%-15s%s\n", what, xfp_walk_long_name(&w->walk.point[point], name));
}

/* The source's row among the probes. */
static json_t *source_json(const struct xfp_walk_command *w)
{
	json_t *perplexity = json_null();

	for (uint32_t i = 0; i < w->walk.count && json_is_null(perplexity); i++)
		perplexity = measured(&w->walk.point[i].probe, w->walk.point[i].probe.source_perplexity);
	return XFP_JSON({ "point", xfp_json_text("source") }, { "perplexity", perplexity },
			{ "repeats", json_real(w->walk.source_repeats) });
}

static enum xfp_status print_probes(const struct xfp_walk_command *w, struct xfp_error *err)
{
	json_t *list = json_array();
	enum xfp_status status;
	char columns[200];

	if (w->judge.text)
		xfp_json_add(&list, source_json(w));
	for (uint32_t i = 0; i < w->walk.count; i++)
		if (w->walk.point[i].probe.verdict != XFP_WALK_UNKNOWN)
			xfp_json_add(&list, point_json(w, &w->walk.point[i]));
	snprintf(columns, sizeof columns,
		 "%s=point,verdict,bundle=built_bytes%%B,on a GPU=built_gpu_bytes?%%B,KL=kl?%%.4f,"
		 "top-1=agreement?%%.1f%%%%,perplexity?%%.3f,repeats?%%.1f%%%%,score?",
		 w->walk.count && w->walk.point[0].floors ? "lazy/strict" : "point");
	puts("\nProbes:\n");
	if ((status = xfp_record_table(columns, NULL, list, err)))
		return status;
	putchar('\n');
	if (w->judge.text)
		puts("KL and top-1 agreement: xfp eval --source --fast. Repeats: repeated 4-grams.");
	print_boundary(w, "garbage up to", w->found.garbage);
	print_boundary(w, "passes from", w->found.passed);
	if (w->walk.limit.bytes)
		print_boundary(w, "fits up to", w->found.largest);
	return XFP_OK;
}

static void print_recommended(const struct xfp_walk_command *w, const struct xfp_conversion *c)
{
	const struct xfp_walk_point *best = &w->walk.point[w->found.best];
	const unsigned screen = xfp_screen_width(), width = screen < WIDEST ? screen : WIDEST;
	char *command = xfp_walk_convert_command(w, c, best, width), name[XFP_WALK_NAME], margin[32], *text;

	*margin = '\0';
	if (w->walk.limit.bytes)
		xfp_size_text(w->walk.limit.bytes - xfp_walk_cost(&w->walk, best), xfp_size_is_binary(w->limit.option),
			      margin);
	text = xfp_formatted("Recommended: %s, the %s%s%s:", xfp_walk_long_name(best, name),
			     !w->probe             ? "most conservative that fits"
			     : w->walk.limit.bytes ? "best that passed"
						   : "smallest that passed",
			     *margin ? ", with a margin of " : "", margin);
	xfp_fold(stdout, text ? text : "Recommended:", 0);
	free(text);
	if (command)
		xfp_screen_printf(stdout, "  %s\n", command);
	free(command);
}

enum xfp_status xfp_walk_print(const struct xfp_walk_command *w, const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	if (c->request->json)
		return print_json(w, c, err);
	if (w->csv)
		return print_csv(w, err);
	printf("%s, family %s\n\n", xfp_printable(c->request->model).text, xfp_printable(c->units.ledger->family).text);
	if ((status = print_table(w, err)))
		return status;
	print_basis(w, c);
	if (w->probe && (status = print_probes(w, err)))
		return status;
	if (w->found.best != XFP_WALK_NONE)
		print_recommended(w, c);
	return XFP_OK;
}
