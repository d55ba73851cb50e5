/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - CACHE/manifest.sqlite: the index of artifacts, measurements, sources, runs, bundles.
 *
 * Artifacts are the truth; everything here but sources and runs is rebuilt from them when the
 * manifest is lost, damaged or of another version. Only `xfp` writes it, stages never open it. Two
 * `xfp` at once take turns (WAL, busy timeout). The schema, with a comment on every table and
 * column, is schemas/manifest.sql; it is written to be asked in plain SQL, see xfp-manifest(5):
 *
 *   SELECT unit, mode, k, cos_median, bytes FROM latest_units WHERE class = 'attention' ORDER BY cos_median;
 */
#ifndef XFP_MANIFEST_H
#define XFP_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/file.h"
#include "base/xfp_error.h"
#include "cache/store.h"
#include "schemas/choice.h"

struct xfp_manifest;

/* Opens or creates it. One of another version, or that SQLite calls corrupt, is set aside as
 * manifest.sqlite.old-N and rebuilt from the store; *rebuilt (may be NULL) is then set to the number
 * of artifacts found, otherwise to -1. A read-only cache is opened immutable, or with its journal
 * while it has one, and writes to it are silently skipped. */
enum xfp_status xfp_manifest_open(const struct xfp_store *store, struct xfp_manifest **out, int64_t *rebuilt,
				  struct xfp_error *err);
/* Whether what just failed did because the file is damaged. */
bool xfp_manifest_is_damaged(struct xfp_manifest *manifest);
void xfp_manifest_close(struct xfp_manifest *manifest); /* commits; NULL is fine */

/* What a file turns out to be when it is opened. */
enum xfp_manifest_state {
	XFP_MANIFEST_READY,
	XFP_MANIFEST_ABSENT,
	XFP_MANIFEST_EMPTY,
	XFP_MANIFEST_OTHER, /* of another version */
	XFP_MANIFEST_DAMAGED,
	XFP_MANIFEST_UNREADABLE /* its journal cannot be replayed in a folder that is read-only */
};
/* To be read only, as it is and while others write: nothing is created, replaced or rebuilt. *out is NULL
 * where *state is not READY. Whether it is sound throughout is not looked at. */
enum xfp_status xfp_manifest_look(const struct xfp_store *store, struct xfp_manifest **out,
				  enum xfp_manifest_state *state, struct xfp_error *err);
/* An empty one in memory. */
enum xfp_status xfp_manifest_scratch(struct xfp_manifest **out, struct xfp_error *err);

/* Group writes: everything between begin and commit is one transaction. */
enum xfp_status xfp_manifest_begin(struct xfp_manifest *manifest, struct xfp_error *err);
enum xfp_status xfp_manifest_commit(struct xfp_manifest *manifest, struct xfp_error *err);

/* What a matrix of a file digests to, remembered by the file's identity. `path` is absolute; `region`
 * names the matrix in the file: "OFFSET DTYPE BASE ROWS COLS ROW_STRIDE COL_STRIDE"; "CRC-32" stands for all
 * members of an archive, once they were compared with their CRC-32; its digest is two counts. An identity that has
 * changed in any field is not found, nor is a row whose seal (cache/seal.h) does not fit. */
bool xfp_manifest_get_source(struct xfp_manifest *manifest, const char *path, const struct xfp_identity *identity,
			     const char *region, uint8_t digest[16]);
enum xfp_status xfp_manifest_put_source(struct xfp_manifest *manifest, const char *path,
					const struct xfp_identity *identity, const char *region,
					const uint8_t digest[16], struct xfp_error *err);
enum xfp_status xfp_manifest_forget_source(struct xfp_manifest *manifest, const char *path, const char *region,
					   struct xfp_error *err);

/* Record an artifact with its label and, by kind, its measurements or choice, once its digest was checked. Known ones
 * are left alone. XFP_DAMAGED when the artifact is (the caller decides whether to remove it). */
enum xfp_status xfp_manifest_ingest(struct xfp_manifest *manifest, const struct xfp_store *store, const char *key,
				    struct xfp_error *err);
/* The same, whatever is known of it: rows that do not fit the artifact are replaced. */
enum xfp_status xfp_manifest_repair(struct xfp_manifest *manifest, const struct xfp_store *store, const char *key,
				    struct xfp_error *err);
/* Whether an artifact of that kind and layout version is one that a manifest can hold. */
bool xfp_manifest_takes(const char *kind, uint32_t version);
/* A kind's name in a string that stays, or NULL for one that is none. */
const char *xfp_manifest_kind(const char *name);
bool xfp_manifest_has(struct xfp_manifest *manifest, const char *key);
/* Forget an artifact that is gone, and every row that is under its key. */
enum xfp_status xfp_manifest_forget(struct xfp_manifest *manifest, const char *key, struct xfp_error *err);
/* The candidates recorded for the key of a fit or a survey, `most` at the most; a unit with weights that are no
 * numbers has none. False when they are not known, or are not those that their seal was made of: the artifact has to be
 * read. */
bool xfp_manifest_get_candidates(struct xfp_manifest *manifest, const char *key, uint32_t most,
				 struct xfp_candidate *candidates, uint32_t *count);

/* A run of `xfp convert`: begun, its units recorded as they finish, ended. */
struct xfp_run_unit {
	uint32_t number;
	const char *name, *class_, *role;
	uint32_t experts;
	uint64_t rows, cols;
	const struct xfp_choice *choice; /* NULL for fp8 units */
	const char *mode;
	const char *outliers, *fit, *choice_key, *packed; /* keys, NULL where there is none */
	bool fitted, repacked;                            /* made in this run; otherwise cached */
	double seconds;                                   /* fresh work of this run */
};
enum xfp_status xfp_manifest_run_begin(struct xfp_manifest *manifest, const char *model, const char *output,
				       const char *parameters_json, int64_t *run, struct xfp_error *err);
enum xfp_status xfp_manifest_run_unit(struct xfp_manifest *manifest, int64_t run, const struct xfp_run_unit *unit,
				      struct xfp_error *err);
/* `sha256` NULL when no bundle was written. */
enum xfp_status xfp_manifest_run_end(struct xfp_manifest *manifest, int64_t run, enum xfp_status status,
				     const char *sha256, uint64_t bundle_bytes, struct xfp_error *err);
/* `xfp verify` looked at what is, or was, at `path` (as in runs.output) and gave `status`, at `when`
 * (text, as in runs.started): of the last bundle of that digest that a run wrote there. Where there is none, nothing
 * is recorded. */
enum xfp_status xfp_manifest_verified(struct xfp_manifest *manifest, const char *path, const char *sha256,
				      const char *when, int status, struct xfp_error *err);
/* A run that ended has left the bundle of the run before it untouched: what verify said of that still holds. */
enum xfp_status xfp_manifest_still_verified(struct xfp_manifest *manifest, int64_t run, struct xfp_error *err);

#endif
