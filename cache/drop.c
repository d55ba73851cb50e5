/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/drop.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/manifest_db.h"
#include "cache/steps.h"

/* ---- lists ------------------------------------------------------------------------------------- */

enum xfp_status xfp_key_list_add(struct xfp_key_list *list, const char *key, struct xfp_error *err)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 256;
		void *grown = realloc(list->key, capacity * sizeof *list->key);

		if (!grown)
			return xfp_no_memory(err);
		list->key = grown;
		list->capacity = capacity;
	}
	strncpy(list->key[list->count], key, 32);
	list->key[list->count++][32] = '\0';
	return XFP_OK;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

void xfp_key_list_sort(struct xfp_key_list *list)
{
	if (list->count)
		qsort(list->key, list->count, sizeof *list->key, by_text);
}

bool xfp_key_list_has(const struct xfp_key_list *sorted, const char *key)
{
	return sorted->count && bsearch(key, sorted->key, sorted->count, sizeof *sorted->key, by_text);
}

void xfp_key_list_free(struct xfp_key_list *list)
{
	free(list->key);
	*list = (struct xfp_key_list){ 0 };
}

/* ---- artifacts used by runs -------------------------------------------------------------------- */

/* The artifacts of the units, and everything that these were made from: a fit that was not chosen is found only through
 * the choice, inputs of layers only through fits. The first, empty row distinguishes an empty list from a failure. */
#define KEYS_OF(outputs)                                                                                              \
	"WITH RECURSIVE used AS (SELECT u.* FROM run_units AS u JOIN runs AS r ON r.run = u.run WHERE " outputs "), " \
	"made (key) AS (SELECT survey_key FROM used UNION SELECT scales_key FROM used "                               \
	"UNION SELECT outliers_key FROM used UNION SELECT fit_key FROM used "                                         \
	"UNION SELECT choice_key FROM used UNION SELECT packed_key FROM used "                                        \
	"UNION SELECT i.input FROM inputs AS i JOIN made ON i.key = made.key) "                                       \
	"SELECT '' AS key UNION SELECT key FROM made WHERE key IS NOT NULL ORDER BY key"

static const char own_keys[] = KEYS_OF("r.output = ?");
static const char other_keys[] = KEYS_OF("r.output <> ?");
static const char clear_references[] =
	"UPDATE run_units SET survey_key = NULL, scales_key = NULL, outliers_key = NULL, "
	"fit_key = NULL, choice_key = NULL, packed_key = NULL WHERE run IN (SELECT run FROM runs WHERE output = ?)";
static const char open_runs[] = "SELECT 1 FROM runs WHERE ended IS NULL AND output <> ? LIMIT 1";
/* Only the latest run into an output counts: it has other settings, or resumes the ones before it. */
static const char unfinished[] = "SELECT EXISTS (SELECT 1 FROM runs AS r WHERE (ended IS NULL OR status <> 0) "
				 "AND output <> ? AND instr(parameters, ?) AND NOT EXISTS (SELECT 1 FROM runs AS later "
				 "WHERE later.output = r.output AND later.run > r.run))";
static const char other_runs[] = "SELECT 1 FROM runs WHERE run <> ? LIMIT 1";

enum xfp_status xfp_manifest_output_keys(struct xfp_manifest *m, const char *output, bool others,
					 struct xfp_key_list *list, struct xfp_error *err)
{
	sqlite3_stmt *row = xfp_manifest_query(m, others ? other_keys : own_keys, "t", output);
	enum xfp_status status = XFP_OK;
	int rc;

	if (!row)
		return xfp_manifest_fail(m, sqlite3_errcode(m->db), err);
	while (!status && (rc = sqlite3_step(row)) != SQLITE_DONE) {
		const char *key = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;

		if (!key)
			status = xfp_manifest_fail(m, rc, err); /* an incomplete list must not be used */
		else if (strlen(key) == 32)
			status = xfp_key_list_add(list, key, err);
	}
	sqlite3_reset(row);
	return status;
}

bool xfp_manifest_has_open_runs(struct xfp_manifest *m, const char *output)
{
	sqlite3_stmt *row = xfp_manifest_query(m, open_runs, "t", output);

	if (row)
		sqlite3_reset(row);
	return row;
}

bool xfp_manifest_has_unfinished(struct xfp_manifest *m, const char *output, const char *tokens)
{
	sqlite3_stmt *row = xfp_manifest_query(m, unfinished, "tt", output, tokens);
	bool found = !row || sqlite3_column_int(row, 0);

	if (row)
		sqlite3_reset(row);
	return found;
}

bool xfp_manifest_has_other_runs(struct xfp_manifest *m, int64_t run)
{
	sqlite3_stmt *row = xfp_manifest_query(m, other_runs, "i", run);

	if (row)
		sqlite3_reset(row);
	return row;
}

/* ---- taking away ------------------------------------------------------------------------------- */

static enum xfp_status remove_artifact(const struct xfp_store *store, const char *key, uint64_t *bytes,
				       struct xfp_error *err)
{
	char *path = xfp_store_path(store, key), *slash;
	enum xfp_status status = path ? XFP_OK : xfp_no_memory(err);
	struct stat st;

	if (!status && !stat(path, &st) && !(status = xfp_remove_file(path, err)))
		*bytes += (uint64_t)st.st_size;
	if (!status && (slash = strrchr(path, '/'))) {
		*slash = '\0';
		rmdir(path); /* succeeds only if the folder is empty */
	}
	free(path);
	return status;
}

enum xfp_status xfp_store_drop(const struct xfp_store *store, struct xfp_manifest *m, const char *output,
			       const struct xfp_key_list *keys, uint64_t *bytes, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	*bytes = 0;
	/* Remove files first: until they are gone, the rows of the runs must still name them for the next attempt. A
	 * row without a file is removed by the next process that looks for the file. */
	for (size_t i = 0; !status && i < keys->count; i++)
		status = remove_artifact(store, keys->key[i], bytes, err);
	if (status || (status = xfp_manifest_begin(m, err)))
		return status;
	for (size_t i = 0; !status && i < keys->count; i++)
		status = xfp_manifest_remove_artifact(m, keys->key[i], err);
	if (!status)
		status = xfp_manifest_exec(m, err, clear_references, "t", output);
	return xfp_manifest_commit(m, status ? NULL : err) ? XFP_FAILED : status;
}

enum xfp_status xfp_store_drop_one(const struct xfp_store *store, struct xfp_manifest *m, const char *key,
				   uint64_t *bytes, struct xfp_error *err)
{
	enum xfp_status status = remove_artifact(store, key, bytes, err);

	return status ? status : xfp_manifest_remove_artifact(m, key, err);
}

int64_t xfp_manifest_version(struct xfp_manifest *m)
{
	sqlite3_stmt *row = xfp_manifest_query(m, "PRAGMA data_version", "");
	int64_t version = row ? sqlite3_column_int64(row, 0) : -1;

	if (row)
		sqlite3_reset(row);
	return version;
}

static void remove_in(const char *folder, const char *name)
{
	char *path = xfp_path(folder, name);

	if (path)
		(void)!remove(path);
	free(path);
}

bool xfp_store_dismantle(const struct xfp_store *store)
{
	static const char *const files[] = { "manifest.sqlite", "manifest.sqlite-wal", "manifest.sqlite-shm",
					     "CACHEDIR.TAG",    XFP_STORE_GUARD,       XFP_STEPS_FILE,
					     XFP_STORE_LOCK };
	char *artifacts = xfp_path(store->folder, "artifacts");
	bool empty = artifacts && !rmdir(artifacts);

	for (size_t i = 0; empty && i < sizeof files / sizeof files[0]; i++)
		remove_in(store->folder, files[i]);
	free(artifacts);
	return empty && !rmdir(store->folder);
}
