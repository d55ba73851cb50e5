/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - declarations that the `xfp cache` subcommands share: options, the open cache, progress, times.
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
#include "stages/work/stages.h"

struct xfp_cache_call {
	const char *program; /* "xfp cache ls" */
	const char *folder;
	bool named;          /* the folder was named by --cache */
	const char *operand; /* NULL if not given */
	bool json;
	/* used by single subcommands */
	const char *kind, *unit, *sort;    /* ls */
	const char *kinds[XFP_STAMPS + 1]; /* ls, the choices of --kind */
	bool keys, reverse;                /* ls */
	bool read, remove;                 /* check */
	uint32_t part, of;                 /* check, see cache/check.h */
	double percent;                    /* check */
	uint32_t keep_runs;                /* gc */
	uint64_t max_size, days;           /* gc, 0: no limit */
	bool dry_run;                      /* gc */
	bool surveys;                      /* export */
	const char *output;                /* export */
};

#define XFP_CACHE_OPTIONS 8 /* most options of one subcommand */

struct xfp_cache_command {
	const char *name;
	const char *usage;   /* starts with "xfp" */
	const char *text;    /* one line for the list of subcommands */
	const char *summary; /* sentences for --help */
	const char *operand; /* a completion of the operand; NULL: takes none */
	/* Fill in the subcommand's own options, which write to `call`. Returns their number. NULL if there are none. */
	size_t (*options)(struct xfp_cache_call *call, struct xfp_option own[XFP_CACHE_OPTIONS]);
	/* Returns an exit status; `err` has the failure, if any. */
	int (*run)(const struct xfp_cache_call *call, struct xfp_error *err);
};

extern const struct xfp_cache_command xfp_cache_ls, xfp_cache_check, xfp_cache_rebuild, xfp_cache_gc, xfp_cache_stats,
	xfp_cache_export, xfp_cache_import;

/* ---- the open cache ---------------------------------------------------------------------------- */

struct xfp_cache {
	struct xfp_store store;
	struct xfp_manifest *manifest; /* opened for reading; NULL if missing or unusable */
	enum xfp_manifest_state state;
	struct xfp_census census;
};

/* Open a cache for reading, without changing it. An unusable manifest is not an error. Damage may be found only here;
 * `manifest` is then NULL again. */
enum xfp_status xfp_cache_open(const char *folder, struct xfp_cache *cache, struct xfp_error *err);
void xfp_cache_close(struct xfp_cache *cache);

/* The state's name in JSON: "sound", "missing", ... If the manifest is not sound, the remedy is printed to stderr. */
const char *xfp_cache_state_name(enum xfp_manifest_state state);
void xfp_cache_mention_state(const struct xfp_cache_call *call, const struct xfp_cache *cache);

/* Print a warning if xfp_lock_exclusive found that the file system has no locks. */
void xfp_cache_mention_lock(const struct xfp_cache_call *call, int lock);

/* Print everything known about one artifact. */
enum xfp_status xfp_cache_explain(const struct xfp_cache_call *call, const struct xfp_cache *cache, uint32_t number,
				  struct xfp_error *err);

/* ---- printing ---------------------------------------------------------------------------------- */

/* Append a row of the manifest, as an object, to `list`, a json_t **: for xfp_manifest_content and
 * xfp_manifest_summaries. */
enum xfp_status xfp_json_add_row(const struct xfp_value *values, unsigned count, void *list, struct xfp_error *err);
/* Progress of a long command on stderr: one line, redrawn, on a terminal; otherwise a line now and then. */
struct xfp_cache_progress {
	const char *program;
	double started, printed;
	struct xfp_meter meter;
};
void xfp_cache_progress_begin(struct xfp_cache_progress *progress, const char *program);
void xfp_cache_progress_show(uint64_t done, uint64_t total, void *progress);
void xfp_cache_progress_clear(struct xfp_cache_progress *progress);

#endif
