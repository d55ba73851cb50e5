/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.h - rebuild the manifest from the artifacts.
 *
 * The new manifest is built in a temporary file and renamed; until then, and on any failure, the old one is unchanged.
 * Sources and runs exist only in the old manifest; they are copied if it can be read, whatever its version.
 */
#ifndef XFP_REBUILD_H
#define XFP_REBUILD_H

#include "cache/manifest.h"

struct xfp_rebuild_hooks {
	void (*left_out)(const char *message, void *context);           /* a damaged artifact was skipped */
	void (*progress)(uint64_t done, uint64_t total, void *context); /* counts artifacts */
	void *context;
};

struct xfp_rebuilt {
	enum xfp_manifest_state old;
	uint64_t artifacts, left_out;
	uint64_t runs, sources; /* copied from the old manifest */
	char lost[512];         /* the reason if some were not copied, otherwise "" */
	char *aside;            /* path of the old manifest; NULL: it was replaced. The caller frees it */
};

/* Rebuild the manifest; the caller must have the exclusive lock of the cache. XFP_FAILED also if another program, such
 * as sqlite3, has the manifest open; the message names its process if the system reports it. */
enum xfp_status xfp_manifest_rebuild(const struct xfp_store *store, const struct xfp_rebuild_hooks *hooks,
				     struct xfp_rebuilt *result, struct xfp_error *err);

#endif
