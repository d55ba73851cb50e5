/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/system/filesystem.h"
#include "base/text/text.h"
#include "cache/manifest_db.h"
#include "schemas/manifest_sql.h" /* generated from schemas/manifest.sql */

#define VERSION 9 /* version of schemas/manifest.sql; bump it with every change to a table or view */
#define TEXT_OF(number) #number
#define SET_VERSION(number) "PRAGMA user_version = " TEXT_OF(number)

/* ---- opening a file ---------------------------------------------------------------------------- */

/* In a URI, SQLite interprets "?", "#" and "%", and "//host" as a host. */
char *xfp_manifest_uri(const char *path, bool immutable)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
	struct xfp_text uri;
	FILE *out = xfp_text_begin(&uri);

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
	return xfp_text_end(&uri) ? uri.bytes : NULL;
}

void xfp_manifest_close_file(struct xfp_manifest *m)
{
	for (unsigned i = 0; i < XFP_MANIFEST_STATEMENTS; i++) {
		sqlite3_finalize(m->statement[i].prepared);
		m->statement[i].prepared = NULL;
		m->statement[i].sql = NULL;
	}
	sqlite3_close(m->db);
	m->db = NULL;
}

enum xfp_status xfp_manifest_open_file(struct xfp_manifest *m, const char *uri, int flags, struct xfp_error *err)
{
	int rc = sqlite3_open_v2(uri, &m->db, SQLITE_OPEN_URI | flags, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_busy_handler(m->db, xfp_wait_busy, &m->wait);
	m->read_only = rc == SQLITE_OK && sqlite3_db_readonly(m->db, "main") == 1;
	return rc == SQLITE_OK ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

/* Configure a connection. This reads the file, which has been checked. */
static enum xfp_status configure(struct xfp_manifest *m, struct xfp_error *err)
{
	int rc = sqlite3_exec(m->db, "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL", NULL, NULL, NULL);

	return rc == SQLITE_OK ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

void xfp_manifest_query_text(struct xfp_manifest *m, const char *sql, char answer[64], int *rc)
{
	sqlite3_stmt *statement;

	*answer = 0;
	if ((*rc = sqlite3_prepare_v2(m->db, sql, -1, &statement, NULL)) != SQLITE_OK)
		return;
	if ((*rc = sqlite3_step(statement)) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		snprintf(answer, 64, "%s", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
}

enum xfp_status xfp_manifest_inspect(struct xfp_manifest *m, bool thorough, enum xfp_manifest_state *state,
				     struct xfp_error *err)
{
	char version[64], objects[64] = "", sound[64] = "ok";
	int rc;

	xfp_manifest_query_text(m, "PRAGMA user_version", version, &rc);
	if (rc == SQLITE_ROW)
		xfp_manifest_query_text(m, "SELECT count(*) FROM sqlite_master", objects, &rc);
	if (rc == SQLITE_ROW && thorough)
		xfp_manifest_query_text(m, "PRAGMA quick_check(1)", sound, &rc);
	if (rc != SQLITE_ROW && (rc & 0xff) != SQLITE_CORRUPT && (rc & 0xff) != SQLITE_NOTADB)
		return xfp_manifest_fail(m, rc, err);
	if (rc != SQLITE_ROW || strcmp(sound, "ok"))
		*state = XFP_MANIFEST_DAMAGED;
	else if (!strcmp(version, "0") && !strcmp(objects, "0"))
		*state = XFP_MANIFEST_EMPTY;
	else
		*state = atoi(version) == VERSION ? XFP_MANIFEST_READY : XFP_MANIFEST_OTHER;
	return XFP_OK;
}

/* ---- creating ---------------------------------------------------------------------------------- */

enum xfp_status xfp_manifest_create(struct xfp_manifest *m, struct xfp_error *err)
{
	int rc = sqlite3_exec(m->db, xfp_manifest_sql, NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_exec(m->db, SET_VERSION(VERSION), NULL, NULL, NULL);
	return rc == SQLITE_OK ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

/* Create the schema and ingest all artifacts in one transaction: the manifest is complete or does not exist. */
static enum xfp_status fill(struct xfp_manifest *m, const struct xfp_store *store, int64_t *found,
			    struct xfp_error *err)
{
	enum xfp_manifest_state state;
	enum xfp_status status;

	if ((status = xfp_manifest_begin(m, err)))
		return status;
	/* Another process may have been faster if folders cannot be locked. */
	if ((status = xfp_manifest_inspect(m, true, &state, err)) || state == XFP_MANIFEST_READY)
		goto done;
	if (!(status = xfp_manifest_create(m, err)))
		status = xfp_manifest_ingest_all(m, store, found, err);
done:
	if (!status)
		return xfp_manifest_commit(m, err);
	m->begun = false;
	xfp_manifest_exec(m, NULL, "ROLLBACK", "");
	return status;
}

enum xfp_status xfp_manifest_set_aside(const char *path, char **where, struct xfp_error *err)
{
	static const char *const companions[] = { "-wal", "-shm" };
	enum xfp_status status = XFP_OK;
	char *old = NULL;

	for (unsigned n = 1; !old; n++) {
		if (!(old = xfp_formatted("%s.old-%u", path, n)))
			return xfp_no_memory_for(err, path);
		if (!access(old, F_OK)) {
			free(old);
			old = NULL;
		}
	}
	if (rename(path, old))
		status = xfp_fail_errno(err, errno, "%s: cannot rename to %s", path, old);
	for (unsigned i = 0; !status && i < 2; i++) {
		char *from = xfp_formatted("%s%s", path, companions[i]),
		     *to = xfp_formatted("%s%s", old, companions[i]);

		if (!from || !to)
			status = xfp_no_memory_for(err, path);
		else if (rename(from, to) && errno != ENOENT)
			status = xfp_fail_errno(err, errno, "%s: cannot rename to %s", from, to);
		free(from);
		free(to);
	}
	if (where && !status) {
		*where = old;
		return XFP_OK;
	}
	free(old);
	return status;
}

/* ---- opening ----------------------------------------------------------------------------------- */

int xfp_manifest_lock_folder(const struct xfp_store *store)
{
	int lock = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (lock >= 0)
		while (flock(lock, LOCK_EX | LOCK_NB))
			if ((errno != EWOULDBLOCK && errno != EINTR) || !xfp_wait_a_moment(&store->wait))
				break;
	return lock;
}

static enum xfp_status open_writable(struct xfp_manifest *m, const struct xfp_store *store, int64_t *rebuilt,
				     struct xfp_error *err)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	int lock = xfp_manifest_lock_folder(store), rc;
	char *uri = xfp_manifest_uri(m->path, false), mode[64];
	enum xfp_manifest_state state;
	enum xfp_status status;
	bool replaced = false;
	int64_t found = 0;

	if (!uri) {
		status = xfp_no_memory_for(err, m->path);
		goto done;
	}
	if (xfp_wait_is_over(&m->wait)) {
		status = xfp_fail(err, XFP_FAILED, "%s: interrupted", m->path);
		goto done;
	}
	if ((status = xfp_manifest_open_file(m, uri, flags, err)) ||
	    (status = xfp_manifest_inspect(m, true, &state, err)))
		goto done;
	if (state == XFP_MANIFEST_OTHER || state == XFP_MANIFEST_DAMAGED) {
		xfp_manifest_close_file(m);
		replaced = true;
		if ((status = xfp_manifest_set_aside(m->path, NULL, err)) ||
		    (status = xfp_manifest_open_file(m, uri, flags, err)))
			goto done;
		state = XFP_MANIFEST_EMPTY;
	}
	/* Use another journal mode if the file system has no WAL or hosts share it. A rebuilt manifest has no WAL
	 * yet. */
	xfp_manifest_query_text(
		m, xfp_filesystem_at(m->path).shared ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL",
		mode, &rc);
	if (xfp_filesystem_at(m->path).shared && !strcmp(mode, "wal")) {
		status = xfp_fail(err, XFP_FAILED,
				  "%s: on a file system shared by hosts, but open with a journal that they cannot "
				  "share; close it in other programs and run again",
				  m->path);
		goto done;
	}
	if ((status = configure(m, err)))
		goto done;
	if (state == XFP_MANIFEST_EMPTY) {
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

	if ((status = xfp_manifest_open_file(m, "file::memory:", SQLITE_OPEN_READWRITE, err)) ||
	    (status = configure(m, err)))
		return status;
	*rebuilt = 0;
	return fill(m, store, rebuilt, err);
}

static bool has_content(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_size > 0;
}

/* Open the manifest unchanged, for reading. Without write access and without a journal, the file alone is complete;
 * with a journal, because the manifest is being written or its writer was killed, both are read together, provided that
 * this creates no file. */
static enum xfp_status open_to_read(struct xfp_manifest *m, bool read_only, bool thorough,
				    enum xfp_manifest_state *state, struct xfp_error *err)
{
	char *journal = xfp_formatted("%s-wal", m->path), *shared = xfp_formatted("%s-shm", m->path), *uri = NULL;
	bool whole = journal && !has_content(journal);
	enum xfp_status status = XFP_OK;

	*state = XFP_MANIFEST_ABSENT;
	if (!journal || !shared || !(uri = xfp_manifest_uri(m->path, whole && read_only))) {
		status = xfp_no_memory_for(err, m->path);
		goto done;
	}
	if (access(m->path, R_OK))
		goto done;
	*state = XFP_MANIFEST_UNREADABLE;
	if (read_only && !whole && access(shared, F_OK))
		goto done;
	status = xfp_manifest_open_file(m, uri, read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, err);
	if (!status)
		status = xfp_manifest_inspect(m, thorough, state, err);
	if (status && m->full && !read_only) {
		/* The index of the journal needs disk space, except in exclusive mode. */
		xfp_manifest_close_file(m);
		if (!(status = xfp_manifest_open_file(m, uri, SQLITE_OPEN_READWRITE, err)) &&
		    sqlite3_exec(m->db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK)
			status = xfp_manifest_inspect(m, thorough, state, err);
	}
	if (status && read_only && !whole)
		status = XFP_OK;
done:
	free(journal);
	free(shared);
	free(uri);
	return status;
}

/* Open the manifest of a read-only cache: unchanged if it is sound, otherwise rebuilt from the artifacts in memory. */
static enum xfp_status open_read_only(struct xfp_manifest *m, const struct xfp_store *store, int64_t *rebuilt,
				      struct xfp_error *err)
{
	enum xfp_manifest_state state;

	if (!open_to_read(m, true, true, &state, NULL) && state == XFP_MANIFEST_READY)
		return XFP_OK;
	xfp_manifest_close_file(m);
	return open_in_memory(m, store, rebuilt, err);
}

enum xfp_status xfp_manifest_open_readonly(const struct xfp_store *store, struct xfp_manifest **out,
					   enum xfp_manifest_state *state, struct xfp_error *err)
{
	struct xfp_manifest *m = calloc(1, sizeof *m);
	enum xfp_status status = XFP_FAILED;

	*out = NULL;
	if (!m || !(m->path = xfp_path(store->folder, XFP_STORE_MANIFEST)))
		xfp_no_memory_for(err, store->folder);
	else
		status = open_to_read(m, store->read_only, false, state, err);
	if (!status && *state == XFP_MANIFEST_READY) {
		m->read_only = true;
		*out = m;
		return XFP_OK;
	}
	xfp_manifest_close(m);
	return status;
}

enum xfp_status xfp_manifest_scratch(struct xfp_manifest **out, struct xfp_error *err)
{
	struct xfp_manifest *m = calloc(1, sizeof *m);
	enum xfp_status status = XFP_FAILED;

	if (!m || !(m->path = strdup("memory")))
		xfp_no_memory(err);
	else if (!(status = xfp_manifest_open_file(m, "file::memory:", SQLITE_OPEN_READWRITE, err)))
		status = xfp_manifest_create(m, err);
	if (!status)
		*out = m;
	else
		xfp_manifest_close(m);
	return status;
}

enum xfp_status xfp_manifest_open(const struct xfp_store *store, struct xfp_manifest **out, int64_t *rebuilt,
				  struct xfp_error *err)
{
	struct xfp_manifest *m = calloc(1, sizeof *m);
	enum xfp_status status;
	int64_t found = -1;

	if (!m || !(m->path = xfp_path(store->folder, XFP_STORE_MANIFEST)))
		status = xfp_no_memory_for(err, store->folder);
	else {
		m->wait = store->wait;
		status =
			store->read_only ? open_read_only(m, store, &found, err) : open_writable(m, store, &found, err);
	}
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
		xfp_manifest_close_file(m);
	}
	free(m->path);
	free(m);
}
