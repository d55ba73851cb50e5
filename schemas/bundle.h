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
	bool moved; /* its parts are in the pending file alone (see below), and `path` is what says so */
};

/* Of units that are moved, what is in both places at a time: a share of the bundle, and no more than a few GB. */
#define XFP_MOVE_SHARE 16
#define XFP_MOVE_MOST ((uint64_t)4 << 30)

/* A bundle that takes the place of what it is made of: its pending file is kept over failures and kills, and continued
 * (xfp_pending_keep). Parts of units go into it in order. As they become durable there their artifacts may go, so that
 * both together never take much more than the bundle; what was moved is compared with its SHA-256 when the file is
 * continued. Whoever calls back tells of a failure by its status, which ends the writing. */
struct xfp_bundle_moving {
	void *own;
	/* Before anything is written. `layout` digests where which bytes of units are to be: *fresh tells that the file
	 * is of another layout, or of none that is known, and begins anew. */
	enum xfp_status (*begin)(void *own, const char layout[33], bool *fresh, struct xfp_error *err);
	/* All parts of units [0, units) are on the disk. */
	enum xfp_status (*synced)(void *own, uint32_t units, struct xfp_error *err);
	/* What was moved of a unit is not what it was; the writing ends with XFP_DAMAGED once all were looked at. */
	void (*lost)(void *own, uint32_t unit);
	/* The whole file is on the disk, and gets its name next. */
	enum xfp_status (*complete)(void *own, const char sha256_hex[65], struct xfp_error *err);
};

/* Whoever reads tensors that are packed, for those that are kept: bytes of their elements, from front to back. */
struct xfp_bundle_elements {
	void *own;
	enum xfp_status (*open)(void *own, uint32_t tensor, void **reader, struct xfp_error *err);
	enum xfp_status (*read)(void *reader, uint64_t offset, size_t size, void *buf, struct xfp_error *err);
	void (*close)(void *reader);
};

struct xfp_bundle_input {
	const char *json; /* text of xfp.json */
	/* Tensors (fates and reasons final), matrices, extras, model. Its watcher is told of bytes: more as soon as it
	 * is known how many are to be read. */
	const struct xfp_ledger *ledger;
	const struct xfp_bundle_unit *units; /* ledger->unit_count of them, in the ledger's order */
	const struct xfp_identity *files;    /* who the extras have to be when they are read; NULL: whoever is there */
	const struct xfp_bundle_moving *moving;     /* NULL: no unit is moved, and the pending file is nobody else's */
	const struct xfp_bundle_elements *elements; /* NULL: no tensor of the ledger has a recipe */
};

/* KEPT tensors are read from the checkpoint, everything else from the artifacts. A part whose bytes
 * do not match packed->digest is XFP_DAMAGED, with the artifact's path in the message. A full disk
 * is XFP_FAILED, and nothing is left under `path`, nor beside it unless units are moved. `sha256_hex` receives the
 * digest of the file. */
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
