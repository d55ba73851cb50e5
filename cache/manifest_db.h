/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_db.h - the open manifest and its SQLite helpers. Private to cache/.
 */
#ifndef XFP_MANIFEST_DB_H
#define XFP_MANIFEST_DB_H

#include <sqlite3.h>

#include "cache/manifest.h"

#define XFP_MANIFEST_STATEMENTS 48

struct xfp_manifest {
	sqlite3 *db;
	char *path;
	struct xfp_wait wait; /* the store's wait */
	bool read_only;       /* writes are silently skipped */
	bool damaged;         /* SQLite reported damage */
	bool full;            /* a call failed because the disk is full */
	bool begun;           /* between xfp_manifest_begin and xfp_manifest_commit */
	struct {
		const char *sql; /* compared by address: every statement is a static string */
		sqlite3_stmt *prepared;
	} statement[XFP_MANIFEST_STATEMENTS];
};

/* "file:PATH" for SQLite to open; NULL if memory runs out. `immutable`: ignore a journal. */
char *xfp_manifest_uri(const char *path, bool immutable);
enum xfp_status xfp_manifest_open_file(struct xfp_manifest *m, const char *uri, int flags, struct xfp_error *err);
void xfp_manifest_close_file(struct xfp_manifest *m);
/* Determine the state of an open file; `thorough`: also check for damage inside it. */
enum xfp_status xfp_manifest_inspect(struct xfp_manifest *m, bool thorough, enum xfp_manifest_state *state,
				     struct xfp_error *err);
/* Create the tables and views in an empty file. */
enum xfp_status xfp_manifest_create(struct xfp_manifest *m, struct xfp_error *err);
/* Rename an unusable manifest, together with its journal; *where (may be NULL) is its new path. */
enum xfp_status xfp_manifest_set_aside(const char *path, char **where, struct xfp_error *err);
/* Lock the folder while one process examines and repairs the manifest. Returns a descriptor; closing it unlocks. If the
 * folder cannot be locked (some network file systems), transactions still serialize two creators. */
int xfp_manifest_lock_folder(const struct xfp_store *store);

/* Convert SQLite's last error, or `rc` if there is no database, into a message; returns XFP_FAILED. */
enum xfp_status xfp_manifest_fail(struct xfp_manifest *m, int rc, struct xfp_error *err);

/*
 * Parameters follow in the order of `types`, one letter each:
 *   t const char * (NULL: NULL)   i int64_t   d double   b 16 bytes   n NULL, without an argument
 */

/* Run a statement that returns no rows. Skipped on a read-only manifest. */
enum xfp_status xfp_manifest_exec(struct xfp_manifest *m, struct xfp_error *err, const char *sql, const char *types,
				  ...);
/* Stands for missing outputs: SQLite stores NaN as NULL. */
extern const struct xfp_output_measure xfp_manifest_no_outputs;
/* The first row of a query, or NULL if there is none or the query fails. Call sqlite3_step for more rows; reset the
 * statement afterwards, since a pending one blocks others. */
sqlite3_stmt *xfp_manifest_query(struct xfp_manifest *m, const char *sql, const char *types, ...);

/* The first value of a query as text; *rc is SQLITE_ROW if there is one. */
void xfp_manifest_query_text(struct xfp_manifest *m, const char *sql, char answer[64], int *rc);

/* Group several writes, inside or outside a transaction: all of them are kept if `status` is XFP_OK, otherwise none. */
enum xfp_status xfp_manifest_enter(struct xfp_manifest *m, struct xfp_error *err);
enum xfp_status xfp_manifest_leave(struct xfp_manifest *m, enum xfp_status status, struct xfp_error *err);

/* Ingest every artifact of a store, skipping damaged ones. */
enum xfp_status xfp_manifest_ingest_all(struct xfp_manifest *m, const struct xfp_store *store, int64_t *count,
					struct xfp_error *err);

#endif
