/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.h - writing a bundle (its layout is bundle_layout.h; its reader is runtime/xfp.h).
 *
 * The caller describes the whole bundle. The writer lays it out, digests what goes in unchanged to
 * complete the index, streams every byte through libarchive into a pending file while it checks that all are
 * what the index says, syncs and renames. The same description gives the same bytes.
 */
#ifndef XFP_BUNDLE_H
#define XFP_BUNDLE_H

#include "base/dtype.h"
#include "base/xfp_error.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/ledger.h"
#include "schemas/packed.h"

/* A unit as it goes into the bundle. Where its parts' bytes are: a file and an offset in it. */
struct xfp_bundle_unit {
	const struct xfp_ledger_unit *unit;
	const struct xfp_packed *packed;
	double floor;
	bool met;
	const char *path; /* the packed artifact */
	uint64_t offset[XFP_PARTS];
};

struct xfp_bundle_input {
	const char *json;                    /* text of xfp.json */
	const struct xfp_ledger *ledger;     /* tensors (fates and reasons final), matrices, extras, model */
	const struct xfp_bundle_unit *units; /* ledger->unit_count of them, in the ledger's order */
	const struct xfp_identity *files;    /* who the extras have to be when they are read; NULL: whoever is there */
};

/* KEPT tensors are read from the checkpoint, everything else from the artifacts. A part whose bytes
 * do not match packed->digest is XFP_DAMAGED, with the artifact's path in the message. A full disk
 * is XFP_FAILED, and nothing is left under `path`. `sha256_hex` receives the digest of the file. */
enum xfp_status xfp_bundle_write(const char *path, const struct xfp_bundle_input *input, char sha256_hex[65],
				 struct xfp_error *err);

/* How large the bundle of a ledger would be, and what of it is what: told from sizes, before anything is made. */
struct xfp_bundle_sizes {
	const struct xfp_ledger *ledger;
	const uint64_t (*parts)[XFP_PARTS]; /* [units] */
	uint64_t json_bytes, reason_bytes;  /* of xfp.json, of all reasons without their NULs */
};
struct xfp_bundle_makeup {
	uint64_t file;    /* the whole of it, exactly */
	uint64_t units;   /* their parts */
	uint64_t kept;    /* tensors that are members of their own */
	uint64_t carried; /* the small files: tokenizer, config ... */
	uint64_t index;   /* xfp.idx and xfp.json; the headers of members and what pads them are the rest */
};
/* The file system is asked for the sizes of the small files. */
enum xfp_status xfp_bundle_measure(const struct xfp_bundle_sizes *sizes, struct xfp_bundle_makeup *makeup,
				   struct xfp_error *err);

#endif
