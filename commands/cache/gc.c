/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.c - xfp cache gc: remove artifacts that no recent run uses.
 */
#include "cache/gc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "cache/lock.h"
#include "commands/cache/cache.h"

#define DAY_S 86400
#define LISTED 20 /* files that a dry run lists as text */

static struct xfp_gc_rules rules_of(const struct xfp_cache_call *call)
{
	int64_t now = (int64_t)time(NULL);

	return (struct xfp_gc_rules){
		.keep_runs = call->keep_runs,
		.max_size = call->max_size,
		.older_than = call->days ? now - (int64_t)call->days * DAY_S : INT64_MAX,
	};
}

/* ---- output ------------------------------------------------------------------------------------ */

static const char *const reasons[XFP_GC_REASONS] = {
	[XFP_GC_RUN] = "used by recent runs",
	[XFP_GC_UNFINISHED] = "of runs that can be resumed",
	[XFP_GC_UNRECORDED] = "older than all known runs, so their use is unknown",
	[XFP_GC_YOUNG] = "not old enough",
	[XFP_GC_FITS] = "within --max-size",
};
static const char *const names[XFP_GC_REASONS] = {
	[XFP_GC_RUN] = "recent",
	[XFP_GC_UNFINISHED] = "unfinished",
	[XFP_GC_UNRECORDED] = "unrecorded",
	[XFP_GC_YOUNG] = "young",
	[XFP_GC_FITS] = "fits",
};

/* Whether an artifact is removed only because the output of its run was deleted. The run is not reported afterwards. */
static bool is_forgotten(const struct xfp_census *census, const struct xfp_gc_plan *plan, uint32_t run)
{
	if (!census->runs[run].gone || !census->runs[run].latest)
		return false;
	for (uint32_t i = 0; i < census->count; i++) {
		const struct xfp_census_item *item = &census->items[i];

		for (uint32_t u = 0; plan->why[i] == XFP_GC_REMOVED && item->present && u < item->runs; u++)
			if (census->use[item->run + u] == run)
				return true;
	}
	return false;
}

static void print_list(const struct xfp_cache *cache, const struct xfp_gc_plan *plan)
{
	uint64_t count = 0;
	char size[32];

	for (uint32_t i = 0; i < cache->census.count; i++) {
		const struct xfp_census_item *item = &cache->census.items[i];

		if (plan->why[i] == XFP_GC_REMOVED && item->present && count++ < LISTED)
			printf("would be removed: %s  %-8s  %8s  %s\n", item->key,
			       *item->kind ? xfp_printable(item->kind).text : "-",
			       xfp_human((double)item->bytes, "B", size),
			       *item->unit ? xfp_printable(item->unit).text : "-");
	}
	for (uint32_t i = 0; i < cache->census.other_count; i++) {
		const struct xfp_census_other *other = &cache->census.others[i];

		if (other->what == XFP_STORE_DEBRIS || other->what == XFP_STORE_SUPERSEDED)
			printf("would be removed: %s\n", xfp_printable(other->path).text);
	}
	if (count > LISTED)
		printf("and %" PRIu64 " more artifacts; --json has the keys of all\n", count - LISTED);
}

static void print_sum(const char *what, const struct xfp_gc_sum *sum)
{
	char size[32];

	if (sum->count)
		printf("%s%" PRIu64 ", %s\n", what, sum->count, xfp_human((double)sum->bytes, "B", size));
}

static void print_text(const struct xfp_cache_call *call, const struct xfp_cache *cache, const struct xfp_gc_plan *plan)
{
	char freed[32], left[32];

	if (call->dry_run)
		print_list(cache, plan);
	for (uint32_t i = 0; i < cache->census.other_count; i++)
		if (cache->census.others[i].what == XFP_STORE_UNKNOWN)
			printf("kept, not made by xfp: %s\n", xfp_printable(cache->census.others[i].path).text);
	for (uint32_t i = 0; i < cache->census.run_count; i++)
		if (is_forgotten(&cache->census, plan, i))
			printf("output deleted, nothing is kept for it: %s\n",
			       xfp_printable(cache->census.runs[i].output).text);
	print_sum("artifacts: ", &plan->artifacts);
	print_sum("leftovers of dead processes: ", &plan->debris);
	print_sum("files of superseded manifests: ", &plan->superseded);
	if (plan->rows)
		printf("rows of missing artifacts: %" PRIu64 "\n", plan->rows);
	for (int why = 1; why < XFP_GC_REASONS; why++)
		if (plan->stays[why].count)
			printf("%" PRIu64 " artifacts stay, %s: %s\n", plan->stays[why].count,
			       xfp_human((double)plan->stays[why].bytes, "B", left), reasons[why]);
	printf("%s %s; %s are left\n", call->dry_run ? "would free" : "freed",
	       xfp_human((double)(plan->before - plan->after), "B", freed), xfp_human((double)plan->after, "B", left));
}

static json_t *sum_json(const struct xfp_gc_sum *sum)
{
	return XFP_JSON({ "count", xfp_json_count(sum->count) }, { "bytes", xfp_json_count(sum->bytes) });
}

static enum xfp_status print_json(const struct xfp_cache_call *call, const struct xfp_cache *cache,
				  const struct xfp_gc_plan *plan, struct xfp_error *err)
{
	json_t *removed = json_array(), *unknown = json_array(), *stays = json_object(), *gone = json_array();

	for (uint32_t i = 0; i < cache->census.count; i++)
		if (plan->why[i] == XFP_GC_REMOVED && cache->census.items[i].present)
			xfp_json_add(&removed, json_string(cache->census.items[i].key));
	for (uint32_t i = 0; i < cache->census.other_count; i++)
		if (cache->census.others[i].what == XFP_STORE_UNKNOWN)
			xfp_json_add(&unknown, xfp_json_text(cache->census.others[i].path));
	for (uint32_t i = 0; i < cache->census.run_count; i++)
		if (is_forgotten(&cache->census, plan, i))
			xfp_json_add(&gone, xfp_json_text(cache->census.runs[i].output));
	for (int why = 1; why < XFP_GC_REASONS; why++)
		xfp_json_put(&stays, names[why], sum_json(&plan->stays[why]));
	return xfp_json_print(
		XFP_JSON({ "cache", xfp_json_text(cache->store.folder) }, { "dry_run", json_boolean(call->dry_run) },
			 { "artifacts", sum_json(&plan->artifacts) }, { "leftovers", sum_json(&plan->debris) },
			 { "superseded", sum_json(&plan->superseded) }, { "rows", xfp_json_count(plan->rows) },
			 { "stays", stays }, { "freed", xfp_json_count(plan->before - plan->after) },
			 { "bytes", xfp_json_count(plan->after) },
			 { "fits", json_boolean(!call->max_size || plan->after <= call->max_size) },
			 { "removed", removed }, { "unknown", unknown }, { "gone", gone }),
		err);
}

/* ---- the work ---------------------------------------------------------------------------------- */

/* Only the manifest records which artifacts are in use. */
static enum xfp_status check_state(const struct xfp_cache_call *call, const struct xfp_cache *cache,
				   struct xfp_error *err)
{
	if (cache->store.read_only && !call->dry_run)
		return xfp_fail(err, XFP_FAILED, "%s: is read-only, so nothing can be removed from it", call->folder);
	if (cache->state != XFP_MANIFEST_READY && cache->census.count)
		return xfp_fail(
			err, XFP_FAILED,
			"%s: its manifest is %s, so it is unknown which artifacts are in use; first run xfp cache "
			"rebuild --cache %s",
			call->folder, xfp_cache_state_name(cache->state), call->folder);
	return XFP_OK;
}

static enum xfp_status remove_all(struct xfp_cache *cache, const struct xfp_gc_plan *plan, struct xfp_error *err)
{
	struct xfp_manifest *manifest = NULL;
	enum xfp_status status = xfp_gc_remove(&cache->store, &cache->census, plan, err);
	struct xfp_error why = { .text = "" };

	if (status)
		return status;
	xfp_manifest_close(cache->manifest); /* with a full disk, only a single connection can write */
	cache->manifest = NULL;
	if (!(status = xfp_manifest_open(&cache->store, &manifest, NULL, &why)))
		status = xfp_gc_remove_rows(manifest, &cache->census, plan, &why);
	xfp_manifest_close(manifest);
	if (status)
		xfp_fail(err, status, "%" PRIu64 " artifacts were removed, and the manifest still lists them: %s",
			 plan->artifacts.count, why.text);
	return status;
}

/* The census is taken under the lock, so no run can have started that it does not list. */
static enum xfp_status collect(const struct xfp_cache_call *call, struct xfp_cache *cache, struct xfp_gc_plan *plan,
			       struct xfp_error *err)
{
	const struct xfp_gc_rules rules = rules_of(call);
	enum xfp_status status;

	if ((status = xfp_cache_open(call->folder, cache, err)))
		return status;
	if ((status = check_state(call, cache, err)) || (status = xfp_gc_plan(&cache->census, &rules, plan, err)))
		return status;
	if (!call->dry_run && (status = remove_all(cache, plan, err)))
		return status;
	if (!call->json)
		print_text(call, cache, plan);
	else if ((status = print_json(call, cache, plan, err)))
		return status;
	if (call->max_size && plan->after > call->max_size)
		return xfp_fail(
			err, XFP_UNMET,
			"%s: still larger than --max-size, because the rest is in use; a smaller --keep-runs or "
			"--older-than removes more",
			call->folder);
	return XFP_OK;
}

static int run(const struct xfp_cache_call *call, struct xfp_error *err)
{
	struct xfp_gc_plan plan = { 0 };
	struct xfp_cache cache = { 0 };
	struct xfp_store store = { 0 };
	enum xfp_status status = XFP_OK;
	int lock = -1;

	if (!call->dry_run) {
		if ((status = xfp_store_open_readonly(call->folder, &store, err)))
			return status;
		if (!store.read_only && !(status = xfp_lock_exclusive(&store, call->program, &lock, err)))
			xfp_cache_mention_lock(call, lock);
		xfp_store_close(&store);
	}
	if (!status)
		status = collect(call, &cache, &plan, err);
	xfp_lock_release(lock);
	xfp_gc_plan_free(&plan);
	xfp_cache_close(&cache);
	return status;
}

/* ---- the command ------------------------------------------------------------------------------- */

static size_t options(struct xfp_cache_call *call, struct xfp_option own[XFP_CACHE_OPTIONS])
{
	size_t count = 0;

	own[count++] = (struct xfp_option){ .name = "keep-runs",
					    .value = "N",
					    .text = "keep artifacts of the last N successful runs of each output "
						    "(default 1)",
					    .into_32 = &call->keep_runs,
					    .range = { "a number of runs", 0, 1000000 } };
	own[count++] = (struct xfp_option){ .name = "max-size",
					    .value = "BYTES",
					    .text = "remove only until the cache has this size, least recently used "
						    "first; with K, M, G, T, or KiB ...",
					    .into_size = &call->max_size };
	own[count++] = (struct xfp_option){ .name = "older-than",
					    .value = "DAYS",
					    .text = "remove only artifacts not made or used since",
					    .into_64 = &call->days,
					    .range = { "a number of days", 1, 100000 } };
	own[count++] = (struct xfp_option){ .name = "dry-run",
					    .letter = 'n',
					    .text = "remove nothing; list what would be removed",
					    .set = &call->dry_run };
	return count;
}

const struct xfp_cache_command xfp_cache_gc = {
	.name = "gc",
	.usage = "xfp cache gc [--cache DIR] [--keep-runs N] [--max-size BYTES] [--older-than DAYS] [-n] [--json]",
	.text = "remove artifacts that no recent run uses",
	.summary = "Removes artifacts that no recent run of an existing output uses, and leftovers of processes that\n"
		   "ended. Removes nothing while a conversion uses the cache.\n"
		   "Files of other programs are named and not touched.",
	.options = options,
	.run = run,
};
