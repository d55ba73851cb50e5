/* SPDX-License-Identifier: Apache-2.0 */
/*
 * new_folder.h - a folder that a command fills, and that is restored to its earlier state if the command fails.
 */
#ifndef XFP_NEW_FOLDER_H
#define XFP_NEW_FOLDER_H

#include <stddef.h>

#include "base/xfp_error.h"

/* Files and folders in order of creation. Empty if zeroed. */
struct xfp_created {
	char **path;
	size_t count;
};

/* Record a file or folder that was created or is about to be. Takes ownership of `path`, which may be NULL if its
 * allocation failed. */
enum xfp_status xfp_created_add(struct xfp_created *created, char *path, struct xfp_error *err);
/* Sync every folder in which something was created. The writer of a file syncs its content. */
enum xfp_status xfp_created_sync(const struct xfp_created *created, struct xfp_error *err);
/* Remove everything recorded, in reverse order. */
void xfp_created_undo(struct xfp_created *created);
void xfp_created_free(struct xfp_created *created);

/* Check that the folder can be used. XFP_USAGE: it is a file or not empty. XFP_FAILED: it cannot be created. */
enum xfp_status xfp_new_folder_check(const char *path, struct xfp_error *err);
enum xfp_status xfp_new_folder_make(struct xfp_created *created, const char *path, struct xfp_error *err);

#endif
