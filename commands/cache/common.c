/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "base/system/clock.h"
#include "base/text/screen.h"
#include "commands/cache/cache.h"
#include "commands/ui/pace.h"
#include "stages/work/work.h"

#define DRAW_SECONDS .2
#define LINE_SECONDS 10

/* ---- the open cache ---------------------------------------------------------------------------- */

enum xfp_status xfp_cache_open(const char *folder, struct xfp_cache *cache, struct xfp_error *err)
{
	enum xfp_status status;

	*cache = (struct xfp_cache){ 0 };
	if ((status = xfp_store_open_readonly(folder, &cache->store, err)))
		return status;
	if (!(status = xfp_manifest_open_readonly(&cache->store, &cache->manifest, &cache->state, err)))
		status = xfp_census_take(&cache->store, cache->manifest, &cache->census, err);
	/* Damage inside the manifest is found only when it is read. Without the manifest, the folder alone gives less
	 * detail. */
	if (status && cache->manifest && xfp_manifest_is_damaged(cache->manifest)) {
		xfp_manifest_close(cache->manifest);
		cache->manifest = NULL;
		cache->state = XFP_MANIFEST_DAMAGED;
		status = xfp_census_take(&cache->store, NULL, &cache->census, err);
	}
	if (status)
		xfp_cache_close(cache);
	return status;
}

void xfp_cache_close(struct xfp_cache *cache)
{
	xfp_census_free(&cache->census);
	xfp_manifest_close(cache->manifest);
	xfp_store_close(&cache->store);
	*cache = (struct xfp_cache){ 0 };
}

const char *xfp_cache_state_name(enum xfp_manifest_state state)
{
	switch (state) {
	case XFP_MANIFEST_READY:
		return "sound";
	case XFP_MANIFEST_ABSENT:
	case XFP_MANIFEST_EMPTY:
		return "missing";
	case XFP_MANIFEST_OTHER:
		return "other version";
	case XFP_MANIFEST_UNREADABLE:
		return "unreadable";
	case XFP_MANIFEST_DAMAGED:
		break;
	}
	return "damaged";
}

void xfp_cache_mention_state(const struct xfp_cache_call *call, const struct xfp_cache *cache)
{
	static const char *const what[] = {
		[XFP_MANIFEST_ABSENT] = "there is no manifest",
		[XFP_MANIFEST_EMPTY] = "the manifest is empty",
		[XFP_MANIFEST_OTHER] = "the manifest is of another version of xfp",
		[XFP_MANIFEST_DAMAGED] = "the manifest is damaged",
		[XFP_MANIFEST_UNREADABLE] =
			"the manifest has a journal, which cannot be replayed in a read-only folder",
	};

	if (cache->state != XFP_MANIFEST_READY && (cache->census.count || cache->state == XFP_MANIFEST_DAMAGED))
		xfp_screen_printf(stderr, "%s: %s: %s, so only files are listed; xfp cache rebuild makes a new one\n",
				  call->program, cache->store.folder, what[cache->state]);
}

void xfp_cache_mention_lock(const struct xfp_cache_call *call, int lock)
{
	if (lock < 0)
		xfp_screen_printf(
			stderr, "%s: %s: this file system has no locks; make sure that no conversion uses the cache\n",
			call->program, call->folder);
}

/* ---- printing ---------------------------------------------------------------------------------- */

enum xfp_status xfp_json_add_row(const struct xfp_value *values, unsigned count, void *list, struct xfp_error *err)
{
	json_t *row = json_object();

	for (unsigned i = 0; i < count; i++) {
		const struct xfp_value *v = &values[i];

		xfp_json_put(&row, v->name,
			     v->type == XFP_VALUE_INTEGER ? json_integer(v->integer)
			     : v->type == XFP_VALUE_REAL  ? json_real(v->real)
			     : v->type == XFP_VALUE_TEXT  ? xfp_json_text(v->text)
							  : json_null());
	}
	xfp_json_add(list, row);
	return *(json_t **)list ? XFP_OK : xfp_no_memory(err);
}

/* ---- progress ---------------------------------------------------------------------------------- */

void xfp_cache_progress_begin(struct xfp_cache_progress *progress, const char *program)
{
	double now = xfp_now();

	*progress = (struct xfp_cache_progress){ .program = program, .started = now, .printed = now };
	xfp_meter_begin(&progress->meter);
}

void xfp_cache_progress_show(uint64_t done, uint64_t total, void *context)
{
	struct xfp_cache_progress *progress = context;
	double now = xfp_now(), left;
	struct xfp_pace pace = { (double)total, 0, (double)done, now - progress->started, 0 };
	int percent = total ? (int)(100 * pace.fresh / pace.total) : 100;
	char clock[32];

	if (now - progress->printed < (progress->meter.terminal ? DRAW_SECONDS : LINE_SECONDS))
		return;
	progress->printed = now;
	left = xfp_pace_remaining(&pace);
	xfp_clock_text(left < 0 ? 0 : left < XFP_PACE_MAX ? left : XFP_PACE_MAX, clock);
	if (progress->meter.terminal)
		xfp_meter_draw(&progress->meter, "%s: %d%%, ETA %s", progress->program, percent, clock);
	else
		fprintf(stderr, "%s: %d%%, ETA %s\n", progress->program, percent, clock);
}

void xfp_cache_progress_clear(struct xfp_cache_progress *progress)
{
	xfp_meter_clear(&progress->meter);
}
