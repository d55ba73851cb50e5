/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.c - the points of a walk. Each is a command line of xfp convert, parsed as xfp convert does, so that
 * predictions and bundles have the same settings.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/shell.h"
#include "base/text/size.h"
#include "base/text/text.h"
#include "commands/convert/options.h"
#include "commands/walk/walk.h"
#include "conversion/goal/allocation.h"
#include "conversion/place.h"
#include "conversion/prepare.h"

#define MAX_POINTS 1000
#define INDENT 2 /* of commands that are printed */

/* Options of convert that a walk replaces, with a value or without. */
static const struct xfp_option replaced[] = {
	{ .name = "target-size", .value = "" },
	{ .name = "target-bpw", .value = "" },
	{ .name = "envelope", .value = "" },
	{ .name = "reserve", .value = "" },
	{ .name = "survey" },
	{ .name = "json" },
	{ 0 },
};

/* ---- words ------------------------------------------------------------------------------------- */

bool xfp_walk_range_parse(const char *text, struct xfp_walk_range *range)
{
	uint32_t *into[] = { &range->first, &range->last, &range->step };
	char part[24];
	int parts = 0;

	for (const char *end;; text = end + 1) {
		size_t length = strcspn(text, ":");

		end = text + length;
		if (parts == 3 || length >= sizeof part)
			return false;
		snprintf(part, sizeof part, "%.*s", (int)length, text);
		if (!xfp_fraction_parse(part, into[parts++]))
			return false;
		if (!*end)
			break;
	}
	if (parts == 1)
		range->last = range->first;
	range->given = parts == 1 || (parts == 3 && range->step && range->last >= range->first &&
				      (range->last - range->first) / range->step < MAX_POINTS);
	return range->given;
}

/* The option of a list that a word names, in full or, as getopt allows, by its beginning. */
static const struct xfp_option *find_option(const struct xfp_option *options, const char *word, bool whole)
{
	size_t length = strcspn(word, "=");

	for (; options->name; options++)
		if (!strncmp(options->name, word, length) && (!whole || !options->name[length]))
			return options;
	return NULL;
}

static const struct xfp_option *find_dropped(const struct xfp_option *own, const char *word)
{
	const struct xfp_option *option;

	if (strncmp(word, "--", 2) != 0 || !word[2])
		return NULL;
	word += 2;
	(void)((option = find_option(own, word, true)) || (option = find_option(replaced, word, true)) ||
	       (option = find_option(own, word, false)) || (option = find_option(replaced, word, false)));
	return option;
}

enum xfp_status xfp_walk_words(struct xfp_walk_command *w, const struct xfp_option *own, struct xfp_error *err)
{
	size_t count = 0, kept = 0;
	bool rest = false;

	while (w->argv[count])
		count++;
	if (!(w->words = calloc(count + 1, sizeof *w->words)))
		return xfp_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		const struct xfp_option *dropped = i && !rest ? find_dropped(own, w->argv[i]) : NULL;

		rest |= !strcmp(w->argv[i], "--");
		if (dropped && dropped->value && !strchr(w->argv[i], '='))
			i++;
		if (!dropped && !(w->words[kept++] = strdup(i ? w->argv[i] : "xfp convert")))
			return xfp_no_memory(err);
	}
	return XFP_OK;
}

void xfp_walk_words_free(struct xfp_walk_command *w)
{
	for (size_t i = 0; w->words && w->words[i]; i++)
		free(w->words[i]);
	free(w->words);
	w->words = NULL;
}

const char *xfp_walk_name(const struct xfp_walk_point *point, char name[XFP_WALK_NAME])
{
	char lazy[32], strict[24];

	if (point->floors)
		snprintf(name, XFP_WALK_NAME, "%s/%s", xfp_decimal_format(point->lazy, XFP_NANO, lazy),
			 xfp_decimal_format(point->strict, XFP_NANO, strict));
	else if (point->profile)
		snprintf(name, XFP_WALK_NAME, "%s", xfp_printable(point->profile).text);
	else
		snprintf(name, XFP_WALK_NAME, "%s", xfp_human((double)point->target, "B", lazy));
	return name;
}

const char *xfp_walk_long_name(const struct xfp_walk_point *point, char name[XFP_WALK_NAME])
{
	char lazy[24], strict[24];

	if (!point->floors)
		return xfp_walk_name(point, name);
	snprintf(name, XFP_WALK_NAME, "lazy %s, strict %s", xfp_decimal_format(point->lazy, XFP_NANO, lazy),
		 xfp_decimal_format(point->strict, XFP_NANO, strict));
	return name;
}

/* Print words, each after a blank; a line that would be wider than `width` ends before an option. 0: one line. False:
 * out of memory. */
static bool print_words(FILE *out, char *const *words, unsigned width, size_t *column)
{
	while (*words) {
		const int count = **words == '-' && words[1] && *words[1] != '-' ? 2 : 1;
		struct xfp_text text;
		FILE *piece = xfp_text_begin(&text);

		for (int i = 0; piece && i < count; i++) {
			fputc(' ', piece);
			xfp_shell_quote(piece, words[i]);
		}
		words += count;
		if (!xfp_text_end(&text))
			return false;
		if (width && *column + text.size + 2 > width)
			*column = (size_t)fprintf(out, " \\\n%*s", INDENT + 1, "") - 3;
		*column += text.size;
		fputs(text.bytes, out);
		free(text.bytes);
	}
	return true;
}

char *xfp_walk_convert_command(const struct xfp_walk_command *w, const struct xfp_conversion *c,
			       const struct xfp_walk_point *point, unsigned width)
{
	char *const name[] = { "-o", strrchr(c->request->out, '/') + 1, NULL };
	size_t column = INDENT + strlen(w->words[0]);
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	bool whole;

	if (!out)
		return NULL;
	fputs(w->words[0], out);
	whole = print_words(out, point->words, width, &column) &&
		(!c->request->out_guessed || print_words(out, name, width, &column)) &&
		print_words(out, w->words + 1, width, &column);
	if (xfp_text_end(&text) && whole)
		return text.bytes;
	free(text.bytes);
	return NULL;
}

/* ---- points ------------------------------------------------------------------------------------ */

/* Append a point with up to two options. */
static enum xfp_status add_point(struct xfp_walk *walk, const char *const words[XFP_WALK_WORDS], struct xfp_error *err)
{
	struct xfp_walk_point *grown;

	if (walk->count == MAX_POINTS)
		return xfp_fail(err, XFP_USAGE, "more than %d points; use a larger step", MAX_POINTS);
	if (!(grown = realloc(walk->point, (walk->count + (size_t)1) * sizeof *grown)))
		return xfp_no_memory(err);
	walk->point = grown;
	grown += walk->count++;
	*grown = (struct xfp_walk_point){ .floors = false };
	for (int i = 0; words[i]; i++)
		if (!(grown->words[i] = strdup(words[i])))
			return xfp_no_memory(err);
	return XFP_OK;
}

/* Parse the command line of a point as xfp convert would. */
static enum xfp_status parse_point(const struct xfp_walk_command *w, const struct xfp_walk_point *point,
				   struct xfp_options *options, struct xfp_error *err)
{
	const struct xfp_options_use use = { .planning = true };
	size_t count = 0, more = 0, first = 0;
	char **argv;
	enum xfp_status status;

	while (w->words[count])
		count++;
	while (point->words[more])
		more++;
	if (!(argv = calloc(count + more + 1, sizeof *argv)))
		return xfp_no_memory(err);
	/* The last of two options takes effect; those of a point must not follow "--". */
	while (first < count && strcmp(w->words[first], "--") != 0)
		first++;
	memcpy(argv, w->words, first * sizeof *argv);
	memcpy(argv + first, point->words, more * sizeof *argv);
	memcpy(argv + first + more, w->words + first, (count - first) * sizeof *argv);
	status = xfp_options_parse((int)(count + more), argv, &use, options, err);
	free(argv);
	return status;
}

static enum xfp_status set_parameters(struct xfp_walk_command *w, struct xfp_walk_point *point, struct xfp_error *err)
{
	struct xfp_options options = { .printed = false };
	enum xfp_status status = parse_point(w, point, &options, err);

	if (status)
		return status;
	point->parameters = options.request.parameters;
	memset(&options.request.parameters, 0, sizeof options.request.parameters);
	point->strict = point->parameters.floor[XFP_CLASS_ATTENTION];
	point->lazy = point->parameters.floor[XFP_CLASS_ROUTED_EXPERT];
	xfp_options_free(&options);
	return XFP_OK;
}

static enum xfp_status complete_floors(struct xfp_walk_command *w, struct xfp_error *err)
{
	struct xfp_walk_point *last = &w->walk.point[w->walk.count - 1];

	last->floors = true;
	return set_parameters(w, last, err);
}

static enum xfp_status add_floors(struct xfp_walk_command *w, uint32_t lazy, uint32_t strict, struct xfp_error *err)
{
	const char *words[XFP_WALK_WORDS] = { NULL };
	char texts[2][24];
	int count = 0;
	enum xfp_status status;

	if (w->lazy.given) {
		words[count++] = "--min-cos-lazy";
		words[count++] = xfp_decimal_format(lazy, XFP_NANO, texts[0]);
	}
	if (w->strict.given) {
		words[count++] = "--min-cos-strict";
		words[count++] = xfp_decimal_format(strict, XFP_NANO, texts[1]);
	}
	status = add_point(&w->walk, words, err);
	return status ? status : complete_floors(w, err);
}

bool xfp_walk_uses_surveys(const struct xfp_walk_command *w, const struct xfp_conversion *c)
{
	return w->points || c->parameters.outlier_sigma == XFP_SIGMA_AUTO;
}

static enum xfp_status list_floors(struct xfp_walk_command *w, struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_walk_range once = { .first = 0, .last = 0, .step = 1 };
	const struct xfp_walk_range lazy = w->lazy.given ? w->lazy : once, strict = w->strict.given ? w->strict : once;
	struct xfp_walk_surveys surveys = { 0 };
	enum xfp_status status = XFP_OK;

	/* The default range includes the floors that convert has without options. */
	if (w->usual && !(status = add_point(&w->walk, (const char *const[XFP_WALK_WORDS]){ NULL }, err)))
		status = complete_floors(w, err);
	for (uint64_t l = lazy.first; !status && l <= lazy.last; l += lazy.step ? lazy.step : 1) {
		if (w->usual && l == w->walk.point[0].lazy)
			continue;
		for (uint64_t s = strict.first; !status && s <= strict.last; s += strict.step ? strict.step : 1)
			status = add_floors(w, (uint32_t)l, (uint32_t)s, err);
	}
	if (!status && xfp_walk_uses_surveys(w, c))
		status = xfp_walk_surveys_read(c, &surveys, err);
	for (uint32_t i = 0; !status && i < w->walk.count; i++)
		status = xfp_walk_uses_surveys(w, c) ? xfp_walk_predict(c, &surveys, &w->walk, &w->walk.point[i], err)
						     : xfp_walk_predict_prepared(c, &w->walk, &w->walk.point[i], err);
	xfp_walk_surveys_free(&surveys);
	return status;
}

/* A profile may quantize other tensors, so that its units differ. */
static enum xfp_status predict_profile(struct xfp_walk_command *w, const struct xfp_conversion *asked,
				       struct xfp_walk_point *point, struct xfp_error *err)
{
	struct xfp_options options = { .printed = false };
	struct xfp_conversion c = { .signals = asked->signals,
				    .notify = asked->notify,
				    .place = { .lock = -1, .log = -1, .cache_lock = -1 } };
	enum xfp_status status = parse_point(w, point, &options, err);

	if (status)
		return status;
	c.request = &options.request;
	c.parameters = options.request.parameters;
	status = xfp_conversion_open(&c, err);
	c.place.log = asked->place.log;
	if (!status && !(status = xfp_prepare_folder(&c, err)))
		status = xfp_walk_predict_prepared(&c, &w->walk, point, err);
	c.place.log = -1; /* borrowed */
	xfp_conversion_close(&c);
	xfp_options_free(&options);
	return status;
}

static enum xfp_status list_profiles(struct xfp_walk_command *w, struct xfp_conversion *c, struct xfp_error *err)
{
	char *names = strdup(w->points), *rest = names, *name;
	enum xfp_status status = names ? XFP_OK : xfp_no_memory(err);

	while (!status && (name = strsep(&rest, ","))) {
		const char *const words[XFP_WALK_WORDS] = { "--profile", name };
		struct xfp_walk_point *point;

		if (!*name)
			status = xfp_fail(err, XFP_USAGE,
					  "--points '%s': expected sizes, or profiles as in small,careful", w->points);
		if (status || (status = add_point(&w->walk, words, err)))
			break;
		point = &w->walk.point[w->walk.count - 1];
		point->profile = point->words[1];
		if (!(status = set_parameters(w, point, err)))
			status = predict_profile(w, c, point, err);
	}
	free(names);
	return status;
}

enum xfp_status xfp_walk_measure(struct xfp_walk_command *w, struct xfp_conversion *c, struct xfp_walk_point *point,
				 struct xfp_error *err)
{
	if (point->profile)
		return predict_profile(w, c, point, err);
	return point->target ? XFP_OK : xfp_walk_predict_prepared(c, &w->walk, point, err);
}

enum xfp_status xfp_walk_list(struct xfp_walk_command *w, struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = xfp_prepare_units(c, false, err);

	w->walk.limit =
		(struct xfp_walk_limit){ .goal = &w->limit,
					 .bytes = w->limit.kind ? xfp_goal_budget(&w->limit, c->units.ledger) : 0 };
	if (status)
		return status;
	if (!w->points)
		status = list_floors(w, c, err);
	else if (!strcmp(w->points, "sizes"))
		status = xfp_walk_add_sizes(c, &w->walk, err);
	else
		status = list_profiles(w, c, err);
	if (!status)
		xfp_walk_sort(&w->walk);
	return status;
}
