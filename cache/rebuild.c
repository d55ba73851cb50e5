/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/manifest_db.h"

#define RETIRE_MILLISECONDS 3000

/* The offset of SQLite's locks in a database file; see its file format. */
#define SQLITE_LOCKS_AT 0x40000000
#define SQLITE_LOCKS 512

/* ---- from the artifacts ------------------------------------------------------------------------ */

struct building {
	struct xfp_manifest *m;
	const struct xfp_store *store;
	const struct xfp_rebuild_hooks *hooks;
	struct xfp_rebuilt *result;
	uint64_t done, total;
};

static enum xfp_status count_one(const char *key, const char *path, void *context, struct xfp_error *err)
{
	struct building *b = context;

	(void)key;
	(void)path;
	(void)err;
	b->total++;
	return XFP_OK;
}

static enum xfp_status add_artifact(const char *key, const char *path, void *context, struct xfp_error *err)
{
	struct building *b = context;
	struct xfp_error why = { 0 };
	enum xfp_status status = xfp_manifest_ingest(b->m, b->store, key, &why);

	if (b->hooks->progress)
		b->hooks->progress(++b->done, b->total, b->hooks->context);
	if (!status) {
		b->result->artifacts++;
		return XFP_OK;
	}
	/* A damaged artifact is left to the stage that needs it; one that was just removed is skipped. A database that
	 * cannot be written is an error. */
	if (status != XFP_DAMAGED && !access(path, R_OK)) {
		*err = why;
		return status;
	}
	if (!access(path, F_OK)) {
		b->result->left_out++;
		if (b->hooks->left_out)
			b->hooks->left_out(why.text, b->hooks->context);
	}
	return XFP_OK;
}

/* ---- from the old manifest --------------------------------------------------------------------- */

/* The columns that a table has in both manifests; the old one may be of another version. */
static char *common_columns(struct xfp_manifest *m, const char *table)
{
	char *sql = xfp_formatted("SELECT group_concat('\"' || name || '\"') FROM (SELECT a.name FROM "
				  "pragma_table_info('%s', 'main') AS a JOIN pragma_table_info('%s', 'old') AS b "
				  "ON b.name = a.name)",
				  table, table);
	sqlite3_stmt *row = NULL;
	char *columns = NULL;

	if (sql && sqlite3_prepare_v2(m->db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW &&
	    sqlite3_column_text(row, 0))
		columns = strdup((const char *)sqlite3_column_text(row, 0));
	sqlite3_finalize(row);
	free(sql);
	return columns;
}

/* The number of rows copied, or -1 with the reason in `why`. */
static int64_t copy_table(struct xfp_manifest *m, const char *table, char *why, size_t capacity)
{
	char *columns = common_columns(m, table), *sql = NULL;
	int64_t count = -1;

	if (!columns)
		snprintf(why, capacity, "%s: %s", table,
			 sqlite3_errcode(m->db) == SQLITE_DONE ? "no such table" : sqlite3_errmsg(m->db));
	else if (!(sql = xfp_formatted("SAVEPOINT old; INSERT INTO main.%s (%s) SELECT %s FROM old.%s", table, columns,
				       columns, table)))
		snprintf(why, capacity, "out of memory");
	else if (sqlite3_exec(m->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		snprintf(why, capacity, "%s: %s", table, sqlite3_errmsg(m->db));
	else
		count = sqlite3_changes(m->db);
	if (sql)
		sqlite3_exec(m->db, count < 0 ? "ROLLBACK TO old; RELEASE old" : "RELEASE old", NULL, NULL, NULL);
	free(columns);
	free(sql);
	return count;
}

/* Copy related tables together or not at all. */
static uint64_t copy_tables(struct xfp_manifest *m, const char *const *tables, char *lost, size_t capacity)
{
	int64_t first = 0;

	sqlite3_exec(m->db, "SAVEPOINT whole", NULL, NULL, NULL);
	for (size_t i = 0; tables[i]; i++) {
		int64_t count = copy_table(m, tables[i], lost, capacity);

		if (count < 0) {
			sqlite3_exec(m->db, "ROLLBACK TO whole; RELEASE whole", NULL, NULL, NULL);
			return 0;
		}
		if (!i)
			first = count;
	}
	sqlite3_exec(m->db, "RELEASE whole", NULL, NULL, NULL);
	return (uint64_t)first;
}

static void copy_old_tables(struct building *b, const char *old)
{
	static const char *const runs[] = { "runs", "run_units", "bundles", NULL };
	static const char *const sources[] = { "source_files", "sources", NULL };
	char *sql = sqlite3_mprintf("ATTACH %Q AS old", old), *lost = b->result->lost;
	size_t capacity = sizeof b->result->lost, used;

	if (!sql || sqlite3_exec(b->m->db, sql, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(b->m->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
		snprintf(lost, capacity, "%s", sqlite3_errmsg(b->m->db));
		goto done;
	}
	b->result->runs = copy_tables(b->m, runs, lost, capacity);
	used = strlen(lost);
	if (used)
		used += (size_t)snprintf(lost + used, capacity - used, "; ");
	b->result->sources = copy_tables(b->m, sources, lost + used, capacity - used);
	if (used && !lost[used])
		lost[used - 2] = 0;
	if (sqlite3_exec(b->m->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		snprintf(lost, capacity, "%s", sqlite3_errmsg(b->m->db));
done:
	sqlite3_free(sql);
	sqlite3_exec(b->m->db, "DETACH old", NULL, NULL, NULL);
}

/* ---- the exchange ------------------------------------------------------------------------------ */

/* SQLite's readers and writers hold record locks, for which the kernel reports the owner. */
static enum xfp_status in_use(const char *path, struct xfp_error *err)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SQLITE_LOCKS_AT, .l_len = SQLITE_LOCKS
	};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool found = fd >= 0 && !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK && lock.l_pid > 0;

	if (fd >= 0)
		close(fd);
	if (!found)
		return xfp_fail(err, XFP_FAILED, "%s: open in another program; close it there and run again", path);
	return xfp_fail(err, XFP_FAILED, "%s: open in another program (process %ld); close it there and run again",
			path, (long)lock.l_pid);
}

/* A database must not be renamed while another process has it open with a journal: the journal is found by name, and
 * would be applied to the new database. Leaving WAL mode succeeds only if nobody else has the database open, and
 * removes the journal; a process that opens it afterwards has none. */
static enum xfp_status leave_wal_mode(const char *path, struct xfp_error *err)
{
	struct xfp_manifest m = { .path = (char *)path };
	char *uri = xfp_manifest_uri(path, false), mode[64] = "";
	enum xfp_status status;
	int rc;

	if (!uri)
		return xfp_no_memory_for(err, path);
	status = xfp_manifest_open_file(&m, uri, SQLITE_OPEN_READWRITE, err);
	if (!status) {
		sqlite3_busy_timeout(m.db, RETIRE_MILLISECONDS);
		xfp_manifest_query_text(&m, "PRAGMA journal_mode = DELETE", mode, &rc);
	}
	xfp_manifest_close_file(&m);
	free(uri);
	if (!status && strcmp(mode, "delete"))
		status = in_use(path, err);
	return status;
}

/* Replace the old manifest with the new one. An old one that is damaged, or was not copied completely, is kept. */
static enum xfp_status replace_manifest(const struct xfp_store *store, const char *path, struct xfp_pending *pending,
					struct xfp_rebuilt *result, struct xfp_error *err)
{
	int lock = xfp_manifest_lock_folder(store);
	enum xfp_status status = XFP_OK;

	/* A damaged manifest may not respond, and is moved together with its journal. */
	if (result->old != XFP_MANIFEST_ABSENT && result->old != XFP_MANIFEST_DAMAGED)
		status = leave_wal_mode(path, err);
	if (!status && (result->old == XFP_MANIFEST_DAMAGED || *result->lost))
		status = xfp_manifest_set_aside(path, &result->aside, err);
	if (!status)
		status = xfp_pending_publish(pending, true, err);
	if (lock >= 0)
		close(lock);
	return status;
}

/* ---- the whole rebuild ------------------------------------------------------------------------- */

/* Other processes cannot see the file before it is complete, so it needs no journal on disk. */
static enum xfp_status build(struct building *b, const char *old, struct xfp_error *err)
{
	enum xfp_status status = xfp_manifest_create(b->m, err);

	if (!status)
		status = xfp_manifest_begin(b->m, err);
	if (!status && !(status = xfp_store_each(b->store, count_one, b, err)))
		status = xfp_store_each(b->store, add_artifact, b, err);
	if (!status)
		status = xfp_manifest_commit(b->m, err);
	if (!status && b->result->old != XFP_MANIFEST_ABSENT && b->result->old != XFP_MANIFEST_EMPTY)
		copy_old_tables(b, old);
	return status;
}

static enum xfp_status state_of(const struct xfp_store *store, enum xfp_manifest_state *state, struct xfp_error *err)
{
	struct xfp_manifest *old = NULL;
	enum xfp_status status = xfp_manifest_open_readonly(store, &old, state, err);

	if (!status && old)
		status = xfp_manifest_inspect(old, true, state, err);
	xfp_manifest_close(old);
	return status;
}

enum xfp_status xfp_manifest_rebuild(const struct xfp_store *store, const struct xfp_rebuild_hooks *hooks,
				     struct xfp_rebuilt *result, struct xfp_error *err)
{
	char *path = xfp_path(store->folder, XFP_STORE_MANIFEST), *uri = NULL;
	struct xfp_pending pending = { .fd = -1 };
	struct xfp_manifest aside = { 0 };
	struct building b = { &aside, store, hooks, result, 0, 0 };
	enum xfp_status status;

	*result = (struct xfp_rebuilt){ 0 };
	if (!path)
		return xfp_no_memory_for(err, store->folder);
	xfp_sweep_pending(store->folder);
	if ((status = state_of(store, &result->old, err)) || (status = xfp_pending_open(path, &pending, err)))
		goto done;
	aside.path = pending.path;
	if (!(uri = xfp_manifest_uri(pending.path, false)))
		status = xfp_no_memory_for(err, path);
	else if (!(status = xfp_manifest_open_file(&aside, uri, SQLITE_OPEN_READWRITE, err))) {
		sqlite3_exec(aside.db, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", NULL, NULL, NULL);
		status = build(&b, path, err);
	}
	xfp_manifest_close_file(&aside);
	if (!status)
		status = replace_manifest(store, path, &pending, result, err);
done:
	xfp_pending_discard(&pending);
	free(uri);
	free(path);
	return status;
}
