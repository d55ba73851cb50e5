/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temporary.h - a folder that is removed when the command ends.
 */
#ifndef XFP_TEMPORARY_H
#define XFP_TEMPORARY_H

#include "base/xfp_error.h"

/* Create a folder in TMPDIR or /tmp; the caller removes it and frees the path. NULL on failure, with `err` set. */
char *xfp_temporary_folder(struct xfp_error *err);
/* Remove a folder and as much of its contents as possible, and free the path. NULL is accepted. */
void xfp_temporary_remove(char *path);

#endif
