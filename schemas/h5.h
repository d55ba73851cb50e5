/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5.h - HDF5 files the way schemas/ wants them. Private to schemas/: no other room sees hdf5.h.
 *
 * Files are reproducible (no times in them), closing one closes everything in it, libhdf5 prints
 * nothing and takes no lock: artifacts are published by renaming, and locks fail on the network
 * and read-only file systems that shared caches live on.
 */
#ifndef XFP_H5_H
#define XFP_H5_H

#include <hdf5.h>

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

/* ---- datasets and attributes -------------------------------------------------------------------- */

/* `type` is a native HDF5 type; the file type is its little-endian standard form. A one-dimensional
 * dataset of `count` elements (a zero count is fine), written or read whole. */
enum xfp_status xfp_h5_write(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, const void *data,
			     struct xfp_error *err);
/* Reads exactly `count` elements; a dataset of another size, class or width is XFP_DAMAGED, a failing disk is not. */
enum xfp_status xfp_h5_read(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, void *data,
			    struct xfp_error *err);
/* Elements of a one-dimensional dataset. */
enum xfp_status xfp_h5_count(struct xfp_artifact *a, const char *name, uint64_t *count, struct xfp_error *err);
/* Create a contiguous one-dimensional dataset of a known size to be filled in ranges; then ranges. */
enum xfp_status xfp_h5_reserve(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count,
			       struct xfp_error *err);
enum xfp_status xfp_h5_write_range(struct xfp_artifact *a, const char *name, hid_t type, uint64_t first, uint64_t count,
				   const void *data, struct xfp_error *err);
enum xfp_status xfp_h5_read_range(struct xfp_artifact *a, const char *name, hid_t type, uint64_t first, uint64_t count,
				  void *data, struct xfp_error *err);
/* Create an empty extendable dataset, and append to it. */
enum xfp_status xfp_h5_stream(struct xfp_artifact *a, const char *name, hid_t type, struct xfp_error *err);
enum xfp_status xfp_h5_append(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, const void *data,
			      struct xfp_error *err);
/* Where a contiguous dataset's bytes are in the file, to read or copy them without libhdf5. */
enum xfp_status xfp_h5_extent(struct xfp_artifact *a, const char *name, uint64_t *offset, uint64_t *bytes,
			      struct xfp_error *err);
/* Scalar attributes of the root group. Strings are fixed-size, NUL-padded UTF-8. */
enum xfp_status xfp_h5_write_u64(struct xfp_artifact *a, const char *name, uint64_t value, struct xfp_error *err);
enum xfp_status xfp_h5_read_u64(struct xfp_artifact *a, const char *name, uint64_t *value, struct xfp_error *err);
enum xfp_status xfp_h5_write_f64(struct xfp_artifact *a, const char *name, double value, struct xfp_error *err);
enum xfp_status xfp_h5_read_f64(struct xfp_artifact *a, const char *name, double *value, struct xfp_error *err);
enum xfp_status xfp_h5_write_text(struct xfp_artifact *a, const char *name, const char *value, struct xfp_error *err);
enum xfp_status xfp_h5_read_text(struct xfp_artifact *a, const char *name, char **value, struct xfp_error *err);

#endif
