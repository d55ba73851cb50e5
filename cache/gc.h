/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - select the artifacts of a cache to remove, and remove them.
 *
 * The collector keeps artifacts used by the last successful runs of each output that still exists; artifacts used by
 * later runs, which failed or were interrupted and may be resumed; artifacts made since these runs began that no run
 * has recorded yet; and artifacts older than the first run in the manifest, since a rebuilt manifest may have lost the
 * runs that use them. Everything else that xfp made may be removed; files that xfp did not create are never touched.
 *
 * Files are removed first, then their rows in the manifest: on a full disk the manifest can only be written after files
 * are gone. Removal can be killed at any time: a row without a file is a cache miss for a conversion, which removes the
 * row, and the next collection removes the others.
 */
#ifndef XFP_GC_H
#define XFP_GC_H

#include "cache/census.h"

struct xfp_gc_rules {
	uint32_t keep_runs; /* successful runs of each output; 0: no run keeps anything */
	uint64_t max_size;  /* remove only enough to shrink to this size; 0: no limit */
	int64_t older_than; /* only artifacts last made or used before this time, seconds since 1970; INT64_MAX: any */
};

enum xfp_gc_reason {
	XFP_GC_REMOVED,
	XFP_GC_RUN,        /* stays: used by one of the last successful runs */
	XFP_GC_UNFINISHED, /* used, or probably made, by a later run that did not succeed */
	XFP_GC_UNRECORDED, /* older than all known runs */
	XFP_GC_YOUNG,      /* not older than requested */
	XFP_GC_FITS        /* the limit is met without removing it */
};
#define XFP_GC_REASONS (XFP_GC_FITS + 1)

struct xfp_gc_sum {
	uint64_t count, bytes;
};
struct xfp_gc_plan {
	uint8_t *why;                                    /* enum xfp_gc_reason, one a census item */
	struct xfp_gc_sum artifacts, debris, superseded; /* files to be removed */
	struct xfp_gc_sum stays[XFP_GC_REASONS];         /* artifacts kept, by reason */
	uint64_t rows;                                   /* rows to be removed whose files are already gone */
	uint64_t before, after;                          /* size of the whole folder, including unknown files */
};

enum xfp_status xfp_gc_plan(const struct xfp_census *census, const struct xfp_gc_rules *rules, struct xfp_gc_plan *plan,
			    struct xfp_error *err);
void xfp_gc_plan_free(struct xfp_gc_plan *plan);

/* Carry out the plan in two steps: remove the files, then their rows from `manifest`, which must be writable and is
 * best opened in between. The caller must have the exclusive lock. */
enum xfp_status xfp_gc_remove(const struct xfp_store *store, const struct xfp_census *census,
			      const struct xfp_gc_plan *plan, struct xfp_error *err);
enum xfp_status xfp_gc_remove_rows(struct xfp_manifest *manifest, const struct xfp_census *census,
				   const struct xfp_gc_plan *plan, struct xfp_error *err);

#endif
