/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.c - xfp cache rebuild: rebuild the manifest from the artifacts.
 */
#include "cache/rebuild.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "base/text/screen.h"
#include "cache/lock.h"
#include "commands/cache/cache.h"

struct session {
	const struct xfp_cache_call *call;
	struct xfp_cache_progress progress;
};

static void note_skipped(const char *message, void *context)
{
	struct session *s = context;

	xfp_cache_progress_clear(&s->progress);
	xfp_screen_printf(stderr, "%s: left out: %s\n", s->call->program, message);
}

static void progress(uint64_t done, uint64_t total, void *context)
{
	struct session *s = context;

	xfp_cache_progress_show(done, total, &s->progress);
}

static enum xfp_status print_json(const struct xfp_cache_call *call, const struct xfp_rebuilt *r, struct xfp_error *err)
{
	return xfp_json_print(
		XFP_JSON({ "cache", xfp_json_text(call->folder) }, { "artifacts", xfp_json_count(r->artifacts) },
			 { "left_out", xfp_json_count(r->left_out) },
			 { "old", xfp_json_text(xfp_cache_state_name(r->old)) }, { "runs", xfp_json_count(r->runs) },
			 { "source_files", xfp_json_count(r->sources) },
			 { "lost", *r->lost ? xfp_json_text(r->lost) : json_null() },
			 { "aside", r->aside ? xfp_json_text(r->aside) : json_null() }),
		err);
}

static void print_text(const struct xfp_cache_call *call, const struct xfp_rebuilt *r)
{
	xfp_screen_printf(stdout, "%s: the manifest was rebuilt from %" PRIu64 " artifacts", call->folder,
			  r->artifacts);
	if (r->left_out)
		printf("; %" PRIu64 " were left out, see above: xfp cache check --read-data --remove", r->left_out);
	putchar('\n');
	if (r->old == XFP_MANIFEST_ABSENT || r->old == XFP_MANIFEST_EMPTY)
		puts("there was no manifest before: earlier runs and source files are unknown; source files "
		     "are\nread again, and cached artifacts are not computed again");
	else
		printf("%" PRIu64 " run%s and %" PRIu64 " source file%s copied from the old manifest%s\n", r->runs,
		       r->runs == 1 ? "" : "s", r->sources, r->sources == 1 ? "" : "s",
		       *r->lost ? "; not all of it could be:" : "");
	if (*r->lost)
		printf("  %s\n", xfp_printable(r->lost).text);
	if (r->aside)
		xfp_screen_printf(stdout, "the old one is %s; xfp cache gc removes it\n", r->aside);
}

static int run(const struct xfp_cache_call *call, struct xfp_error *err)
{
	struct session s = { .call = call };
	const struct xfp_rebuild_hooks hooks = { note_skipped, progress, &s };
	struct xfp_rebuilt result = { 0 };
	struct xfp_store store = { 0 };
	enum xfp_status status = xfp_store_open_readonly(call->folder, &store, err);
	int lock = -1;

	if (status)
		return status;
	if (store.read_only)
		status = xfp_fail(err, XFP_FAILED, "%s: is read-only, so the manifest cannot be rebuilt", call->folder);
	if (!status && !(status = xfp_lock_exclusive(&store, call->program, &lock, err))) {
		xfp_cache_mention_lock(call, lock);
		xfp_cache_progress_begin(&s.progress, call->program);
		status = xfp_manifest_rebuild(&store, &hooks, &result, err);
		xfp_cache_progress_clear(&s.progress);
	}
	xfp_lock_release(lock);
	if (!status && call->json)
		status = print_json(call, &result, err);
	else if (!status)
		print_text(call, &result);
	free(result.aside);
	xfp_store_close(&store);
	return status;
}

const struct xfp_cache_command xfp_cache_rebuild = {
	.name = "rebuild",
	.usage = "xfp cache rebuild [--cache DIR] [--json]",
	.text = "rebuild the manifest from the artifacts",
	.summary = "Reads every artifact and writes a new manifest. Runs and source files are copied from the old one\n"
		   "as far as it can be read.",
	.run = run,
};
