/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the artifact store: write-once files addressed by key.
 *
 *   CACHE/artifacts/ab/abcdef....h5   artifact of key abcdef...
 *   CACHE/artifacts/ab/.abcd....tmp   pending (base/system/file.h)
 *   CACHE/manifest.sqlite             cache/manifest.h
 *   CACHE/lock                        cache/lock.h
 *
 * Many processes on many hosts may add artifacts without locks: publication is a rename, and two processes that make
 * the same artifact produce the same content, so the order of their renames does not matter. An artifact with a wrong
 * digest is removed by the process that detects it, and counts as a miss; one that cannot be opened or read is left in
 * place, and is an error. Artifacts are not synced one by one: after a power failure, a torn artifact has a wrong
 * digest. Removing artifacts that others may use requires the exclusive lock.
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
#define XFP_STORE_GUARD "lock.guard" /* lock.h */

struct xfp_store {
	char *folder;         /* CACHE */
	bool read_only;       /* not writable: hits are served, a miss that needs a write fails */
	struct xfp_wait wait; /* for locks and for the manifest; the opener of the store may set it */
};

/* Open CACHE for reading. XFP_FAILED: it does not exist, or is not a cache. */
enum xfp_status xfp_store_open_readonly(const char *folder, struct xfp_store *store, struct xfp_error *err);
/* Open or create CACHE. A new cache is marked with a CACHEDIR.TAG, so that backups skip it. */
enum xfp_status xfp_store_open(const char *folder, struct xfp_store *store, struct xfp_error *err);
void xfp_store_close(struct xfp_store *store);

/* The path of a key's artifact, whether or not it exists. The caller frees it; NULL if memory runs out. */
char *xfp_store_path(const struct xfp_store *store, const char *key);
/* False only if the artifact is known not to exist. If the system does not permit the check, the artifact counts as
 * existing: opening it then reports the reason, and a sound artifact is neither made again nor removed. */
bool xfp_store_has(const struct xfp_store *store, const char *key);

/* Report that a file of the cache cannot be opened for writing; if another user created it, the message explains the
 * permissions needed. */
enum xfp_status xfp_store_denied(const struct xfp_store *store, const char *path, int errnum, struct xfp_error *err);

/* Open a pending file in the right folder; publish it with xfp_pending_publish(pending, false, err) of
 * base/system/file.h. XFP_FAILED if the store is read-only; the message names the folder and the remedy. */
enum xfp_status xfp_store_begin(const struct xfp_store *store, const char *key, struct xfp_pending *pending,
				struct xfp_error *err);
void xfp_store_remove(const struct xfp_store *store, const char *key);

/* Remove the debris of dead processes: `xfp` calls this once, before it starts stages. */
void xfp_store_sweep(const struct xfp_store *store);

/* Call `each` for every key in ascending order; stops at the first non-zero status. */
enum xfp_status xfp_store_each(const struct xfp_store *store,
			       enum xfp_status (*each)(const char *key, const char *path, void *context,
						       struct xfp_error *err),
			       void *context, struct xfp_error *err);

enum xfp_store_entry_kind {
	XFP_STORE_ARTIFACT,
	XFP_STORE_PENDING,    /* probably being written */
	XFP_STORE_DEBRIS,     /* left by a dead process */
	XFP_STORE_SUPERSEDED, /* an old manifest that was renamed, and its journals */
	XFP_STORE_OWN,        /* the manifest, the lock and the tag */
	XFP_STORE_UNKNOWN     /* not created by xfp */
};
struct xfp_store_entry {
	enum xfp_store_entry_kind what;
	const char *path;
	char key[33];     /* key of an artifact, otherwise "" */
	uint64_t bytes;   /* 0 for a folder: unknown folders are not searched */
	int64_t modified; /* seconds since 1970 */
};

/* Call `each` for everything in CACHE: artifacts first, by ascending key. Files that SQLite keeps only while the
 * manifest is open are skipped. */
enum xfp_status xfp_store_walk(const struct xfp_store *store,
			       enum xfp_status (*each)(const struct xfp_store_entry *entry, void *context,
						       struct xfp_error *err),
			       void *context, struct xfp_error *err);

#endif
