/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/explain.h"

#include <stdlib.h>
#include <string.h>

#include "cache/manifest_db.h"

#define MAX_COLUMNS 32

static void read_value(sqlite3_stmt *row, int column, struct xfp_value *value)
{
	*value = (struct xfp_value){ .name = sqlite3_column_name(row, column) };
	switch (sqlite3_column_type(row, column)) {
	case SQLITE_INTEGER:
		value->type = XFP_VALUE_INTEGER;
		value->integer = sqlite3_column_int64(row, column);
		break;
	case SQLITE_FLOAT:
		value->type = XFP_VALUE_REAL;
		value->real = sqlite3_column_double(row, column);
		break;
	case SQLITE_NULL:
		value->type = XFP_VALUE_NULL;
		break;
	default:
		value->type = XFP_VALUE_TEXT;
		value->text = (const char *)sqlite3_column_text(row, column);
		if (!value->text)
			value->text = "";
		break;
	}
}

static enum xfp_status each_row(struct xfp_manifest *m, sqlite3_stmt *row, xfp_row_callback *callback, void *context,
				struct xfp_error *err)
{
	struct xfp_value values[MAX_COLUMNS];
	enum xfp_status status = XFP_OK;
	int count = sqlite3_column_count(row), rc = SQLITE_DONE;

	if (count > MAX_COLUMNS)
		count = MAX_COLUMNS;
	while (!status && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		for (int i = 0; i < count; i++)
			read_value(row, i, &values[i]);
		status = callback(values, (unsigned)count, context, err);
	}
	if (!status && rc != SQLITE_DONE)
		status = xfp_manifest_fail(m, rc, err);
	return status;
}

enum xfp_status xfp_manifest_content(struct xfp_manifest *m, const char *kind, const char *key,
				     xfp_row_callback *callback, void *context, struct xfp_error *err)
{
	static const struct {
		const char *kind, *sql;
	} tables[] = {
		{ "outliers", "SELECT matrices, \"rows\", cols, sigma_milli, marked FROM outliers WHERE key = ?" },
		{ "fit", "SELECT mode, k, sigma_milli, \"group\", library, bytes, outliers, cos_median, cos_p5, error "
			 "FROM candidates WHERE fit_key = ? ORDER BY number" },
		{ "survey",
		  "SELECT mode, k, sigma_milli, \"group\", library, bytes, outliers, cos_median, cos_p5, error "
		  "FROM candidates WHERE fit_key = ? ORDER BY number" },
		{ "choice",
		  "SELECT mode, k, sigma_milli, \"group\", library, bytes, outliers, cos_median, cos_p5, error, "
		  "floor_nano, met, fit_key FROM choices WHERE key = ?" },
		{ "packed",
		  "SELECT mode, k, matrices, \"rows\", cols, outliers, bytes, index_bytes, code_bytes, "
		  "group_bytes, balance_bytes, outlier_bytes, cos_median, cos_p5, error FROM packed WHERE key = ?" },
		{ "inputs",
		  "SELECT layer, tokens, length, hidden, experts_per_token, inputs, tensors FROM layer_inputs WHERE "
		  "key = ?" },
		{ "scales", "SELECT matrices, \"rows\", growth, feedback, feedback_median, rounding, "
			    "rounding_median FROM scales WHERE key = ?" },
	};
	enum xfp_status status = XFP_OK;
	sqlite3_stmt *row = NULL;

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		int rc;

		if (strcmp(tables[i].kind, kind))
			continue;
		if ((rc = sqlite3_prepare_v2(m->db, tables[i].sql, -1, &row, NULL)) != SQLITE_OK ||
		    (rc = sqlite3_bind_text(row, 1, key, -1, SQLITE_STATIC)) != SQLITE_OK)
			status = xfp_manifest_fail(m, rc, err);
		else
			status = each_row(m, row, callback, context, err);
		sqlite3_finalize(row);
		break;
	}
	return status;
}

enum xfp_status xfp_manifest_summaries(struct xfp_manifest *m, int64_t max, xfp_row_callback *callback, void *context,
				       struct xfp_error *err)
{
	static const char sql[] =
		"SELECT run, model, output, started, ended, status, units, fitted, repacked, cached, seconds, sha256, "
		"bytes FROM run_summaries WHERE run IN (SELECT run FROM runs ORDER BY run DESC LIMIT ?) ORDER BY run";
	enum xfp_status status;
	sqlite3_stmt *row = NULL;
	int rc;

	if ((rc = sqlite3_prepare_v2(m->db, sql, -1, &row, NULL)) != SQLITE_OK ||
	    (rc = sqlite3_bind_int64(row, 1, max)) != SQLITE_OK)
		status = xfp_manifest_fail(m, rc, err);
	else
		status = each_row(m, row, callback, context, err);
	sqlite3_finalize(row);
	return status;
}

char *xfp_manifest_key_text(struct xfp_manifest *m, const char *key)
{
	sqlite3_stmt *row = xfp_manifest_query(m, "SELECT key_text FROM artifacts WHERE key = ?", "t", key);
	const char *text = row ? (const char *)sqlite3_column_text(row, 0) : NULL;
	char *copy = text ? strdup(text) : NULL;

	if (row)
		sqlite3_reset(row);
	return copy;
}

bool xfp_manifest_label(struct xfp_manifest *m, const char *key, char **kind, char **unit, double *seconds)
{
	sqlite3_stmt *row = xfp_manifest_query(m, "SELECT kind, unit, seconds FROM artifacts WHERE key = ?", "t", key);

	if (!row)
		return false;
	*kind = strdup((const char *)sqlite3_column_text(row, 0));
	*unit = strdup((const char *)sqlite3_column_text(row, 1));
	*seconds = sqlite3_column_double(row, 2);
	sqlite3_reset(row);
	return *kind && *unit;
}
