/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - the frame that every `xfp cache` command runs in: options, the open cache, progress, times.
 */
#ifndef XFP_CACHE_H
#define XFP_CACHE_H

#include "base/system/command_line.h"
#include "cache/census.h"
#include "cache/explain.h"
#include "cache/manifest.h"
#include "cache/store.h"
#include "commands/ui/meter.h"
#include "commands/ui/when.h"
#include "schemas/json_print.h"

struct xfp_cache_call {
	const char *program; /* "xfp cache ls" */
	const char *folder;
	const char *operand; /* NULL: none was given */
	bool json;
	/* of single commands */
	const char *kind, *unit, *sort; /* ls */
	bool keys, reverse;             /* ls */
	bool read, remove;              /* check */
	uint32_t part, of;              /* check, see cache/check.h */
	double percent;                 /* check */
	uint32_t keep_runs;             /* gc */
	uint64_t max_size, days;        /* gc, 0: no limit */
	bool dry_run;                   /* gc */
};

#define XFP_CACHE_OPTIONS 8 /* of its own that a command has, at most */

struct xfp_cache_command {
	const char *name;
	const char *usage;   /* from "xfp" on */
	const char *text;    /* of it in a list of commands */
	const char *summary; /* sentences for --help */
	bool takes_operand;
	/* Fill in its own options, which write to `call`; NULL: it has none. Returns how many. */
	size_t (*options)(struct xfp_cache_call *call, struct xfp_option own[XFP_CACHE_OPTIONS]);
	/* Returns an exit status; what it could not do is in `err`. */
	int (*run)(const struct xfp_cache_call *call, struct xfp_error *err);
};

extern const struct xfp_cache_command xfp_cache_ls, xfp_cache_check, xfp_cache_rebuild, xfp_cache_gc, xfp_cache_stats;

/* ---- the open cache ---------------------------------------------------------------------------- */

struct xfp_cache {
	struct xfp_store store;
	struct xfp_manifest *manifest; /* to be read; NULL where there is none that can be */
	enum xfp_manifest_state state;
	struct xfp_census census;
};

/* Look at a cache as it is. A manifest that is of no use is not an error; a damaged one may be found to be
 * that only here, in which case `manifest` is NULL again. */
enum xfp_status xfp_cache_open(const char *folder, struct xfp_cache *cache, struct xfp_error *err);
void xfp_cache_close(struct xfp_cache *cache);

/* "sound", "missing", ... , as in JSON; and what to do about it on stderr where it is not sound. */
const char *xfp_cache_state_name(enum xfp_manifest_state state);
void xfp_cache_mention_state(const struct xfp_cache_call *call, const struct xfp_cache *cache);

/* A warning, where xfp_lock_alone found nothing to lock. */
void xfp_cache_mention_lock(const struct xfp_cache_call *call, int lock);

/* One artifact, all that is known of it. */
enum xfp_status xfp_cache_explain(const struct xfp_cache_call *call, const struct xfp_cache *cache, uint32_t number,
				  struct xfp_error *err);

/* ---- printing ---------------------------------------------------------------------------------- */

/* A row of the manifest as an object; NULL when out of memory. */
json_t *xfp_json_row(const struct xfp_value *values, unsigned count);
/* How far a long command is, on stderr: on a terminal a line that is rewritten, otherwise one now and then. */
struct xfp_cache_progress {
	const char *program;
	double started, printed;
	struct xfp_meter meter;
};
void xfp_cache_progress_begin(struct xfp_cache_progress *progress, const char *program);
void xfp_cache_progress_show(uint64_t done, uint64_t total, void *progress);
void xfp_cache_progress_clear(struct xfp_cache_progress *progress);

#endif
