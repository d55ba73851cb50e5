/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.h - a new manifest from the artifacts.
 *
 * It is built aside and renamed: until then, and if anything fails, the old one is as it was. What only
 * the old one knows, sources and runs, is taken over where it can be read, whatever its version.
 */
#ifndef XFP_REBUILD_H
#define XFP_REBUILD_H

#include "cache/manifest.h"

struct xfp_rebuild_hooks {
	void (*left_out)(const char *message, void *context);           /* an artifact that is damaged or unreadable */
	void (*progress)(uint64_t done, uint64_t total, void *context); /* artifacts */
	void *context;
};

struct xfp_rebuilt {
	enum xfp_manifest_state old;
	uint64_t artifacts, left_out;
	uint64_t runs, sources; /* taken over */
	char lost[512];         /* why not all of these were, "" when all were */
	char *aside;            /* where the old manifest is, NULL: it is replaced. The caller frees */
};

/* The caller has the cache's lock alone. Another program that has the manifest open, such as sqlite3, makes it
 * XFP_FAILED, naming the process where the system tells it. */
enum xfp_status xfp_manifest_rebuild(const struct xfp_store *store, const struct xfp_rebuild_hooks *hooks,
				     struct xfp_rebuilt *result, struct xfp_error *err);

#endif
