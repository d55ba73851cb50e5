/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/manifest_db.h"

#include <errno.h>
#include <stdarg.h>

enum xfp_status xfp_manifest_fail(struct xfp_manifest *m, int rc, struct xfp_error *err)
{
	const char *text = m->db ? sqlite3_errmsg(m->db) : sqlite3_errstr(rc);

	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		m->damaged = true;
		return xfp_fail(err, XFP_FAILED, "%s: damaged (%s); rebuild it with xfp cache rebuild", m->path, text);
	case SQLITE_BUSY:
		return xfp_fail(err, XFP_FAILED, "%s: locked by another xfp process; try again when that has ended",
				m->path);
	default:
		m->full = (rc & 0xff) == SQLITE_FULL ||
			  (m->db && (sqlite3_system_errno(m->db) == ENOSPC || sqlite3_system_errno(m->db) == EDQUOT));
		if (m->full)
			return xfp_fail(err, XFP_FAILED, "%s: disk full; free some space and run again", m->path);
		return xfp_fail(err, XFP_FAILED, "%s: %s", m->path, text);
	}
}

bool xfp_manifest_is_damaged(struct xfp_manifest *m)
{
	return m->damaged;
}

/* ---- statements -------------------------------------------------------------------------------- */

static int prepare(struct xfp_manifest *m, const char *sql, sqlite3_stmt **out)
{
	unsigned i = 0;
	int rc;

	while (i < XFP_MANIFEST_STATEMENTS && m->statement[i].sql && m->statement[i].sql != sql)
		i++;
	if (i == XFP_MANIFEST_STATEMENTS)
		return SQLITE_MISUSE; /* the table has an entry for every statement */
	if (!m->statement[i].sql) {
		rc = sqlite3_prepare_v3(m->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &m->statement[i].prepared, NULL);
		if (rc != SQLITE_OK)
			return rc;
		m->statement[i].sql = sql;
	}
	*out = m->statement[i].prepared;
	return SQLITE_OK;
}

static int bind(sqlite3_stmt *statement, const char *types, va_list args)
{
	int rc = SQLITE_OK;

	for (int at = 1; rc == SQLITE_OK && *types; at++, types++)
		switch (*types) {
		case 't':
			rc = sqlite3_bind_text(statement, at, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
			break;
		case 'i':
			rc = sqlite3_bind_int64(statement, at, va_arg(args, int64_t));
			break;
		case 'd':
			rc = sqlite3_bind_double(statement, at, va_arg(args, double));
			break;
		case 'b':
			rc = sqlite3_bind_blob(statement, at, va_arg(args, const void *), 16, SQLITE_TRANSIENT);
			break;
		default:
			rc = sqlite3_bind_null(statement, at);
			break;
		}
	return rc;
}

enum xfp_status xfp_manifest_exec(struct xfp_manifest *m, struct xfp_error *err, const char *sql, const char *types,
				  ...)
{
	sqlite3_stmt *statement;
	enum xfp_status status = XFP_OK;
	va_list args;
	int rc;

	if (m->read_only)
		return XFP_OK;
	if ((rc = prepare(m, sql, &statement)) != SQLITE_OK)
		return xfp_manifest_fail(m, rc, err);
	va_start(args, types);
	rc = bind(statement, types, args);
	va_end(args);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW)
		status = xfp_manifest_fail(m, rc, err);
	sqlite3_reset(statement);
	return status;
}

sqlite3_stmt *xfp_manifest_query(struct xfp_manifest *m, const char *sql, const char *types, ...)
{
	sqlite3_stmt *statement;
	va_list args;
	int rc;

	if (prepare(m, sql, &statement) != SQLITE_OK)
		return NULL;
	va_start(args, types);
	rc = bind(statement, types, args);
	va_end(args);
	if (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		return statement;
	sqlite3_reset(statement);
	return NULL;
}

/* ---- transactions ------------------------------------------------------------------------------ */

/* Writing transactions begin IMMEDIATE: one that reads first can find that another writer has committed in between, and
 * then waiting cannot help. */
enum xfp_status xfp_manifest_begin(struct xfp_manifest *m, struct xfp_error *err)
{
	enum xfp_status status = xfp_manifest_exec(m, err, "BEGIN IMMEDIATE", "");

	if (!status)
		m->begun = !m->read_only;
	return status;
}

enum xfp_status xfp_manifest_commit(struct xfp_manifest *m, struct xfp_error *err)
{
	enum xfp_status status;

	if (!m->begun)
		return XFP_OK;
	m->begun = false;
	if ((status = xfp_manifest_exec(m, err, "COMMIT", "")))
		xfp_manifest_exec(m, NULL, "ROLLBACK", "");
	return status;
}

/* Begin a savepoint inside a transaction, or a transaction outside one. */
enum xfp_status xfp_manifest_enter(struct xfp_manifest *m, struct xfp_error *err)
{
	return m->begun ? xfp_manifest_exec(m, err, "SAVEPOINT step", "")
			: xfp_manifest_exec(m, err, "BEGIN IMMEDIATE", "");
}

enum xfp_status xfp_manifest_leave(struct xfp_manifest *m, enum xfp_status status, struct xfp_error *err)
{
	if (!status)
		status = m->begun ? xfp_manifest_exec(m, err, "RELEASE step", "")
				  : xfp_manifest_exec(m, err, "COMMIT", "");
	if (!status)
		return XFP_OK;
	/* `err` holds the first error; a failed rollback adds nothing. */
	if (m->begun) {
		xfp_manifest_exec(m, NULL, "ROLLBACK TO step", "");
		xfp_manifest_exec(m, NULL, "RELEASE step", "");
	} else {
		xfp_manifest_exec(m, NULL, "ROLLBACK", "");
	}
	return status;
}
