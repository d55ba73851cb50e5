/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/gc.h"

#include <stdlib.h>
#include <string.h>

/* Clocks of hosts that share a folder differ a little, and a run is entered in the manifest shortly after it began. */
#define SLACK_S 600

/* Rows per transaction. */
#define BATCH 8192

/* ---- runs -------------------------------------------------------------------------------------- */

/* Keep the last `keep` successful runs of each output that still exists, and of any output all runs after the last
 * successful one: an interrupted run has not written an output yet. */
static void choose_runs(const struct xfp_census *c, uint32_t keep, bool *kept, bool *unfinished)
{
	for (uint32_t i = 0; i < c->run_count; i++) {
		uint32_t later = 0; /* successful later runs of the same output */

		for (uint32_t j = i + 1; j < c->run_count && later <= keep; j++)
			later += !c->runs[j].status && !strcmp(c->runs[j].output, c->runs[i].output);
		if (c->runs[i].status)
			unfinished[i] = keep && !later;
		else
			kept[i] = later < keep && !c->runs[i].gone;
	}
}

/* Whether the artifact was made while a run that never finished was running. */
static bool made_by_unfinished(const struct xfp_census *c, const bool *unfinished, const struct xfp_census_item *item)
{
	for (uint32_t r = 0; r < c->run_count; r++)
		if (unfinished[r] && item->made >= c->runs[r].started - SLACK_S &&
		    (!c->runs[r].ended || item->made <= c->runs[r].ended + SLACK_S))
			return true;
	return false;
}

/* Whether the artifact is older than all runs of a manifest that was rebuilt and has lost earlier ones. */
static bool is_unrecorded(const struct xfp_census *c, const struct xfp_census_item *item)
{
	return !item->runs && (!c->run_count || item->made < c->runs[0].started - SLACK_S);
}

/* `any`: whether runs keep anything at all. */
static enum xfp_gc_reason why_kept(const struct xfp_census *c, const struct xfp_census_item *item, bool any,
				   const bool *kept, const bool *unfinished)
{
	bool later = false;

	for (uint32_t i = item->run; i < item->run + item->runs; i++) {
		if (kept[c->use[i]])
			return XFP_GC_RUN;
		later |= unfinished[c->use[i]];
	}
	if (later || (!item->runs && made_by_unfinished(c, unfinished, item)))
		return XFP_GC_UNFINISHED;
	return any && is_unrecorded(c, item) ? XFP_GC_UNRECORDED : XFP_GC_REMOVED;
}

/* ---- the plan ---------------------------------------------------------------------------------- */

struct aged {
	int64_t last_use;
	uint32_t item;
};

/* Least recently used first; ties are broken by key, so that the order is deterministic. */
static int by_age(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	if (x->last_use != y->last_use)
		return x->last_use < y->last_use ? -1 : 1;
	return x->item < y->item ? -1 : 1;
}

/* Keep artifacts that need not be removed to reach the size limit. */
static enum xfp_status spare(const struct xfp_census *c, uint64_t size, uint64_t max, uint8_t *why,
			     struct xfp_error *err)
{
	struct aged *aged = malloc((c->count + (size_t)1) * sizeof *aged);
	uint32_t count = 0;

	if (!aged)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < c->count; i++)
		if (why[i] == XFP_GC_REMOVED && c->items[i].present)
			aged[count++] = (struct aged){ xfp_census_last_use(c, &c->items[i]), i };
	if (count)
		qsort(aged, count, sizeof *aged, by_age);
	for (uint32_t i = 0; i < count; i++) {
		if (size <= max)
			why[aged[i].item] = XFP_GC_FITS;
		else
			size -= c->items[aged[i].item].bytes;
	}
	free(aged);
	return XFP_OK;
}

static void add(struct xfp_gc_sum *sum, uint64_t bytes)
{
	sum->count++;
	sum->bytes += bytes;
}

static void sum_others(const struct xfp_census *c, struct xfp_gc_plan *plan)
{
	for (uint32_t i = 0; i < c->other_count; i++) {
		plan->before += c->others[i].bytes;
		if (c->others[i].what == XFP_STORE_DEBRIS)
			add(&plan->debris, c->others[i].bytes);
		else if (c->others[i].what == XFP_STORE_SUPERSEDED)
			add(&plan->superseded, c->others[i].bytes);
	}
}

static void sum_artifacts(const struct xfp_census *c, struct xfp_gc_plan *plan)
{
	for (uint32_t i = 0; i < c->count; i++) {
		if (!c->items[i].present)
			plan->rows += plan->why[i] == XFP_GC_REMOVED;
		else
			add(plan->why[i] ? &plan->stays[plan->why[i]] : &plan->artifacts, c->items[i].bytes);
	}
}

enum xfp_status xfp_gc_plan(const struct xfp_census *c, const struct xfp_gc_rules *rules, struct xfp_gc_plan *plan,
			    struct xfp_error *err)
{
	bool *kept = calloc(c->run_count + (size_t)1, sizeof *kept);
	bool *unfinished = calloc(c->run_count + (size_t)1, sizeof *unfinished);
	enum xfp_status status = XFP_OK;

	*plan = (struct xfp_gc_plan){ .why = calloc(c->count + (size_t)1, 1) };
	if (!kept || !unfinished || !plan->why) {
		status = xfp_no_memory(err);
		goto done;
	}
	choose_runs(c, rules->keep_runs, kept, unfinished);
	sum_others(c, plan);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct xfp_census_item *item = &c->items[i];

		/* A row without a file is useless, even if a run uses it. */
		plan->why[i] = item->present ? why_kept(c, item, rules->keep_runs, kept, unfinished) : XFP_GC_REMOVED;
		if (plan->why[i] == XFP_GC_REMOVED && item->present &&
		    xfp_census_last_use(c, item) >= rules->older_than)
			plan->why[i] = XFP_GC_YOUNG;
		plan->before += item->present ? item->bytes : 0;
	}
	if (rules->max_size)
		status = spare(c, plan->before - plan->debris.bytes - plan->superseded.bytes, rules->max_size,
			       plan->why, err);
	sum_artifacts(c, plan);
	plan->after = plan->before - plan->artifacts.bytes - plan->debris.bytes - plan->superseded.bytes;
done:
	free(kept);
	free(unfinished);
	if (status)
		xfp_gc_plan_free(plan);
	return status;
}

void xfp_gc_plan_free(struct xfp_gc_plan *plan)
{
	free(plan->why);
	*plan = (struct xfp_gc_plan){ 0 };
}

/* ---- removal ----------------------------------------------------------------------------------- */

enum xfp_status xfp_gc_remove(const struct xfp_store *store, const struct xfp_census *c, const struct xfp_gc_plan *plan,
			      struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < c->other_count; i++)
		if (c->others[i].what == XFP_STORE_DEBRIS || c->others[i].what == XFP_STORE_SUPERSEDED)
			status = xfp_remove_file(c->others[i].path, err);
	for (uint32_t i = 0; !status && i < c->count; i++) {
		char *path;

		if (plan->why[i] != XFP_GC_REMOVED || !c->items[i].present)
			continue;
		path = xfp_store_path(store, c->items[i].key);
		status = path ? xfp_remove_file(path, err) : xfp_no_memory(err);
		free(path);
	}
	return status;
}

enum xfp_status xfp_gc_remove_rows(struct xfp_manifest *manifest, const struct xfp_census *c,
				   const struct xfp_gc_plan *plan, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK, committed;

	for (uint32_t i = 0; !status && i < c->count;) {
		if ((status = xfp_manifest_begin(manifest, err)))
			return status;
		for (uint32_t rows = 0; !status && i < c->count && rows < BATCH; i++)
			if (plan->why[i] == XFP_GC_REMOVED && ++rows)
				status = xfp_manifest_remove_artifact(manifest, c->items[i].key, err);
		committed = xfp_manifest_commit(manifest, status ? NULL : err);
		status = status ? status : committed;
	}
	return status;
}
