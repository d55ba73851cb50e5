/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the artifact store: write-once files found by key.
 *
 *   CACHE/artifacts/ab/abcdef....h5   artifact of key abcdef...
 *   CACHE/artifacts/ab/.abcd....tmp   pending (base/system/file.h)
 *   CACHE/manifest.sqlite             cache/manifest.h
 *   CACHE/lock                        cache/lock.h
 *
 * Many processes on many hosts may add to a store without locks: publication is a rename, and two
 * that make the same artifact make the same content, so whoever renames last does no harm. An
 * artifact that fails its digest is removed by whoever meets it and counts as a miss; one that cannot be
 * opened or read is left alone, and is a failure. Artifacts are
 * not synced one by one: after a power failure a torn one fails its digest. Who removes what others
 * may be using takes the lock.
 */
#ifndef XFP_STORE_H
#define XFP_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/file.h"
#include "base/xfp_error.h"
#include "cache/wait.h"

#define XFP_STORE_ARTIFACTS "artifacts"
#define XFP_STORE_SUFFIX ".h5"
#define XFP_STORE_MANIFEST "manifest.sqlite"
#define XFP_STORE_LOCK "lock"

struct xfp_store {
	char *folder;         /* CACHE */
	bool read_only;       /* nothing can be written: hits are served, a miss that needs a write fails */
	struct xfp_wait wait; /* for locks and for the manifest; whoever opened the store may set it */
};

/* Opens CACHE as it is, to look at it; one that is not there, or is no cache, is XFP_FAILED. */
enum xfp_status xfp_store_look(const char *folder, struct xfp_store *store, struct xfp_error *err);
/* Opens or creates CACHE. A new one is marked with a CACHEDIR.TAG, so that backups leave it out. */
enum xfp_status xfp_store_open(const char *folder, struct xfp_store *store, struct xfp_error *err);
void xfp_store_close(struct xfp_store *store);

/* Path of a key's artifact, whether or not it exists. Caller frees; NULL when out of memory. */
char *xfp_store_path(const struct xfp_store *store, const char *key);
/* False only for one that is known not to be there. One that the system does not let us look for counts as there: who
 * opens it learns the reason, and nobody makes again, or removes, what may be perfectly sound. */
bool xfp_store_has(const struct xfp_store *store, const char *key);

/* What it means that something of the cache cannot be opened for writing: where others made it, which mode it needs. */
enum xfp_status xfp_store_denied(const struct xfp_store *store, const char *path, int errnum, struct xfp_error *err);

/* A pending file in the right folder; then xfp_pending_publish(pending, false, err) of base/system/file.h. A
 * read-only store is XFP_FAILED naming the folder and the remedy. */
enum xfp_status xfp_store_begin(const struct xfp_store *store, const char *key, struct xfp_pending *pending,
				struct xfp_error *err);
void xfp_store_remove(const struct xfp_store *store, const char *key);

/* Remove what dead processes left behind: for `xfp` to call once, before it starts stages. */
void xfp_store_sweep(const struct xfp_store *store);

/* Calls `each` with every key there is, in ascending order; stops at the first non-zero status. */
enum xfp_status xfp_store_each(const struct xfp_store *store,
			       enum xfp_status (*each)(const char *key, const char *path, void *context,
						       struct xfp_error *err),
			       void *context, struct xfp_error *err);

enum xfp_store_what {
	XFP_STORE_ARTIFACT,
	XFP_STORE_PENDING,    /* being written, as far as can be told */
	XFP_STORE_DEBRIS,     /* what a dead process left */
	XFP_STORE_SUPERSEDED, /* a manifest that was set aside, and its journals */
	XFP_STORE_OWN,        /* the manifest, the lock and the tag */
	XFP_STORE_UNKNOWN     /* not made by xfp */
};
struct xfp_store_entry {
	enum xfp_store_what what;
	const char *path;
	char key[33];     /* of an artifact, otherwise "" */
	uint64_t bytes;   /* of a folder 0: nothing below one that is not ours is looked at */
	int64_t modified; /* seconds since 1970 */
};

/* Calls `each` with everything that is in CACHE: artifacts first, by ascending key. Left out is what SQLite
 * keeps there only while the manifest is open. */
enum xfp_status xfp_store_walk(const struct xfp_store *store,
			       enum xfp_status (*each)(const struct xfp_store_entry *entry, void *context,
						       struct xfp_error *err),
			       void *context, struct xfp_error *err);

#endif
