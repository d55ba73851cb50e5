/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census.h - a snapshot of a cache: the files in the folder, their rows in the manifest, and the runs that use them.
 *
 * A run uses the artifacts recorded for its units, and the artifacts that these were made from. An artifact is current
 * if the last successful run of some output uses it. Other processes may add and remove artifacts while the census is
 * taken, so it may be slightly out of date.
 */
#ifndef XFP_CENSUS_H
#define XFP_CENSUS_H

#include "cache/manifest.h"

struct xfp_census_item {
	char key[33];
	const char *kind;       /* "survey", "fit" and so on; "" if the manifest has no row for it */
	const char *unit;       /* "" if unknown */
	uint64_t bytes;         /* size of the file; without a file, as recorded in the manifest */
	uint64_t known_bytes;   /* size recorded in the manifest */
	int64_t made;           /* time of the file, seconds since 1970; 0: no file */
	double seconds;         /* time that it took to make */
	uint64_t weights;       /* number of weights of a packed artifact */
	bool present, known;    /* there: has a file in the folder; known: has a row in the manifest */
	bool current;           /* defined above */
	uint32_t run, runs;     /* the runs that use it: census->use[run ... run + runs - 1], ascending */
	uint32_t input, inputs; /* its inputs that are known: census->input[...], numbers of items */
};

struct xfp_census_run {
	int64_t run;
	const char *model, *output, *bundle; /* bundle: SHA-256, "" if none was written */
	int64_t started, ended;              /* seconds since 1970; ended is 0 if the run is running or was killed */
	int status;                          /* exit status; -1: running or killed */
	bool latest;                         /* the last successful run of its output */
	bool gone;                           /* the output no longer exists, but its parent folder does */
};

/* Other files in the cache. */
struct xfp_census_other {
	enum xfp_store_entry_kind what;
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

/* Take a census; `manifest` NULL: of the folder alone. */
enum xfp_status xfp_census_take(const struct xfp_store *store, struct xfp_manifest *manifest, struct xfp_census *census,
				struct xfp_error *err);
void xfp_census_free(struct xfp_census *census);

/* Find the artifact whose key begins with `prefix`. XFP_FAILED: there is none. XFP_USAGE: `prefix` is not part of a
 * key, or several keys begin with it. */
enum xfp_status xfp_census_find(const struct xfp_census *census, const char *prefix, uint32_t *number,
				struct xfp_error *err);

/* The time of the last creation or use, seconds since 1970. */
int64_t xfp_census_last_use(const struct xfp_census *census, const struct xfp_census_item *item);

#endif
