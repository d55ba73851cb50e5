/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.c - the results of xfp compare: formats over all units, and the gain of outliers by component.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/report/inputs.h"
#include "conversion/report/json_input.h"

#define COMMAND "xfp compare MODEL --json --per-unit"
#define MAX_WAYS 10000

/* ---- formats over all units -------------------------------------------------------------------- */

/* A member that may be null: 0 then. */
static double number_or_null(struct xfp_json_input *input, const json_t *object, const char *key)
{
	return json_is_null(json_object_get(object, key)) ? 0 : xfp_json_input_number(input, object, key);
}

static uint32_t small_or_null(struct xfp_json_input *input, const json_t *object, const char *key)
{
	uint64_t count = json_is_null(json_object_get(object, key)) ? 0 : xfp_json_input_count(input, object, key);

	if (count > UINT32_MAX)
		xfp_json_input_fault(input, key, "a small number");
	return (uint32_t)count;
}

/* A way that was measured; false: it was excluded, or it is not valid. */
static bool read_way(struct xfp_json_input *input, const json_t *object, struct xfp_report_way *way)
{
	enum xfp_mode mode;

	*way = (struct xfp_report_way){ .k = 0 };
	if (json_is_null(json_object_get(object, "error")))
		return false;
	snprintf(way->format, sizeof way->format, "%s", xfp_json_input_text(input, object, "format"));
	way->ours = xfp_mode_parse(way->format, &mode);
	way->k = small_or_null(input, object, "k");
	way->group = small_or_null(input, object, "group_size");
	way->library = small_or_null(input, object, "library_size");
	way->sigma = number_or_null(input, object, "outlier_sigma");
	way->bits = xfp_json_input_number(input, object, "true_bits");
	way->cosine = xfp_json_input_number(input, object, "cos_median");
	way->error = xfp_json_input_number(input, object, "error");
	return !input->status && way->bits > 0 && way->error > 0;
}

static bool same_format(const struct xfp_report_way *a, const struct xfp_report_way *b)
{
	return !strcmp(a->format, b->format) && a->k == b->k && a->group == b->group && a->library == b->library;
}

/* Whether `a` has less error for its bits: one more bit must reduce the error to a quarter. */
static bool is_better(const struct xfp_report_way *a, const struct xfp_report_way *b)
{
	return log2(a->error) + 2 * a->bits < log2(b->error) + 2 * b->bits;
}

static void read_ways(struct xfp_json_input *input, struct xfp_report_comparison *c)
{
	const json_t *all = xfp_json_input_object(input, input->root, "all");
	json_t *list = xfp_json_input_list(input, all, "ways"), *object;
	size_t i;

	if (json_array_size(list) > MAX_WAYS)
		xfp_json_input_fault(input, "ways", "a list of formats");
	if (input->status)
		return;
	c->ways = calloc(json_array_size(list) + 1, sizeof *c->ways);
	if (!c->ways) {
		input->status = xfp_no_memory(input->err);
		return;
	}
	json_array_foreach(list, i, object)
	{
		struct xfp_report_way way, *last = c->count ? &c->ways[c->count - 1] : NULL;

		if (!read_way(input, object, &way))
			continue;
		if (last && way.ours && same_format(last, &way)) {
			if (is_better(&way, last))
				*last = way;
		} else {
			c->ways[c->count++] = way;
		}
	}
}

/* ---- outliers ---------------------------------------------------------------------------------- */

/* Find the format of a unit among its measurements. */
static bool find_pair(struct xfp_json_input *input, const struct xfp_report_unit *unit, json_t *object,
		      struct xfp_report_pair *pair)
{
	struct xfp_report_way way, without = { .bits = 0 }, with = { .bits = 0 };
	const struct xfp_unit_info *info = &unit->info;
	json_t *one;
	double share = 0;
	size_t i;

	json_array_foreach(xfp_json_input_list(input, object, "ways"), i, one)
	{
		if (!read_way(input, one, &way) || strcmp(way.format, info->mode_name) || way.k != info->k ||
		    way.group != info->group_size)
			continue;
		if (!(way.sigma > 0)) {
			without = way;
		} else if (fabs(way.sigma - XFP_REPORT_SIGMA) < 1e-9) {
			with = way;
			share = xfp_json_input_number(input, one, "outliers") / (double)info->weights;
		}
	}
	*pair = (struct xfp_report_pair){ unit->part, without.cosine, with.cosine,
					  with.error > 0 ? without.error / with.error : 0, share };
	return without.bits > 0 && with.bits > 0;
}

struct named_unit {
	const char *name, *role;
	json_t *object;
};

static int by_name(const void *a, const void *b)
{
	const struct named_unit *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->role, y->role);
}

static void read_units(struct xfp_json_input *input, const struct xfp_report *report, struct xfp_report_comparison *c)
{
	json_t *list = xfp_json_input_list(input, input->root, "units"), *object;
	size_t i, count = json_array_size(list);
	struct named_unit *named = calloc(count + 1, sizeof *named);
	struct xfp_report_pair *pairs = calloc(report->info.units + (size_t)1, sizeof *pairs);
	uint32_t found = 0;

	if (!input->status && (!named || !pairs))
		input->status = xfp_no_memory(input->err);
	json_array_foreach(list, i, object)
	{
		if (input->status)
			break;
		named[i] = (struct named_unit){ xfp_json_input_text(input, object, "name"),
						xfp_json_input_text(input, object, "role"), object };
	}
	if (!input->status && count)
		qsort(named, count, sizeof *named, by_name);
	for (uint32_t u = 0; !input->status && count && u < report->info.units; u++) {
		const struct xfp_report_unit *unit = &report->units[u];
		const struct named_unit key = { unit->info.name, unit->info.role, NULL }, *one;

		if (!(one = bsearch(&key, named, count, sizeof key, by_name)) || !unit->info.k ||
		    !find_pair(input, unit, one->object, &pairs[found])) {
			c->ablation.left_out++;
		} else {
			found++;
			c->ablation.rows += xfp_json_input_count(input, one->object, "rows");
			c->ablation.measured += xfp_json_input_count(input, one->object, "rows_measured");
		}
	}
	if (!input->status && count)
		input->status = xfp_report_sum_pairs(pairs, found, &c->ablation, input->err);
	free(named);
	free(pairs);
}

/* ---- the file ---------------------------------------------------------------------------------- */

enum xfp_status xfp_report_read_comparison(const char *path, const struct xfp_report *report,
					   struct xfp_report_comparison *c, struct xfp_error *err)
{
	struct xfp_json_input input;

	*c = (struct xfp_report_comparison){ .count = 0 };
	if (!xfp_json_input_open(&input, path, COMMAND, err)) {
		xfp_json_input_family(&input, report->info.family);
		if (!input.status)
			read_ways(&input, c);
		if (!input.status)
			read_units(&input, report, c);
	}
	json_decref(input.root);
	if (input.status)
		xfp_report_comparison_free(c);
	return input.status;
}

void xfp_report_comparison_free(struct xfp_report_comparison *c)
{
	free(c->ways);
	xfp_report_ablations_free(&c->ablation);
	*c = (struct xfp_report_comparison){ .count = 0 };
}
