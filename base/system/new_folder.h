/* SPDX-License-Identifier: Apache-2.0 */
/*
 * new_folder.h - a folder that a command fills, and that is as it was before when the command fails.
 */
#ifndef XFP_NEW_FOLDER_H
#define XFP_NEW_FOLDER_H

#include <stddef.h>

#include "base/xfp_error.h"

/* Files and folders in the order in which they were made. Zeroed is empty. */
struct xfp_made {
	char **path;
	size_t count;
};

/* Remember what is made, or about to be. Takes the path, which may be NULL when there was no memory for it. */
enum xfp_status xfp_made_add(struct xfp_made *made, char *path, struct xfp_error *err);
/* Make it durable: every folder that something was made in is synced. Whoever writes a file syncs its content. */
enum xfp_status xfp_made_sync(const struct xfp_made *made, struct xfp_error *err);
/* Remove all of it, in reverse order. */
void xfp_made_undo(struct xfp_made *made);
void xfp_made_free(struct xfp_made *made);

/* Whether the folder can be used: XFP_USAGE when it is a file or not empty, XFP_FAILED when it cannot be made. */
enum xfp_status xfp_new_folder_check(const char *path, struct xfp_error *err);
enum xfp_status xfp_new_folder_make(struct xfp_made *made, const char *path, struct xfp_error *err);

#endif
