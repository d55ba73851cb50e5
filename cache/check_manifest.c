/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/text.h"
#include "cache/check.h"
#include "cache/manifest_db.h"
#include "schemas/surveyed.h"

#define MAX_COMPLAINTS "20"

static enum xfp_status complain(struct xfp_manifest *m, const char *sql, const char *prefix, FILE *out,
				struct xfp_error *err)
{
	sqlite3_stmt *row;
	int rc = sqlite3_prepare_v2(m->db, sql, -1, &row, NULL);

	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
			const char *text = (const char *)sqlite3_column_text(row, 0);

			if (text && strcmp(text, "ok"))
				fprintf(out, "%s%s\n", prefix, xfp_printable(text).text);
		}
	if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB) {
		fprintf(out, "%s\n", sqlite3_errmsg(m->db));
		rc = SQLITE_DONE;
	}
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

/* Rows whose seal (cache/seal.h) does not match. A conversion ignores such a row and reads the artifact or file
 * instead. */
static enum xfp_status check_candidates(struct xfp_manifest *m, FILE *out, struct xfp_error *err)
{
	static const char all[] = "SELECT key FROM artifacts WHERE kind IN ('fit', 'survey') ORDER BY key";
	struct xfp_candidate *list = calloc(XFP_MAX_SURVEYED, sizeof *list);
	struct xfp_output_measure *outputs = calloc(XFP_MAX_SURVEYED, sizeof *outputs);
	sqlite3_stmt *row = NULL;
	uint32_t count;
	bool calibrated;
	int rc = list && outputs ? sqlite3_prepare_v2(m->db, all, -1, &row, NULL) : SQLITE_NOMEM;

	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
			const char *key = (const char *)sqlite3_column_text(row, 0);

			if (key &&
			    !xfp_manifest_get_candidates(m, key, XFP_MAX_SURVEYED, list, outputs, &calibrated, &count))
				fprintf(out, "the candidates of %s do not match their seal\n", xfp_printable(key).text);
		}
	sqlite3_finalize(row);
	free(list);
	free(outputs);
	return rc == SQLITE_DONE ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

static enum xfp_status check_sources(struct xfp_manifest *m, FILE *out, struct xfp_error *err)
{
	static const char all[] = "SELECT path, device, inode, size, mtime_ns, ctime_ns, region FROM source_files "
				  "JOIN sources ON file = id ORDER BY path, region";
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(m->db, all, -1, &row, NULL);
	uint8_t digest[16];

	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
			const char *path = (const char *)sqlite3_column_text(row, 0),
				   *region = (const char *)sqlite3_column_text(row, 6);
			struct xfp_identity identity = {
				.device = (uint64_t)sqlite3_column_int64(row, 1),
				.inode = (uint64_t)sqlite3_column_int64(row, 2),
				.size = (uint64_t)sqlite3_column_int64(row, 3),
				.mtime_ns = sqlite3_column_int64(row, 4),
				.ctime_ns = sqlite3_column_int64(row, 5),
			};

			if (path && region && !xfp_manifest_get_source(m, path, &identity, region, digest))
				fprintf(out, "the recorded digest of %s does not match its seal\n",
					xfp_printable(path).text);
		}
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? XFP_OK : xfp_manifest_fail(m, rc, err);
}

enum xfp_status xfp_check_manifest(struct xfp_manifest *m, char **complaints, struct xfp_error *err)
{
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	enum xfp_status status;

	*complaints = NULL;
	if (!out)
		return xfp_no_memory(err);
	status = complain(m, "PRAGMA integrity_check(" MAX_COMPLAINTS ")", "", out, err);
	if (!status)
		status = complain(m, "SELECT DISTINCT \"table\" FROM pragma_foreign_key_check",
				  "rows without a parent in ", out, err);
	if (!status && !fflush(out) && !text.size && !(status = check_candidates(m, out, err)))
		status = check_sources(m, out, err);
	if (!xfp_text_end(&text) && !status)
		status = xfp_no_memory(err);
	if (!status && text.size)
		*complaints = text.bytes;
	else
		free(text.bytes);
	return status;
}
