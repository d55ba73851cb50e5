/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifact.h - the common form of all intermediates: write-once HDF5 with a digest in front.
 *
 * File layout:
 *   0    8   magic "XFPART\r\n"
 *   8    4   envelope version, 1
 *   12   4   size of this block, 512
 *   16   8   size of the whole file
 *   24   16  XXH3-128 of bytes [512, size), canonical (big-endian) form
 *   40   472 zero
 *   512      an HDF5 file (the block is its user block, so h5dump and h5py read the file as it is)
 *
 * The digest is checked before libhdf5 sees a byte. Datasets are contiguous or chunked, never
 * filtered; readers accept exactly the names, types and shapes of the schema and no external links.
 * Attributes of the root group of every artifact:
 *   kind     "outliers" | "fit" | "choice" | "packed"
 *   version  of that kind's layout
 *   key      the 32 hex digits under which it is stored, and key_text, from which they follow
 *   unit     name of the unit that it was first made for (for people; decides nothing)
 *   seconds  wall time its making took, float64 (likewise)
 */
#ifndef XFP_ARTIFACT_H
#define XFP_ARTIFACT_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* Provenance that every artifact carries. Borrowed strings when writing. */
struct xfp_artifact_label {
	const char *kind;
	uint32_t version;
	const char *key; /* 32 hex digits */
	const char *key_text;
	const char *unit;
	double seconds;
};

struct xfp_artifact {
	hid_t file; /* the open HDF5 file: schemas/ sources read and write through it */
	bool writing;
	char *path;
	const char *remedy; /* NULL: damage is XFP_DAMAGED, the artifact is made again. Otherwise what the
	                       * user has to do, and damage is XFP_BAD_INPUT (the ledger is such a file) */
};

/* Create an artifact at `path` (a pending file's temporary name; it is truncated). */
enum xfp_status xfp_artifact_create(const char *path, struct xfp_artifact *artifact, struct xfp_error *err);
/* Write the label, close (checked), then fill in the envelope and its digest. Not yet renamed. */
enum xfp_status xfp_artifact_finish(struct xfp_artifact *artifact, const struct xfp_artifact_label *label,
				    struct xfp_error *err);

/* Check the envelope and the digest, open, check kind, version and key (`kind` NULL: any kind and
 * version, `key` NULL: any). Anything wrong with what was read is XFP_DAMAGED, here and when more
 * is read of it later; a file that is not there, or that the system does not let us open or read, is XFP_FAILED
 * with the system's reason: it may be perfectly sound. */
enum xfp_status xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
				  struct xfp_artifact *artifact, struct xfp_error *err);
/* Close for reading, or abandon for writing (the file is left for the caller to remove). Safe twice. */
void xfp_artifact_close(struct xfp_artifact *artifact);

/* Check the digest alone: XFP_DAMAGED when it does not match, XFP_FAILED when the file cannot be read. The second
 * checks the envelope without the digest: that the file has the size and form that its header says. */
enum xfp_status xfp_artifact_check(const char *path, struct xfp_error *err);
enum xfp_status xfp_artifact_check_header(const char *path, struct xfp_error *err);

/* The label of an open artifact. Strings are allocated; free them with xfp_artifact_label_free. */
enum xfp_status xfp_artifact_get_label(struct xfp_artifact *artifact, struct xfp_artifact_label *label,
				       struct xfp_error *err);
void xfp_artifact_label_free(struct xfp_artifact_label *label);

/* ---- building blocks for the schemas ---------------------------------------------------------- */

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
