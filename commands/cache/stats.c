/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.c - xfp cache stats: statistics of a cache.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/size.h"
#include "base/text/utc.h"
#include "cache/check.h"
#include "cache/gc.h"
#include "commands/cache/cache.h"
#include "commands/ui/record.h"
#include "schemas/inputs.h"
#include "schemas/surveyed.h"
#include "stages/work/stages.h"

#define MAX_RUNS 10 /* in text; JSON lists all */

struct sum {
	uint64_t artifacts, bytes, current, current_bytes;
	double seconds;
};

struct figures {
	const struct xfp_cache *cache;
	struct sum kind[XFP_STAMPS + 1], all; /* by stamp; the last entry is for unknown ones */
	uint64_t weights;                     /* in current packed artifacts */
	uint64_t unknown, other_bytes;
	int64_t oldest, newest;
	struct xfp_gc_plan gc;
	struct xfp_check_result check;
};

/* ---- counting ---------------------------------------------------------------------------------- */

static void add(struct sum *sum, const struct xfp_census_item *item)
{
	sum->artifacts++;
	sum->bytes += item->bytes;
	sum->seconds += item->seconds;
	sum->current += item->current;
	sum->current_bytes += item->current ? item->bytes : 0;
}

static void count(struct figures *f)
{
	const struct xfp_census *census = &f->cache->census;

	for (uint32_t i = 0; i < census->count; i++) {
		const struct xfp_census_item *item = &census->items[i];

		if (!item->present)
			continue;
		add(&f->kind[xfp_kind_place(item->kind)], item);
		add(&f->all, item);
		f->weights += item->current ? item->weights : 0;
		if (!f->oldest || item->made < f->oldest)
			f->oldest = item->made;
		if (item->made > f->newest)
			f->newest = item->made;
	}
	for (uint32_t i = 0; i < census->other_count; i++) {
		f->unknown += census->others[i].what == XFP_STORE_UNKNOWN;
		f->other_bytes += census->others[i].bytes;
	}
}

/* Findings are only counted; xfp cache check prints them. */
static enum xfp_status ignore_finding(const struct xfp_finding *finding, void *context, struct xfp_error *err)
{
	(void)finding;
	(void)context;
	(void)err;
	return XFP_OK;
}

static enum xfp_status find_damage(struct figures *f, struct xfp_error *err)
{
	const struct xfp_check_rules rules = { 0 };
	const struct xfp_check_hooks hooks = { .found = ignore_finding };

	return xfp_check_cache(&f->cache->store, &f->cache->census, false, &rules, &hooks, &f->check, err);
}

/* Stored bytes over two bytes per weight, for current artifacts. */
static double share(const struct figures *f, uint64_t bytes)
{
	return f->weights ? (double)bytes / (2.0 * (double)f->weights) : 0;
}

/* ---- text -------------------------------------------------------------------------------------- */

static void print_line(const struct figures *f, const char *name, const struct sum *sum)
{
	char bytes[32], current[32], part[32] = "-";

	if (f->weights)
		snprintf(part, sizeof part, "%.2f%%", 100 * share(f, sum->current_bytes));
	printf("%-10s %9" PRIu64 " %9s %9" PRIu64 " %9s %8s %10.1f\n", name, sum->artifacts,
	       xfp_human((double)sum->bytes, "B", bytes), sum->current,
	       xfp_human((double)sum->current_bytes, "B", current), part, sum->seconds);
}

static enum xfp_status print_runs(const struct figures *f, struct xfp_error *err)
{
	uint32_t count = f->cache->census.run_count;
	json_t *runs = json_array();
	enum xfp_status status = xfp_manifest_summaries(f->cache->manifest, MAX_RUNS, xfp_json_add_row, &runs, err);

	putchar('\n');
	if (status)
		json_decref(runs);
	else
		status = xfp_record_table("run,started,status,units,fitted,packed=repacked,cached,seconds%.1f",
					  "output", runs, err);
	if (count > MAX_RUNS)
		printf("and %" PRIu32 " before\n", count - MAX_RUNS);
	return status;
}

static enum xfp_status print_text(const struct figures *f, struct xfp_error *err)
{
	char oldest[32], newest[32], bytes[32], weights[32];
	const char *kind;
	unsigned i;

	puts("kind       artifacts      size   current      size    share    seconds");
	/* Only calibrated conversions have inputs and scales. */
	for (i = 0; (kind = xfp_kind_at(i)); i++)
		if (f->kind[i].artifacts || (strcmp(kind, XFP_INPUTS_KIND) != 0 && strcmp(kind, XFP_SCALES_KIND) != 0))
			print_line(f, kind, &f->kind[i]);
	if (f->kind[i].artifacts)
		print_line(f, "unknown", &f->kind[i]);
	print_line(f, "all", &f->all);
	printf("\nshare: of two bytes per weight, for the %s weights of current units;\nseconds: to make them\n",
	       xfp_human((double)f->weights, "", weights));
	if (f->all.artifacts)
		printf("made from %s to %s\n", xfp_utc(f->oldest, oldest), xfp_utc(f->newest, newest));
	printf("manifest and everything else: %s%s\n", xfp_human((double)f->other_bytes, "B", bytes),
	       f->unknown ? ", of it files that xfp did not make, see xfp cache check" : "");
	printf("damaged: %" PRIu64 ", by size and header; xfp cache check --read-data reads them\n",
	       f->check.found[XFP_FINDING_DAMAGED] + f->check.found[XFP_FINDING_UNREADABLE]);
	printf("xfp cache gc would free %s\n", xfp_human((double)(f->gc.before - f->gc.after), "B", bytes));
	if (!f->cache->manifest || !f->cache->census.run_count)
		return XFP_OK;
	return print_runs(f, err);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static json_t *sum_json(const struct figures *f, const struct sum *sum)
{
	return XFP_JSON({ "artifacts", xfp_json_count(sum->artifacts) }, { "bytes", xfp_json_count(sum->bytes) },
			{ "current", xfp_json_count(sum->current) },
			{ "current_bytes", xfp_json_count(sum->current_bytes) },
			{ "share", f->weights ? json_real(share(f, sum->current_bytes)) : json_null() },
			{ "seconds", json_real(sum->seconds) });
}

static enum xfp_status print_json(const struct figures *f, struct xfp_error *err)
{
	json_t *by_kind = json_object(), *runs = json_array(), *root;
	enum xfp_status status = XFP_OK;
	const char *kind;
	unsigned i;

	for (i = 0; (kind = xfp_kind_at(i)); i++)
		xfp_json_put(&by_kind, kind, sum_json(f, &f->kind[i]));
	xfp_json_put(&by_kind, "unknown", sum_json(f, &f->kind[i]));
	if (f->cache->manifest)
		status = xfp_manifest_summaries(f->cache->manifest, -1, xfp_json_add_row, &runs, err);
	root = XFP_JSON({ "cache", xfp_json_text(f->cache->store.folder) },
			{ "manifest", xfp_json_text(xfp_cache_state_name(f->cache->state)) }, { "kinds", by_kind },
			{ "all", sum_json(f, &f->all) }, { "weights", xfp_json_count(f->weights) },
			{ "oldest", xfp_json_time(f->oldest) }, { "newest", xfp_json_time(f->newest) },
			{ "other_bytes", xfp_json_count(f->other_bytes) },
			{ "unknown_files", xfp_json_count(f->unknown) },
			{ "damaged", xfp_json_count(f->check.found[XFP_FINDING_DAMAGED] +
						    f->check.found[XFP_FINDING_UNREADABLE]) },
			{ "gc_frees", xfp_json_count(f->gc.before - f->gc.after) }, { "runs", runs });
	if (!status)
		return xfp_json_print(root, err);
	json_decref(root);
	return status;
}

/* ---- the command ------------------------------------------------------------------------------- */

static int run(const struct xfp_cache_call *call, struct xfp_error *err)
{
	struct xfp_gc_rules rules = { .keep_runs = call->keep_runs, .older_than = INT64_MAX };
	struct xfp_cache cache;
	struct figures f = { .cache = &cache };
	enum xfp_status status = xfp_cache_open(call->folder, &cache, err);

	if (status)
		return status;
	xfp_cache_mention_state(call, &cache);
	count(&f);
	if (!(status = find_damage(&f, err)) && !(status = xfp_gc_plan(&cache.census, &rules, &f.gc, err)))
		status = call->json ? print_json(&f, err) : print_text(&f, err);
	xfp_gc_plan_free(&f.gc);
	xfp_cache_close(&cache);
	return status;
}

const struct xfp_cache_command xfp_cache_stats = {
	.name = "stats",
	.usage = "xfp cache stats [--cache DIR] [--json]",
	.text = "print counts, sizes, hits and costs",
	.summary = "Sums up a cache: by kind, by run, damaged artifacts, and what xfp cache gc would free.",
	.run = run,
};
