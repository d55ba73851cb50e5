/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - xfp cache ls KEY: everything known about one artifact.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "base/text/utc.h"
#include "cache/explain.h"
#include "commands/cache/cache.h"

struct explaining {
	const struct xfp_cache *cache;
	const struct xfp_census_item *item;
	struct xfp_manifest *manifest; /* the cache's, or a scratch one with only this artifact */
	char *kind, *unit, *key_text;
	double seconds;
	bool first; /* no row printed yet */
};

/* Read an artifact that the manifest does not list into a scratch manifest, so that the rest of the code sees one
 * case. */
static enum xfp_status find_label(struct explaining *e, struct xfp_manifest **scratch, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	e->manifest = e->cache->manifest;
	if (!e->item->known) {
		if ((status = xfp_manifest_scratch(scratch, err)) ||
		    (status = xfp_manifest_ingest(*scratch, &e->cache->store, e->item->key, err)))
			return status == XFP_DAMAGED ? XFP_BAD_INPUT : status;
		e->manifest = *scratch;
	}
	if (!xfp_manifest_label(e->manifest, e->item->key, &e->kind, &e->unit, &e->seconds) ||
	    !(e->key_text = xfp_manifest_key_text(e->manifest, e->item->key)))
		status = xfp_fail(err, XFP_FAILED, "%s: no longer exists", e->item->key);
	return status;
}

static bool is_made_from(const struct explaining *e, const struct xfp_census_item *other)
{
	const struct xfp_census *census = &e->cache->census;
	bool found = false;

	for (uint32_t i = 0; i < other->inputs; i++)
		found |= &census->items[census->input[other->input + i]] == e->item;
	return found;
}

/* ---- text -------------------------------------------------------------------------------------- */

static void print_value(const struct xfp_value *value)
{
	switch (value->type) {
	case XFP_VALUE_INTEGER:
		printf(" %s %" PRId64, value->name, value->integer);
		break;
	case XFP_VALUE_REAL:
		printf(" %s %.9g", value->name, value->real);
		break;
	case XFP_VALUE_TEXT:
		printf(" %s %s", value->name, xfp_printable(value->text).text);
		break;
	case XFP_VALUE_NULL:
		break;
	}
}

static enum xfp_status print_row(const struct xfp_value *values, unsigned count, void *context, struct xfp_error *err)
{
	struct explaining *e = context;

	(void)err;
	printf("%-8s ", e->first ? "holds" : "");
	e->first = false;
	for (unsigned i = 0; i < count; i++)
		print_value(&values[i]);
	putchar('\n');
	return XFP_OK;
}

static void print_relative(const char *title, const struct xfp_census_item *other)
{
	printf("%-8s  %s %s%s\n", title, other->key, xfp_printable(other->kind).text, other->present ? "" : " (gone)");
}

static void print_run(const char *title, const struct xfp_census_run *run)
{
	char time[32], how[32];

	if (run->status < 0)
		snprintf(how, sizeof how, "not ended");
	else
		snprintf(how, sizeof how, "status %d", run->status);
	printf("%-8s  %" PRId64 " of %s, %s%s, %s\n", title, run->run, xfp_utc(run->started, time), how,
	       run->latest ? ", the last of its output" : "", xfp_printable(run->output).text);
}

static enum xfp_status print_text(struct explaining *e, struct xfp_error *err)
{
	const struct xfp_census *census = &e->cache->census;
	const struct xfp_census_item *item = e->item;
	const char *title = "key of";
	char size[32], time[32], *rest = e->key_text, *line;
	enum xfp_status status;

	printf("key       %s\nkind      %s\nunit      %s\n", item->key, xfp_printable(e->kind).text,
	       xfp_printable(e->unit).text);
	if (item->present)
		printf("size      %s\nmade      %s, in %.3f s\n", xfp_human((double)item->bytes, "B", size),
		       xfp_utc(item->made, time), e->seconds);
	else
		puts("size      missing; recomputed when it is needed");
	printf("current   %s\n", item->current ? "yes" : "no");
	while ((line = strsep(&rest, "\n")))
		if (*line) {
			printf("%-8s  %s\n", title, xfp_printable(line).text);
			title = "";
		}
	e->first = true;
	if ((status = xfp_manifest_content(e->manifest, e->kind, item->key, print_row, e, err)))
		return status;
	for (uint32_t i = 0; i < item->inputs; i++)
		print_relative(i ? "" : "from", &census->items[census->input[item->input + i]]);
	for (uint32_t i = 0; i < census->count; i++)
		if (is_made_from(e, &census->items[i]))
			print_relative("into", &census->items[i]);
	for (uint32_t i = 0; i < item->runs; i++)
		print_run("run", &census->runs[census->use[item->run + i]]);
	return XFP_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static json_t *run_json(const struct xfp_census_run *run)
{
	return XFP_JSON({ "run", json_integer(run->run) }, { "output", xfp_json_text(run->output) },
			{ "started", xfp_json_time(run->started) }, { "ended", xfp_json_time(run->ended) },
			{ "status", run->status < 0 ? json_null() : json_integer(run->status) },
			{ "bundle", *run->bundle ? json_string(run->bundle) : json_null() },
			{ "latest", json_boolean(run->latest) });
}

static enum xfp_status print_json(struct explaining *e, struct xfp_error *err)
{
	const struct xfp_census *census = &e->cache->census;
	const struct xfp_census_item *item = e->item;
	json_t *content = json_array(), *from = json_array(), *into = json_array(), *runs = json_array(), *root;
	enum xfp_status status;

	for (uint32_t i = 0; i < item->inputs; i++)
		xfp_json_add(&from, json_string(census->items[census->input[item->input + i]].key));
	for (uint32_t i = 0; i < census->count; i++)
		if (is_made_from(e, &census->items[i]))
			xfp_json_add(&into, json_string(census->items[i].key));
	for (uint32_t i = 0; i < item->runs; i++)
		xfp_json_add(&runs, run_json(&census->runs[census->use[item->run + i]]));
	status = xfp_manifest_content(e->manifest, e->kind, item->key, xfp_json_add_row, &content, err);
	root = XFP_JSON({ "key", xfp_json_text(item->key) }, { "kind", xfp_json_text(e->kind) },
			{ "unit", xfp_json_text(e->unit) }, { "bytes", xfp_json_count(item->bytes) },
			{ "made", xfp_json_time(item->made) }, { "seconds", json_real(e->seconds) },
			{ "there", json_boolean(item->present) }, { "known", json_boolean(item->known) },
			{ "current", json_boolean(item->current) }, { "key_text", xfp_json_text(e->key_text) },
			{ "holds", content }, { "from", from }, { "into", into }, { "runs", runs });
	if (!status)
		return xfp_json_print(root, err);
	json_decref(root);
	return status;
}

enum xfp_status xfp_cache_explain(const struct xfp_cache_call *call, const struct xfp_cache *cache, uint32_t number,
				  struct xfp_error *err)
{
	struct explaining e = { .cache = cache, .item = &cache->census.items[number] };
	struct xfp_manifest *scratch = NULL;
	enum xfp_status status = find_label(&e, &scratch, err);

	if (!status)
		status = call->json ? print_json(&e, err) : print_text(&e, err);
	xfp_manifest_close(scratch);
	free(e.kind);
	free(e.unit);
	free(e.key_text);
	return status;
}
