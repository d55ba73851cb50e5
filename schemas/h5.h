/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5.h - HDF5 helpers. Private to schemas/: no other folder includes hdf5.h.
 *
 * Files are reproducible (they contain no times), closing a file closes all objects in it, and libhdf5 prints no errors
 * and takes no locks: artifacts are published by renaming, and locks fail on the network and read-only file systems of
 * shared caches.
 */
#ifndef XFP_H5_H
#define XFP_H5_H

#include <hdf5.h>

#include "schemas/artifact.h"

/* Negative on failure, with errno set by the system or 0. */
hid_t xfp_h5_create_file(const char *path, uint64_t user_block);
/* Open a->path for reading; its envelope must have been checked. The caller closes `a->file`. */
enum xfp_status xfp_h5_open_file(struct xfp_artifact *a, struct xfp_error *err);

/* Whether the root group has a link of that name. */
enum xfp_status xfp_h5_has(struct xfp_artifact *a, const char *name, bool *has, struct xfp_error *err);

/* Report damage; `why` is a short clause in printf form. Returns XFP_DAMAGED, or XFP_BAD_INPUT if the file has a
 * remedy. */
enum xfp_status xfp_h5_damaged(const struct xfp_artifact *a, struct xfp_error *err, const char *why, ...)
	XFP_PRINTF(3, 4);
/* The status of xfp_pread on the data of an open artifact, called at once since errno counts: a file that ended early,
 * or that another host removed (NFS reports ESTALE; here an open file can still be read), is damaged. */
enum xfp_status xfp_h5_read_status(const struct xfp_artifact *a, enum xfp_status status, struct xfp_error *err);

/* ---- datasets and attributes -------------------------------------------------------------------- */

/* Write or read a one-dimensional dataset of `count` elements, which may be 0, as a whole. `type` is a native HDF5
 * type; the file type is its little-endian standard form. */
enum xfp_status xfp_h5_write(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, const void *data,
			     struct xfp_error *err);
/* Read exactly `count` elements. XFP_DAMAGED: the dataset has another size, class or width. XFP_FAILED: read error. */
enum xfp_status xfp_h5_read(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, void *data,
			    struct xfp_error *err);
/* The number of elements of a one-dimensional dataset. */
enum xfp_status xfp_h5_count(struct xfp_artifact *a, const char *name, uint64_t *count, struct xfp_error *err);
/* Create a contiguous one-dimensional dataset of known size; then write or read ranges of it. */
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
/* The location of a contiguous dataset's bytes in the file, for reading or copying without libhdf5. */
enum xfp_status xfp_h5_extent(struct xfp_artifact *a, const char *name, uint64_t *offset, uint64_t *bytes,
			      struct xfp_error *err);
/* The file descriptor of an open artifact, which libhdf5 closes. */
enum xfp_status xfp_h5_descriptor(const struct xfp_artifact *a, int *descriptor, struct xfp_error *err);
/* Scalar attributes of the root group. Strings are fixed-size, NUL-padded UTF-8. */
enum xfp_status xfp_h5_write_u64(struct xfp_artifact *a, const char *name, uint64_t value, struct xfp_error *err);
enum xfp_status xfp_h5_read_u64(struct xfp_artifact *a, const char *name, uint64_t *value, struct xfp_error *err);
enum xfp_status xfp_h5_write_f64(struct xfp_artifact *a, const char *name, double value, struct xfp_error *err);
enum xfp_status xfp_h5_read_f64(struct xfp_artifact *a, const char *name, double *value, struct xfp_error *err);
enum xfp_status xfp_h5_write_text(struct xfp_artifact *a, const char *name, const char *value, struct xfp_error *err);
enum xfp_status xfp_h5_read_text(struct xfp_artifact *a, const char *name, char **value, struct xfp_error *err);

#endif
