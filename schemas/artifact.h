/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifact.h - the common form of all intermediate files: write-once HDF5 after a header with a digest.
 *
 * File layout:
 *   0    8   magic "XFPART\r\n"
 *   8    4   envelope version, 1
 *   12   4   size of this block, 512
 *   16   8   size of the whole file
 *   24   16  XXH3-128 of bytes [512, size), canonical (big-endian) form
 *   40   472 zero
 *   512      an HDF5 file (the block is its user block, so h5dump and h5py can read the file directly)
 *
 * The digest is checked before libhdf5 reads a byte. Datasets are contiguous or chunked, never filtered; readers accept
 * exactly the names, types and shapes of the schema and no external links. Attributes of the root group of every
 * artifact:
 *   kind     "outliers" | "fit" | "choice" | "packed"
 *   version  of that kind's layout
 *   key      the 32 hex digits under which it is stored, and key_text, of which they are the hash
 *   unit     name of the unit that it was first made for (informational only)
 *   seconds  wall time that it took to make, float64 (informational only)
 */
#ifndef XFP_ARTIFACT_H
#define XFP_ARTIFACT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* Provenance of every artifact. When writing, the strings are borrowed. */
struct xfp_artifact_label {
	const char *kind;
	uint32_t version;
	const char *key; /* 32 hex digits */
	const char *key_text;
	const char *unit;
	double seconds;
};

struct xfp_artifact {
	int64_t file; /* the open HDF5 file, a hid_t, used by schemas/ (schemas/h5.h) */
	bool writing;
	char *path;
	const char *remedy; /* NULL: damage is XFP_DAMAGED, and the artifact is made again. Otherwise the user's remedy
			     * for damage, which is then XFP_BAD_INPUT (used for the ledger) */
};

/* Create an artifact at `path`, the temporary name of a pending file, which is truncated. */
enum xfp_status xfp_artifact_create(const char *path, struct xfp_artifact *artifact, struct xfp_error *err);
/* Write the label, close the file (checked), then fill in the envelope and its digest. The caller renames the file. */
enum xfp_status xfp_artifact_finish(struct xfp_artifact *artifact, const struct xfp_artifact_label *label,
				    struct xfp_error *err);

/* Check the envelope and the digest, open the file, and check kind, version and key (`kind` NULL: any kind and version,
 * `key` NULL: any). XFP_DAMAGED: wrong content, now or in a later read. XFP_FAILED: the file is missing or cannot be
 * opened or read, for the system's reason; it may be sound. */
enum xfp_status xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
				  struct xfp_artifact *artifact, struct xfp_error *err);
/* Close an artifact after reading, or abandon one being written (the caller removes the file). May be called twice. */
void xfp_artifact_close(struct xfp_artifact *artifact);

/* xfp_artifact_check verifies the digest: XFP_DAMAGED if it does not match, XFP_FAILED if the file cannot be read. The
 * second function only verifies that size and form agree with the header. */
enum xfp_status xfp_artifact_check(const char *path, struct xfp_error *err);
enum xfp_status xfp_artifact_check_header(const char *path, struct xfp_error *err);

/* The label of an open artifact. Free its strings with xfp_artifact_label_free. */
enum xfp_status xfp_artifact_get_label(struct xfp_artifact *artifact, struct xfp_artifact_label *label,
				       struct xfp_error *err);
void xfp_artifact_label_free(struct xfp_artifact_label *label);

#endif
