/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "manifest_db.h"
#include "manifest_sql.h" /* made from schemas/manifest.sql */

#define VERSION 2 /* of schemas/manifest.sql; bump it with every change to a table or view */
#define NAME "manifest.sqlite"
#define BUSY_MILLISECONDS 60000
#define TEXT_OF(number) #number
#define SET_VERSION(number) "PRAGMA user_version = " TEXT_OF(number)

/* What a file turns out to be when it is opened. */
enum state { READY, EMPTY, STALE };

/* ---- opening a file ---------------------------------------------------------------------------- */

/* SQLite takes "?", "#" and "%" in a URI for its own, and "//host" for a host. */
static char *uri_of(const char *path, bool immutable)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
	char *uri = NULL;
	size_t size;
	FILE *out = open_memstream(&uri, &size);

	if (!out)
		return NULL;
	fputs(*path == '/' ? "file://" : "file:", out);
	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		if (strchr(plain, *p))
			putc(*p, out);
		else
			fprintf(out, "%%%02X", *p);
	if (immutable)
		fputs("?immutable=1", out);
	if (fclose(out)) {
		free(uri);
		return NULL;
	}
	return uri;
}

static void close_database(struct xfp_manifest *m)
{
	for (unsigned i = 0; i < XFP_MANIFEST_STATEMENTS; i++) {
		sqlite3_finalize(m->statement[i].prepared);
		m->statement[i].prepared = NULL;
		m->statement[i].sql = NULL;
	}
	sqlite3_close(m->db);
	m->db = NULL;
}

static enum xfp_status open_database(struct xfp_manifest *m, const char *uri, bool read_only, struct xfp_error *err)
{
	int flags = SQLITE_OPEN_URI | (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	int rc = sqlite3_open_v2(uri, &m->db, flags, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(m->db, BUSY_MILLISECONDS);
	m->read_only = rc == SQLITE_OK && sqlite3_db_readonly(m->db, "main") == 1;
	return rc == SQLITE_OK ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

/* What a connection has to be told; it reads the file, which has been found to be sound. */
static enum xfp_status configure(struct xfp_manifest *m, struct xfp_error *err)
{
	int rc = sqlite3_exec(m->db, "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL", NULL, NULL, NULL);

	return rc == SQLITE_OK ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

/* The first value of a query as text; *rc is SQLITE_ROW when there is one. */
static void ask(struct xfp_manifest *m, const char *sql, char answer[64], int *rc)
{
	sqlite3_stmt *statement;

	*answer = 0;
	if ((*rc = sqlite3_prepare_v2(m->db, sql, -1, &statement, NULL)) != SQLITE_OK)
		return;
	if ((*rc = sqlite3_step(statement)) == SQLITE_ROW)
		snprintf(answer, 64, "%s", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
}

static enum xfp_status inspect(struct xfp_manifest *m, enum state *state, struct xfp_error *err)
{
	char version[64], objects[64] = "", sound[64] = "";
	int rc;

	ask(m, "PRAGMA user_version", version, &rc);
	if (rc == SQLITE_ROW)
		ask(m, "SELECT count(*) FROM sqlite_master", objects, &rc);
	if (rc == SQLITE_ROW)
		ask(m, "PRAGMA quick_check(1)", sound, &rc);
	if (rc != SQLITE_ROW && (rc & 0xff) != SQLITE_CORRUPT && (rc & 0xff) != SQLITE_NOTADB)
		return xfp_manifest_fail(m, rc, err);
	if (rc != SQLITE_ROW || strcmp(sound, "ok"))
		*state = STALE;
	else if (!strcmp(version, "0") && !strcmp(objects, "0"))
		*state = EMPTY;
	else
		*state = atoi(version) == VERSION ? READY : STALE;
	return XFP_OK;
}

/* ---- creating ---------------------------------------------------------------------------------- */

/* Schema and all artifacts there are, in one transaction: it is complete or not there. */
static enum xfp_status fill(struct xfp_manifest *m, const struct xfp_store *store, int64_t *found,
			    struct xfp_error *err)
{
	enum xfp_status status;
	enum state state;
	char mode[64];
	int rc;

	ask(m, "PRAGMA journal_mode = WAL", mode, &rc); /* where a file system has no WAL, another will do */
	if ((status = xfp_manifest_begin(m, err)))
		return status;
	/* Somebody else may have been faster where folders cannot be locked. */
	if ((status = inspect(m, &state, err)) || state == READY)
		goto done;
	rc = sqlite3_exec(m->db, xfp_manifest_sql, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(m->db, SET_VERSION(VERSION), NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		status = xfp_manifest_fail(m, rc, err);
	else
		status = xfp_manifest_ingest_all(m, store, found, err);
done:
	if (!status)
		return xfp_manifest_commit(m, err);
	m->begun = false;
	xfp_manifest_exec(m, NULL, "ROLLBACK", "");
	return status;
}

/* Move a file that is no good, with its journal, out of the way. */
static enum xfp_status set_aside(const char *path, struct xfp_error *err)
{
	static const char *const companions[] = { "-wal", "-shm" };
	enum xfp_status status = XFP_OK;
	char *old = NULL;

	for (unsigned n = 1; !old; n++) {
		if (!(old = xfp_format("%s.old-%u", path, n)))
			return xfp_fail(err, XFP_FAILED, "%s: out of memory", path);
		if (!access(old, F_OK)) {
			free(old);
			old = NULL;
		}
	}
	if (rename(path, old))
		status = xfp_fail_errno(err, errno, "%s: cannot rename to %s", path, old);
	for (unsigned i = 0; !status && i < 2; i++) {
		char *from = xfp_format("%s%s", path, companions[i]), *to = xfp_format("%s%s", old, companions[i]);

		if (!from || !to)
			status = xfp_fail(err, XFP_FAILED, "%s: out of memory", path);
		else if (rename(from, to) && errno != ENOENT)
			status = xfp_fail_errno(err, errno, "%s: cannot rename to %s", from, to);
		free(from);
		free(to);
	}
	free(old);
	return status;
}

/* ---- the three ways to open -------------------------------------------------------------------- */

static enum xfp_status open_writable(struct xfp_manifest *m, const struct xfp_store *store, int64_t *rebuilt,
				     struct xfp_error *err)
{
	int lock = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *uri = uri_of(m->path, false);
	enum xfp_status status;
	bool replaced = false;
	int64_t found = 0;
	enum state state;

	if (!uri) {
		status = xfp_fail(err, XFP_FAILED, "%s: out of memory", m->path);
		goto done;
	}
	/* One process at a time decides what the file is and puts it right. Where a folder cannot be locked
	 * (some network file systems), the transaction in fill() still keeps two creators apart. */
	if (lock >= 0)
		while (flock(lock, LOCK_EX) && errno == EINTR)
			;
	if ((status = open_database(m, uri, false, err)) || (status = inspect(m, &state, err)))
		goto done;
	if (state == STALE) {
		close_database(m);
		replaced = true;
		if ((status = set_aside(m->path, err)) || (status = open_database(m, uri, false, err)))
			goto done;
		state = EMPTY;
	}
	if ((status = configure(m, err)))
		goto done;
	if (state == EMPTY) {
		if ((status = fill(m, store, &found, err)))
			goto done;
		if (replaced || found)
			*rebuilt = found;
	}
done:
	if (lock >= 0)
		close(lock);
	free(uri);
	return status;
}

static enum xfp_status open_in_memory(struct xfp_manifest *m, const struct xfp_store *store, int64_t *rebuilt,
				      struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = open_database(m, "file::memory:", false, err)) || (status = configure(m, err)))
		return status;
	*rebuilt = 0;
	return fill(m, store, rebuilt, err);
}

/* A read-only cache: as it is when it is sound, otherwise what the artifacts say, in memory. An immutable
 * database is read without its journal. One that still has a journal, because it is being written or its writer
 * was killed, is read together with it, as long as that takes no new file. */
static enum xfp_status open_read_only(struct xfp_manifest *m, const struct xfp_store *store, int64_t *rebuilt,
				      struct xfp_error *err)
{
	char *journal = xfp_format("%s-wal", m->path), *shared = xfp_format("%s-shm", m->path), *uri = NULL;
	enum xfp_status status = XFP_OK;
	enum state state = STALE;
	struct stat st;
	bool whole;

	if (journal && shared) {
		whole = stat(journal, &st) || st.st_size == 0;
		uri = uri_of(m->path, whole);
	}
	if (!uri)
		status = xfp_fail(err, XFP_FAILED, "%s: out of memory", m->path);
	else if (!access(m->path, R_OK) && (whole || !access(shared, F_OK)) &&
		 (open_database(m, uri, true, NULL) || inspect(m, &state, NULL)))
		state = STALE;
	if (!status && state != READY) {
		close_database(m);
		status = open_in_memory(m, store, rebuilt, err);
	}
	free(journal);
	free(shared);
	free(uri);
	return status;
}

enum xfp_status xfp_manifest_open(const struct xfp_store *store, struct xfp_manifest **out, int64_t *rebuilt,
				  struct xfp_error *err)
{
	struct xfp_manifest *m = calloc(1, sizeof *m);
	enum xfp_status status;
	int64_t found = -1;

	if (!m || !(m->path = xfp_path(store->folder, NAME)))
		status = xfp_fail(err, XFP_FAILED, "%s: out of memory", store->folder);
	else if (store->read_only)
		status = open_read_only(m, store, &found, err);
	else
		status = open_writable(m, store, &found, err);
	if (status) {
		xfp_manifest_close(m);
		return status;
	}
	if (rebuilt)
		*rebuilt = found;
	*out = m;
	return XFP_OK;
}

void xfp_manifest_close(struct xfp_manifest *m)
{
	if (!m)
		return;
	if (m->db) {
		xfp_manifest_commit(m, NULL);
		close_database(m);
	}
	free(m->path);
	free(m);
}
