/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ls.c - xfp cache ls: list the artifacts of a cache, one per line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/glob.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "base/text/utc.h"
#include "commands/cache/cache.h"

#define SHORT_KEY 12
#define LONG_KEY 32
#define BESIDE_KEY 48 /* width of the other columns */
#define INDENT 2      /* of lines below their unit's name */

/* ---- selecting and sorting --------------------------------------------------------------------- */

static const char *const orders[] = { "unit", "key", "kind", "size", "made", NULL };
enum { BY_UNIT, BY_KEY, BY_KIND, BY_SIZE, BY_MADE };

struct listed {
	const struct xfp_census_item *item;
	unsigned kind; /* index of the kind */
};

struct listing {
	const struct xfp_cache_call *call;
	const struct xfp_cache *cache;
	struct listed *list;
	uint32_t count;
	int order;
};

static int by_number(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

static int compare(const void *a, const void *b, void *context)
{
	const struct listing *l = context;
	const struct listed *listed_x = a, *listed_y = b;
	const struct xfp_census_item *x = listed_x->item, *y = listed_y->item;
	int result = 0;

	if (l->order == BY_SIZE) /* largest first, newest first */
		result = by_number(y->bytes, x->bytes);
	else if (l->order == BY_MADE)
		result = by_number((uint64_t)y->made, (uint64_t)x->made);
	else if (l->order == BY_KIND)
		result = (int)listed_x->kind - (int)listed_y->kind;
	if (!result && l->order != BY_KEY && (!*x->unit || !*y->unit))
		result = !*x->unit - !*y->unit;
	if (!result && l->order != BY_KEY)
		result = strcmp(x->unit, y->unit);
	if (!result && l->order == BY_UNIT)
		result = (int)listed_x->kind - (int)listed_y->kind;
	if (!result)
		result = strcmp(x->key, y->key);
	return l->call->reverse ? -result : result;
}

static enum xfp_status choose(struct listing *l, struct xfp_error *err)
{
	const struct xfp_cache_call *call = l->call;
	const struct xfp_census *census = &l->cache->census;

	while (call->sort && strcmp(orders[l->order], call->sort))
		l->order++;
	if (!(l->list = malloc((census->count + (size_t)1) * sizeof *l->list)))
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < census->count; i++) {
		const struct xfp_census_item *item = &census->items[i];

		if ((!call->kind || !strcmp(item->kind, call->kind)) &&
		    (!call->unit || xfp_glob_matches(call->unit, item->unit)))
			l->list[l->count++] = (struct listed){ item, xfp_kind_place(item->kind) };
	}
	if (l->count)
		qsort_r(l->list, l->count, sizeof *l->list, compare, l);
	return XFP_OK;
}

/* ---- text -------------------------------------------------------------------------------------- */

static void print_key_text(const struct listing *l, const char *key)
{
	char *text = l->cache->manifest ? xfp_manifest_key_text(l->cache->manifest, key) : NULL, *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			xfp_fold(stdout, xfp_printable(line).text, 2 * INDENT);
	free(text);
}

/* Whether unit names fit after the other columns. If not, each name gets a line of its own above the unit's artifacts.
 * Lines are printed directly, not through a table, since there may be a hundred thousand. */
static bool names_fit(const struct listing *l, int key)
{
	size_t longest = 0, length;

	for (uint32_t i = 0; i < l->count; i++)
		if ((length = strlen(xfp_printable(l->list[i].item->unit).text)) > longest)
			longest = length;
	return (size_t)key + BESIDE_KEY + longest <= xfp_screen_width();
}

static void print_line(const struct listing *l, const struct xfp_census_item *item, int key, bool named)
{
	const struct xfp_census *census = &l->cache->census;
	char size[32], made[32], run[32] = "-";

	if (item->runs)
		snprintf(run, sizeof run, "%s%" PRId64, item->current ? "*" : "",
			 census->runs[census->use[item->run + item->runs - 1]].run);
	xfp_utc(item->made, made);
	if (item->made)
		made[10] = ' ';
	printf("%.*s  %-8s  %8s  %-16.16s  %4s", key, item->key, *item->kind ? xfp_printable(item->kind).text : "-",
	       item->present ? xfp_human((double)item->bytes, "B", size) : "gone", made, run);
	if (named)
		printf("  %s", *item->unit ? xfp_printable(item->unit).text : "-");
	putchar('\n');
	if (l->call->keys)
		print_key_text(l, item->key);
}

static void print_text(const struct listing *l)
{
	const int key = l->call->keys ? LONG_KEY : SHORT_KEY;
	const bool named = names_fit(l, key);
	uint64_t bytes = 0, current = 0, current_bytes = 0;
	const char *unit = NULL;
	char all[32], used[32];

	if (l->count)
		printf("%s%*s%-*s  %-8s  %8s  %-16s  %4s%s\n", named ? "" : "unit\n", named ? 0 : INDENT, "", key,
		       "key", "kind", "size", "made (UTC)", "run", named ? "  unit" : "");
	for (uint32_t i = 0; i < l->count; i++) {
		const struct xfp_census_item *item = l->list[i].item;

		if (!named && (!unit || strcmp(unit, item->unit) != 0))
			xfp_fold(stdout, *item->unit ? xfp_printable(item->unit).text : "-", 0);
		unit = item->unit;
		printf("%*s", named ? 0 : INDENT, "");
		print_line(l, item, key, named);
		bytes += item->present ? item->bytes : 0;
		current += item->current;
		current_bytes += item->current && item->present ? item->bytes : 0;
	}
	printf("%" PRIu32 " artifact%s, %s; %" PRIu64 " current (*), %s\n", l->count, l->count == 1 ? "" : "s",
	       xfp_human((double)bytes, "B", all), current, xfp_human((double)current_bytes, "B", used));
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static json_t *item_json(const struct listing *l, const struct xfp_census_item *item)
{
	const struct xfp_census *census = &l->cache->census;
	json_t *runs = json_array(), *root;
	char *text;

	for (uint32_t i = 0; i < item->runs; i++)
		xfp_json_add(&runs, json_integer(census->runs[census->use[item->run + i]].run));
	root = XFP_JSON({ "key", xfp_json_text(item->key) }, { "kind", xfp_json_text(item->kind) },
			{ "unit", xfp_json_text(item->unit) }, { "bytes", xfp_json_count(item->bytes) },
			{ "made", xfp_json_time(item->made) }, { "seconds", json_real(item->seconds) },
			{ "there", json_boolean(item->present) }, { "known", json_boolean(item->known) },
			{ "current", json_boolean(item->current) }, { "runs", runs });
	if (l->call->keys && l->cache->manifest && (text = xfp_manifest_key_text(l->cache->manifest, item->key))) {
		xfp_json_put(&root, "key_text", xfp_json_text(text));
		free(text);
	}
	return root;
}

/* Objects are printed one by one: there may be a hundred thousand. */
static enum xfp_status print_json(const struct listing *l, struct xfp_error *err)
{
	uint64_t bytes = 0, current = 0;
	enum xfp_status status;

	fputs("{\n  \"cache\": ", stdout);
	status = xfp_json_print_line(xfp_json_text(l->cache->store.folder), err);
	printf(",\n  \"manifest\": \"%s\",\n  \"artifacts\": [", xfp_cache_state_name(l->cache->state));
	for (uint32_t i = 0; !status && i < l->count; i++) {
		const struct xfp_census_item *item = l->list[i].item;

		fputs(i ? ",\n    " : "\n    ", stdout);
		status = xfp_json_print_line(item_json(l, item), err);
		bytes += item->present ? item->bytes : 0;
		current += item->current;
	}
	printf("\n  ],\n  \"count\": %" PRIu32 ",\n  \"bytes\": %" PRIu64 ",\n  \"current\": %" PRIu64 "\n}\n",
	       l->count, bytes, current);
	return status;
}

/* ---- the command ------------------------------------------------------------------------------- */

static int run(const struct xfp_cache_call *call, struct xfp_error *err)
{
	struct xfp_cache cache;
	struct listing l = { .call = call, .cache = &cache };
	enum xfp_status status = xfp_cache_open(call->folder, &cache, err);
	uint32_t number;

	if (status)
		return status;
	xfp_cache_mention_state(call, &cache);
	if (call->operand) {
		if (!(status = xfp_census_find(&cache.census, call->operand, &number, err)))
			status = xfp_cache_explain(call, &cache, number, err);
	} else if (!(status = choose(&l, err))) {
		if (call->json)
			status = print_json(&l, err);
		else
			print_text(&l);
	}
	free(l.list);
	xfp_cache_close(&cache);
	return status;
}

static size_t options(struct xfp_cache_call *call, struct xfp_option own[XFP_CACHE_OPTIONS])
{
	size_t count = 0;

	for (unsigned i = 0; i < XFP_STAMPS; i++)
		call->kinds[i] = xfp_kind_at(i);
	own[count++] = (struct xfp_option){ .name = "kind",
					    .value = "KIND",
					    .text = "list only survey, scales, outliers, fit, choice, packed or inputs",
					    .choices = call->kinds,
					    .into = &call->kind };
	own[count++] = (struct xfp_option){ .name = "unit",
					    .value = "GLOB",
					    .text = "list only artifacts of units whose name matches",
					    .into = &call->unit };
	own[count++] = (struct xfp_option){ .name = "sort",
					    .value = "ORDER",
					    .text = "sort by unit (the default), key, kind, size or made",
					    .choices = orders,
					    .into = &call->sort };
	own[count++] = (struct xfp_option){ .name = "reverse", .text = "reverse the order", .set = &call->reverse };
	own[count++] = (struct xfp_option){ .name = "keys",
					    .text = "print complete keys and their ingredients",
					    .set = &call->keys };
	return count;
}

const struct xfp_cache_command xfp_cache_ls = {
	.name = "ls",
	.usage = "xfp cache ls [--cache DIR] [--kind KIND] [--unit GLOB] [--sort ORDER] "
		 "[--reverse] [--keys] [--json] [KEY]",
	.text = "list artifacts, or everything about one",
	.summary = "Lists the artifacts of a cache. With KEY, or a prefix of one, prints everything about that\n"
		   "artifact: its sources, its contents, the runs that use it.",
	.options = options,
	.operand = "?",
	.run = run,
};
