/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5.h - opening HDF5 files the way schemas/ wants them. Private to schemas/.
 *
 * Files are reproducible (no times in them), closing one closes everything in it, libhdf5 prints
 * nothing and takes no lock: artifacts are published by renaming, and locks fail on the network
 * and read-only file systems that shared caches live on.
 */
#ifndef XFP_H5_H
#define XFP_H5_H

#include "schemas/artifact.h"

/* Negative on failure, with errno as the system left it. */
hid_t xfp_h5_create_file(const char *path, uint64_t user_block);
/* Open a->path, whose envelope has been checked, for reading; `a->file` is then to be closed. */
enum xfp_status xfp_h5_open_file(struct xfp_artifact *a, struct xfp_error *err);

/* Whether the root group has a link of that name. */
enum xfp_status xfp_h5_has(struct xfp_artifact *a, const char *name, bool *has, struct xfp_error *err);

/* Report damage; `why` is a short clause in printf form. XFP_DAMAGED, unless the file has a remedy of its own. */
enum xfp_status xfp_h5_damaged(const struct xfp_artifact *a, struct xfp_error *err, const char *why, ...)
	XFP_PRINTF(3, 4);

#endif
