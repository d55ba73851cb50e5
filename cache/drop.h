/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop.h - remove the artifacts of a finished bundle from the cache.
 */
#ifndef XFP_DROP_H
#define XFP_DROP_H

#include <stdbool.h>
#include <stddef.h>

#include "cache/manifest.h"
#include "cache/store.h"

/* Keys in ascending order. */
struct xfp_key_list {
	char (*key)[33];
	size_t count, capacity;
};
enum xfp_status xfp_key_list_add(struct xfp_key_list *list, const char *key, struct xfp_error *err);
void xfp_key_list_sort(struct xfp_key_list *list);
bool xfp_key_list_has(const struct xfp_key_list *sorted, const char *key);
void xfp_key_list_free(struct xfp_key_list *list);

/* List the artifacts recorded as used by runs into `output` or, with `others`, by runs into any other output, whether
 * or not these have written a bundle. */
enum xfp_status xfp_manifest_output_keys(struct xfp_manifest *manifest, const char *output, bool others,
					 struct xfp_key_list *list, struct xfp_error *err);
/* Whether a run into another output has begun and not ended: it is running, or was killed. */
bool xfp_manifest_has_open_runs(struct xfp_manifest *manifest, const char *output);
/* Whether the latest run into any other output is calibrated with the tokens of this SHA-256 and has not succeeded: it
 * is running, was interrupted or has failed. True, too, if the manifest cannot be read. */
bool xfp_manifest_has_unfinished(struct xfp_manifest *manifest, const char *output, const char *tokens);
/* Whether the manifest has runs with another number, ended or not. */
bool xfp_manifest_has_other_runs(struct xfp_manifest *manifest, int64_t run);

/* Remove these artifacts, then their rows and the references of the runs into `output`. Can be repeated after a kill.
 * The caller must have the exclusive lock (lock.h). *bytes is the space freed. */
enum xfp_status xfp_store_drop(const struct xfp_store *store, struct xfp_manifest *manifest, const char *output,
			       const struct xfp_key_list *keys, uint64_t *bytes, struct xfp_error *err);

/* Remove one artifact and its rows, leaving the runs unchanged; a missing artifact is not an error. The space freed is
 * added to *bytes. */
enum xfp_status xfp_store_drop_one(const struct xfp_store *store, struct xfp_manifest *manifest, const char *key,
				   uint64_t *bytes, struct xfp_error *err);
/* A number that changes whenever another connection has written to the manifest. */
int64_t xfp_manifest_version(struct xfp_manifest *manifest);

/* Remove a cache without artifacts: the files that xfp created there, then the folder if nothing else is in it. The
 * manifest must be closed, and the caller must have the exclusive lock. Returns true if the folder is gone. */
bool xfp_store_dismantle(const struct xfp_store *store);

#endif
