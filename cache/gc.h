/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - what of a cache may go, and its removal.
 *
 * Kept is what the last runs of each output use that succeeded, unless the output is gone; then what the
 * runs after these use, which were cut short or failed and may be gone on with, and what was made since they
 * began and no run has recorded yet; and what was made before the first run that the manifest knows, since a
 * manifest that was rebuilt may have forgotten who uses it. Everything else that xfp made may go; files that
 * it did not make are never touched.
 *
 * Files go first, then their rows in the manifest, which has to be written for that: on a full disk it can only be
 * written once files are gone. Removal is safe to kill: a row without a file is a miss to a conversion, which forgets
 * it, and the next collection forgets the others.
 */
#ifndef XFP_GC_H
#define XFP_GC_H

#include "cache/census.h"

struct xfp_gc_rules {
	uint32_t keep_runs; /* successful ones of each output; 0: no run keeps anything */
	uint64_t max_size;  /* remove no more than it takes to come down to this; 0: no limit */
	int64_t older_than; /* only what was last made or used before that, seconds since 1970; INT64_MAX: any */
};

enum xfp_gc_why {
	XFP_GC_GOES,
	XFP_GC_RUN,        /* stays: one of the last successful runs uses it */
	XFP_GC_UNFINISHED, /* a later one that did not succeed uses it, or seems to have made it */
	XFP_GC_UNRECORDED, /* older than all that is known of runs */
	XFP_GC_YOUNG,      /* not older than was asked for */
	XFP_GC_FITS        /* enough goes without it */
};
#define XFP_GC_WHYS (XFP_GC_FITS + 1)

struct xfp_gc_sum {
	uint64_t count, bytes;
};
struct xfp_gc_plan {
	uint8_t *why;                                    /* enum xfp_gc_why, one a census item */
	struct xfp_gc_sum artifacts, debris, superseded; /* what goes */
	struct xfp_gc_sum stays[XFP_GC_WHYS];            /* artifacts, by why */
	uint64_t rows;                                   /* rows that go, whose files were gone already */
	uint64_t before, after;                          /* bytes of the whole folder, unknown files too */
};

enum xfp_status xfp_gc_plan(const struct xfp_census *census, const struct xfp_gc_rules *rules, struct xfp_gc_plan *plan,
			    struct xfp_error *err);
void xfp_gc_plan_free(struct xfp_gc_plan *plan);

/* Carry it out in two steps; the caller has the lock alone. Remove the files, then their rows from `manifest`, which
 * must be writable and is best opened in between. */
enum xfp_status xfp_gc_remove(const struct xfp_store *store, const struct xfp_census *census,
			      const struct xfp_gc_plan *plan, struct xfp_error *err);
enum xfp_status xfp_gc_forget(struct xfp_manifest *manifest, const struct xfp_census *census,
			      const struct xfp_gc_plan *plan, struct xfp_error *err);

#endif
