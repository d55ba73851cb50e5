/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conversion.h - one conversion as the front end sees it: its folders, its ledger, and for each unit
 * which artifacts are the current ones and whether they are there.
 */
#ifndef XFP_CONVERSION_H
#define XFP_CONVERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/system/signals.h"
#include "cache/manifest.h"
#include "cache/store.h"
#include "commands/convert/options.h"
#include "schemas/bundle.h"
#include "schemas/choice.h"
#include "schemas/ledger.h"
#include "stages/work/run_record.h"
#include "stages/work/unit_state.h"

/* How far a goal is, and what it came to. */
struct xfp_solved {
	uint32_t steps;               /* of its way that are over: the surveys, then each round of measuring */
	bool settled;                 /* nothing will change any more */
	bool binding;                 /* it is less than the most bits would take */
	uint64_t budget, total, most; /* in the goal's bytes: what it allows, what is taken, what could be */
	double error;                 /* mean relative squared error, weighted */
	struct xfp_bundle_makeup makeup;
};

struct xfp_conversion {
	struct xfp_options options;
	struct xfp_signals *signals; /* held; long steps ask whether one came. NULL: none */
	int lock, log;               /* file descriptors, -1: none */
	int cache_lock;              /* likewise, cache/lock.h */
	bool made_work, made_cache;  /* this run created the folder */
	size_t found_path;           /* length of the part of the work folder's path that existed before */
	size_t found_cache_path;     /* length of the part of the cache's path that existed before */
	bool refused;                /* ended before any work, without an interruption */
	bool crcs_kept;              /* the manifest has results of this run's CRC-32 check */
	bool prepared;               /* it is known what is missing: units of the folder are the ledger's */
	char *scratch;               /* the folder that a dry run had the ledger, and files, made in; NULL: none */
	struct xfp_run_record record;
	struct xfp_store store; /* folder NULL: there is no cache yet (only in a dry run) */
	struct xfp_manifest *manifest;
	int64_t run; /* the manifest's number of this run, 0: none */
	struct xfp_ledger *ledger;
	struct xfp_unit_state *units;
	struct xfp_solved solved;
	uint64_t weights, weights_done;
	uint32_t todo;        /* units that are not done */
	uint64_t events_read; /* how far into the events file */
	bool leftovers;       /* the events are those of an earlier run */
	bool damaged;         /* a stage removed a damaged artifact */
	bool changed;         /* weights were not those that had been digested */
	bool torn;            /* lines of the events were damaged; said once */
	bool moved_usable;    /* there is a pending bundle that units were moved into, or the bundle that it became */
	uint32_t moved_stale; /* units that were, and are not what they should be any more */
	struct xfp_dropping *dropping; /* drop_cache.c; NULL: nothing is dropped before the bundle stands */
	unsigned drops;                /* as struct xfp_extent has it (xfp_drop_outlook) */
	int tick_ms;                   /* how often xfp_run calls back; 0: about twice a second */
	bool stands_alone;             /* the bundle is up to date, and the artifacts were dropped */
	uint32_t failures;             /* other failed stages; the status of the first one: */
	enum xfp_status failure;
	bool manifest_behind; /* it could not be written; said once */
	bool record_lost;     /* likewise the units of this run */
};

/* Check that the output can be written and replaces nothing but a bundle, make the work folder, take its
 * lock, start a chapter of the log. A dry run changes nothing: it only makes sure of what is replaced. */
enum xfp_status xfp_conversion_open(struct xfp_conversion *c, struct xfp_error *err);
void xfp_conversion_close(struct xfp_conversion *c);
/* For estimates; it borrows from the conversion. */
static inline struct xfp_extent xfp_conversion_extent(const struct xfp_conversion *c)
{
	return (struct xfp_extent){ &c->options.parameters, c->ledger, c->units, c->todo, c->drops };
}

/* For `xfp status`: what the run is doing now, and how it ended ("finished", "prepared"; a failure and an
 * interruption speak for themselves). Nothing depends on whether that could be written. */
void xfp_conversion_phase(struct xfp_conversion *c, const char *phase);
void xfp_conversion_ended(struct xfp_conversion *c, const char *state, int status, const char *message);

/* Remove what killed processes left half-written in the work folder and beside the bundle. */
void xfp_conversion_sweep(const struct xfp_conversion *c);

/* Open the cache and its manifest, unless they are open. */
enum xfp_status xfp_conversion_open_cache(struct xfp_conversion *c, struct xfp_error *err);

/* The tools' messages ("xfp-bundle: ...") that the log holds from `offset` on, shown on stderr, those of xfp-inspect as
 * the command's own; xfp_log_size is where it ends now. */
off_t xfp_log_size(const struct xfp_conversion *c);
/* Keep the last of those messages as that of the run, for where it has none of its own. */
void xfp_log_keep(struct xfp_conversion *c, off_t offset);
void xfp_log_show(const struct xfp_conversion *c, off_t offset);

#endif
