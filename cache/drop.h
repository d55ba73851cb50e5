/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop.h - what a bundle that is finished leaves in the cache, and taking it away.
 */
#ifndef XFP_DROP_H
#define XFP_DROP_H

#include <stdbool.h>
#include <stddef.h>

#include "cache/manifest.h"
#include "cache/store.h"

/* Keys, ascending. */
struct xfp_key_list {
	char (*key)[33];
	size_t count, capacity;
};
enum xfp_status xfp_key_list_add(struct xfp_key_list *list, const char *key, struct xfp_error *err);
void xfp_key_list_sort(struct xfp_key_list *list);
bool xfp_key_list_has(const struct xfp_key_list *sorted, const char *key);
void xfp_key_list_free(struct xfp_key_list *list);

/* The artifacts that runs into `output` used, as far as they were recorded; or, with `others`, those that
 * runs into any other output did, whether they came to a bundle yet or not. */
enum xfp_status xfp_manifest_output_keys(struct xfp_manifest *manifest, const char *output, bool others,
					 struct xfp_key_list *list, struct xfp_error *err);
/* Whether a run into another output has begun and not ended: it is at work, or was killed. */
bool xfp_manifest_has_open_runs(struct xfp_manifest *manifest, const char *output);
/* Whether the manifest has runs with another number, ended or not. */
bool xfp_manifest_has_other_runs(struct xfp_manifest *manifest, int64_t run);

/* The caller has the lock alone (lock.h). Remove these artifacts, then forget them, and that runs into `output`
 * needed any: after a kill in between, it can be done again. *bytes is what that freed. */
enum xfp_status xfp_store_drop(const struct xfp_store *store, struct xfp_manifest *manifest, const char *output,
			       const struct xfp_key_list *keys, uint64_t *bytes, struct xfp_error *err);

/* The same of one artifact, without a word of runs; one that is gone already is fine. *bytes is added to. */
enum xfp_status xfp_store_drop_one(const struct xfp_store *store, struct xfp_manifest *manifest, const char *key,
				   uint64_t *bytes, struct xfp_error *err);
/* Differs from what it was once anybody else has written to the manifest. */
int64_t xfp_manifest_version(struct xfp_manifest *manifest);

/* Remove a cache without artifacts: the files that xfp made there, then the folder if nothing else is in
 * it. The manifest must be closed, and the lock held alone. True when the folder is gone. */
bool xfp_store_dismantle(const struct xfp_store *store);

#endif
