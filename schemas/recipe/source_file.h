/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_file.h - a file that contains tensors or their components.
 */
#ifndef XFP_SOURCE_FILE_H
#define XFP_SOURCE_FILE_H

#include "base/system/file.h"

/* A file of a checkpoint. */
struct xfp_source_file {
	char *name; /* relative to the checkpoint's folder, as in the checkpoint's index */
	char *path; /* path for opening it */
	struct xfp_identity identity;
};

#endif
