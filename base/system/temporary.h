/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary.h - a folder that is gone when the command ends.
 */
#ifndef XFP_TEMPORARY_H
#define XFP_TEMPORARY_H

#include "base/xfp_error.h"

/* A new folder in TMPDIR or /tmp; the caller removes it, and frees the path. NULL: `err` says why. */
char *xfp_temporary_folder(struct xfp_error *err);
/* Remove a folder and what is in it, and free the path. NULL is fine. */
void xfp_temporary_remove(char *path);

#endif
