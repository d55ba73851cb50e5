/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - CACHE/manifest.sqlite: the index of artifacts, measurements, sources, runs, bundles.
 *
 * Artifacts are authoritative; everything in the manifest but sources and runs is rebuilt from them if the manifest is
 * lost, damaged or of another version. Only `xfp` writes it; stages never open it. Concurrent `xfp` processes take
 * turns (WAL, busy timeout). The schema, with a comment on every table and column, is schemas/manifest.sql. It is
 * designed for plain SQL queries, see xfp-manifest(5):
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

/* Open or create the manifest. One of another version, or one that SQLite reports as corrupt, is renamed to
 * manifest.sqlite.old-N and rebuilt from the store; *rebuilt (may be NULL) is then the number of artifacts found,
 * otherwise -1. In a read-only cache the manifest is opened immutable, or together with its journal if there is one,
 * and writes are silently skipped. */
enum xfp_status xfp_manifest_open(const struct xfp_store *store, struct xfp_manifest **out, int64_t *rebuilt,
				  struct xfp_error *err);
/* Whether the last failure was caused by damage to the file. */
bool xfp_manifest_is_damaged(struct xfp_manifest *manifest);
void xfp_manifest_close(struct xfp_manifest *manifest); /* commits; NULL is accepted */

/* The state of a manifest file, determined by opening it. */
enum xfp_manifest_state {
	XFP_MANIFEST_READY,
	XFP_MANIFEST_ABSENT,
	XFP_MANIFEST_EMPTY,
	XFP_MANIFEST_OTHER, /* written by another version of xfp */
	XFP_MANIFEST_DAMAGED,
	XFP_MANIFEST_UNREADABLE /* its journal cannot be replayed because the folder is read-only */
};
/* Open the manifest read-only, unchanged, while others may write: nothing is created, replaced or rebuilt. *out is NULL
 * if *state is not READY. The file is not checked completely. */
enum xfp_status xfp_manifest_open_readonly(const struct xfp_store *store, struct xfp_manifest **out,
					   enum xfp_manifest_state *state, struct xfp_error *err);
/* Create an empty manifest in memory. */
enum xfp_status xfp_manifest_scratch(struct xfp_manifest **out, struct xfp_error *err);

/* Group writes: everything between begin and commit is one transaction. */
enum xfp_status xfp_manifest_begin(struct xfp_manifest *manifest, struct xfp_error *err);
enum xfp_status xfp_manifest_commit(struct xfp_manifest *manifest, struct xfp_error *err);

/* The digest of a matrix in a file, cached by the file's identity. `path` is absolute; `region` describes the matrix:
 * "OFFSET DTYPE BASE ROWS COLS ROW_STRIDE COL_STRIDE". The region "CRC-32" stands for all members of an archive after
 * their CRC-32 was checked; its digest consists of two counts. False if any field of the identity has changed, or if
 * the row's seal (cache/seal.h) does not match. */
bool xfp_manifest_get_source(struct xfp_manifest *manifest, const char *path, const struct xfp_identity *identity,
			     const char *region, uint8_t digest[16]);
enum xfp_status xfp_manifest_put_source(struct xfp_manifest *manifest, const char *path,
					const struct xfp_identity *identity, const char *region,
					const uint8_t digest[16], struct xfp_error *err);
enum xfp_status xfp_manifest_remove_source(struct xfp_manifest *manifest, const char *path, const char *region,
					   struct xfp_error *err);

/* Record an artifact: its label and, depending on the kind, its measurements or choice, after checking its digest.
 * Known artifacts are left unchanged. XFP_DAMAGED: the artifact is damaged; the caller decides whether to remove it. */
enum xfp_status xfp_manifest_ingest(struct xfp_manifest *manifest, const struct xfp_store *store, const char *key,
				    struct xfp_error *err);
/* xfp_manifest_ingest that replaces rows that do not match the artifact. */
enum xfp_status xfp_manifest_repair(struct xfp_manifest *manifest, const struct xfp_store *store, const char *key,
				    struct xfp_error *err);
/* Whether the manifest supports artifacts of this kind and layout version. */
bool xfp_manifest_supports(const char *kind, uint32_t version);
/* A kind's name as a static string, or NULL if it is unknown. */
const char *xfp_manifest_kind(const char *name);
bool xfp_manifest_has(struct xfp_manifest *manifest, const char *key);
/* Remove all rows of an artifact that is gone. */
enum xfp_status xfp_manifest_remove_artifact(struct xfp_manifest *manifest, const char *key, struct xfp_error *err);
/* The candidates recorded for the key of a fit or a survey, at most `max`, and their outputs if it is calibrated (NULL,
 * NULL: it cannot be); a unit with NaN or infinite weights has none. False if they are unknown or do not match their
 * seal: the artifact must be read. */
bool xfp_manifest_get_candidates(struct xfp_manifest *manifest, const char *key, uint32_t max,
				 struct xfp_candidate *candidates, struct xfp_output_measure *outputs, bool *calibrated,
				 uint32_t *count);

/* The number of surveys that no recorded run has used; 0 if it is unknown. */
uint64_t xfp_manifest_unused_surveys(struct xfp_manifest *manifest);

/* A run of `xfp convert`: begin, record each unit when it finishes, end. */
struct xfp_run_unit {
	uint32_t number;
	const char *name, *class_, *role;
	uint32_t experts;
	uint64_t rows, cols;
	const struct xfp_choice *choice; /* NULL for fp8 units */
	const char *mode;
	const char *survey, *scales, *outliers, *fit, *choice_key, *packed; /* keys; NULL: none */
	bool fitted, repacked; /* made by this run; otherwise from the cache */
	double seconds;        /* time that this run spent on the unit */
};
enum xfp_status xfp_manifest_run_begin(struct xfp_manifest *manifest, const char *model, const char *output,
				       const char *parameters_json, int64_t *run, struct xfp_error *err);
enum xfp_status xfp_manifest_run_unit(struct xfp_manifest *manifest, int64_t run, const struct xfp_run_unit *unit,
				      struct xfp_error *err);
/* `sha256` is NULL if no bundle was written. */
enum xfp_status xfp_manifest_run_end(struct xfp_manifest *manifest, int64_t run, enum xfp_status status,
				     const char *sha256, uint64_t bundle_bytes, struct xfp_error *err);
/* Record the result of `xfp verify` for the bundle at `path` (as in runs.output): the exit `status` and the time `when`
 * (text, as in runs.started). It is recorded for the last bundle with that digest that a run wrote there, if any. */
enum xfp_status xfp_manifest_verified(struct xfp_manifest *manifest, const char *path, const char *sha256,
				      const char *when, int status, struct xfp_error *err);
/* Copy the verification result of the previous run's bundle, which this run left unchanged. */
enum xfp_status xfp_manifest_still_verified(struct xfp_manifest *manifest, int64_t run, struct xfp_error *err);

#endif
