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
	int64_t file; /* the open HDF5 file, a hid_t: sources of schemas/ read and write through it (schemas/h5.h) */
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

#endif
