/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census.h - everything in a cache at one moment: what the folder holds, what the manifest knows of it,
 * and which runs use it.
 *
 * A run uses the artifacts that it recorded for its units, and those that these were made from. An artifact
 * is current when the last successful run of some output uses it. Others may add and remove while the
 * census is taken; what it says may be out of date by as much.
 */
#ifndef XFP_CENSUS_H
#define XFP_CENSUS_H

#include "cache/manifest.h"

struct xfp_census_item {
	char key[33];
	const char
		*kind; /* "survey", "outliers", "fit", "choice" or "packed"; "" where the manifest does not know it */
	const char *unit;       /* "" likewise */
	uint64_t bytes;         /* of the file; where that is gone, as the manifest has it */
	uint64_t known_bytes;   /* as the manifest has it */
	int64_t made;           /* seconds since 1970, of the file; 0: gone */
	double seconds;         /* that its making took */
	uint64_t weights;       /* of a packed artifact */
	bool there, known;      /* a file in the folder; a row in the manifest */
	bool current;           /* see above */
	uint32_t run, runs;     /* the runs that use it: census->use[run ... run + runs - 1], ascending */
	uint32_t input, inputs; /* what it was made from and is known: census->input[...], numbers of items */
};

struct xfp_census_run {
	int64_t run;
	const char *model, *output, *bundle; /* bundle: SHA-256, "" when none was written */
	int64_t started, ended;              /* seconds since 1970; ended 0: running, or killed */
	int status;                          /* exit status, -1: running, or killed */
	bool latest;                         /* the last successful one of its output */
	bool gone; /* that output is not there any more, while the folder that it was in still is */
};

/* What is there beside artifacts. */
struct xfp_census_other {
	enum xfp_store_what what;
	const char *path;
	uint64_t bytes;
};

struct xfp_census {
	struct xfp_census_item *items; /* ascending by key */
	uint32_t count;
	struct xfp_census_run *runs; /* ascending */
	uint32_t run_count;
	struct xfp_census_other *others;
	uint32_t other_count;
	uint32_t *use;   /* numbers of runs */
	uint32_t *input; /* numbers of items */
	struct xfp_census_text *text;
};

/* `manifest` NULL: what the folder alone tells. */
enum xfp_status xfp_census_take(const struct xfp_store *store, struct xfp_manifest *manifest, struct xfp_census *census,
				struct xfp_error *err);
void xfp_census_free(struct xfp_census *census);

/* The artifact whose key begins with `prefix`. XFP_FAILED when there is none, XFP_USAGE when it is no part
 * of a key or more than one begins with it. */
enum xfp_status xfp_census_find(const struct xfp_census *census, const char *prefix, uint32_t *number,
				struct xfp_error *err);

/* When it was last made or used, seconds since 1970. */
int64_t xfp_census_last_use(const struct xfp_census *census, const struct xfp_census_item *item);

#endif
