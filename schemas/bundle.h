/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.h - writing a bundle (its layout is bundle_layout.h; its reader is runtime/xfp.h).
 *
 * The caller describes the whole bundle. The writer lays it out, hashes the unchanged data to complete the index,
 * streams every byte through libarchive into a pending file while checking it against the index, then syncs and renames
 * the file. The same description gives the same bytes.
 */
#ifndef XFP_BUNDLE_H
#define XFP_BUNDLE_H

#include "base/dtype.h"
#include "base/xfp_error.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/ledger.h"
#include "schemas/packed.h"

/* A unit of the bundle: for each part, its file and the offset in it. */
struct xfp_bundle_unit {
	const struct xfp_ledger_unit *unit;
	const struct xfp_packed *packed;
	double floor;
	bool met;
	const char *path; /* the packed artifact */
	uint64_t offset[XFP_PARTS];
	bool moved; /* its parts are only in the pending file (see below), and `path` is its receipt */
};

/* The limit for units stored in both places while they are moved: a share of the bundle, and at most a few GB. */
#define XFP_MOVE_SHARE 16
#define XFP_MOVE_MAX ((uint64_t)4 << 30)

/* Moving units: the bundle replaces the artifacts that it is made from. Its pending file is kept after failures and
 * kills, and continued (xfp_pending_keep). Parts of units are written in order. Once they are durable in the bundle
 * their artifacts may be removed, so that both together never take much more space than the bundle. Moved parts are
 * checked against their SHA-256 when the file is continued. A callback reports failure by its status, which ends the
 * writing. */
struct xfp_bundle_moving {
	void *own;
	/* Called before anything is written. `layout` is a digest of the places of all bytes of units; *fresh is set if
	 * the file has another or an unknown layout, and is rewritten from the start. */
	enum xfp_status (*begin)(void *own, const char layout[33], bool *fresh, struct xfp_error *err);
	/* Called when all parts of units [0, units) are on disk. */
	enum xfp_status (*synced)(void *own, uint32_t units, struct xfp_error *err);
	/* Called for a unit whose moved parts do not match their digests; writing ends with XFP_DAMAGED after all units
	 * were checked. */
	void (*lost)(void *own, uint32_t unit);
	/* Called when the whole file is on disk, before it is renamed. */
	enum xfp_status (*complete)(void *own, const char sha256_hex[65], struct xfp_error *err);
};

/* Reads the elements of kept tensors that the checkpoint stores in packed form, front to back. */
struct xfp_bundle_elements {
	void *own;
	enum xfp_status (*open)(void *own, uint32_t tensor, void **reader, struct xfp_error *err);
	enum xfp_status (*read)(void *reader, uint64_t offset, size_t size, void *buf, struct xfp_error *err);
	void (*close)(void *reader);
};

struct xfp_bundle_input {
	const char *json; /* text of xfp.json */
	/* Tensors (with final fates and reasons), matrices, extras, model. Progress is reported to its watcher in
	 * bytes: the total is announced when it is known. */
	const struct xfp_ledger *ledger;
	const struct xfp_bundle_unit *units;    /* ledger->unit_count units, in the ledger's order */
	const struct xfp_identity *files;       /* identities that the extras must have when they are read; NULL: any */
	const struct xfp_bundle_moving *moving; /* NULL: no unit is moved, and the pending file is private */
	const struct xfp_bundle_elements *elements; /* NULL: no tensor of the ledger has a recipe */
};

/* Write a bundle. KEPT tensors are read from the checkpoint, everything else from the artifacts. XFP_DAMAGED: the bytes
 * of a part do not match packed->digest; the message names the artifact. XFP_FAILED: for instance a full disk; nothing
 * is left under `path` or, unless units are moved, under the pending name. `sha256_hex` receives the digest of the
 * file. */
enum xfp_status xfp_bundle_write(const char *path, const struct xfp_bundle_input *input, char sha256_hex[65],
				 struct xfp_error *err);

/* Input for predicting the size of a bundle, from sizes alone. */
struct xfp_bundle_sizes {
	const struct xfp_ledger *ledger;
	const uint64_t (*parts)[XFP_PARTS]; /* [units] */
	uint64_t json_bytes, reason_bytes;  /* bytes of xfp.json, and of all reasons without their NULs */
};
struct xfp_bundle_breakdown {
	uint64_t file;    /* the exact size of the file */
	uint64_t units;   /* bytes of their parts */
	uint64_t kept;    /* tensors that are members of their own */
	uint64_t carried; /* the small files: tokenizer, config ... */
	uint64_t index;   /* xfp.idx and xfp.json; the rest is member headers and padding */
};
/* Predict the size of a bundle; the sizes of the small files are read with stat. */
enum xfp_status xfp_bundle_measure(const struct xfp_bundle_sizes *sizes, struct xfp_bundle_breakdown *breakdown,
				   struct xfp_error *err);

#endif
