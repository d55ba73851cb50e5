/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_fixture.h - a cache with an artifact of each kind, and its manifest.
 */
#ifndef XFP_TEST_CACHE_FIXTURE_H
#define XFP_TEST_CACHE_FIXTURE_H

#include <sqlite3.h>

#include "cache/manifest.h"
#include "cache/manifest_db.h"
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/scratch.h"

#define OUTLIERS "0a000000000000000000000000000000"
#define FIT "1b000000000000000000000000000000"
#define CHOICE "2c000000000000000000000000000000"
#define PACKED "3d000000000000000000000000000000"

static const char *const cache_keys[] = { OUTLIERS, FIT, CHOICE, PACKED };
static const char *const cache_key_texts[] = {
	"kind outliers\nsource " FIT "\n",
	"kind fit\noutliers " OUTLIERS "\nbits 2,3\n",
	"kind choice\nfit " FIT "\nextended none\n",
	"kind packed\nfit " FIT "\n",
};

static inline struct xfp_choice the_choice(void)
{
	return (struct xfp_choice){
		.candidate = fixture_fit_table().candidates[1], .floor = 980000000, .met = 1, .fit = FIT
	};
}

static inline void add_artifact(const struct xfp_store *store, unsigned i)
{
	static const char *const kinds[] = { XFP_OUTLIERS_KIND, XFP_FIT_KIND, XFP_CHOICE_KIND, XFP_PACKED_KIND };
	static const uint32_t versions[] = { XFP_OUTLIERS_VERSION, XFP_FIT_VERSION, XFP_CHOICE_VERSION,
					     XFP_PACKED_VERSION };
	struct xfp_artifact_label label = { kinds[i],           versions[i],         cache_keys[i],
					    cache_key_texts[i], "layers.0.q.weight", 1.5 };
	struct xfp_choice choice = the_choice();
	struct xfp_pending pending;

	OK(xfp_store_begin(store, cache_keys[i], &pending, &err));
	switch (i) {
	case 0:
		fixture_outliers(pending.path, &label);
		break;
	case 1:
		fixture_fit(pending.path, &label);
		break;
	case 2:
		fixture_choice(pending.path, &label, &choice);
		break;
	case 3:
		fixture_packed(pending.path, &label);
		break;
	}
	OK(xfp_pending_publish(&pending, false, &err));
}

/* A name with characters that are special in a URI or in SQL. */
#define CACHE "ca ch\xc3\xa9?a=b#1%20'q\""

static inline struct xfp_store open_cache(void **state, unsigned artifacts)
{
	char *folder = scratch_path(state, CACHE);
	struct xfp_store store;

	OK(xfp_store_open(folder, &store, &err));
	free(folder);
	for (unsigned i = 0; i < artifacts; i++)
		add_artifact(&store, i);
	return store;
}

static inline struct xfp_manifest *open_manifest(const struct xfp_store *store, int64_t want_rebuilt)
{
	struct xfp_manifest *m = NULL;
	int64_t rebuilt = -9;

	OK(xfp_manifest_open(store, &m, &rebuilt, &err));
	assert_int_equal(rebuilt, want_rebuilt);
	return m;
}

/* The first value of a query, run with SQLite alone, as a user would. */
static inline char *ask(void **state, const char *sql)
{
	char *path = scratch_path(state, CACHE "/manifest.sqlite"), *answer = NULL;
	sqlite3_stmt *statement;
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		answer = strdup((const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	sqlite3_close(db);
	free(path);
	return answer;
}

static inline void expect(void **state, const char *sql, const char *want)
{
	char *answer = ask(state, sql);

	if (!answer || strcmp(answer, want))
		fail_msg("%s: %s instead of %s", sql, answer ? answer : "nothing", want);
	free(answer);
}

/* Change the file behind the manifest's back, like a damaged page. */
static inline void damage(void **state, const char *sql)
{
	char *path = scratch_path(state, CACHE "/manifest.sqlite");
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_true(sqlite3_changes(db) > 0);
	sqlite3_close(db);
	free(path);
}

/* The choice that a row of the manifest records for a choice artifact's key. */
static inline bool get_choice(struct xfp_manifest *m, const char *key, struct xfp_choice *choice)
{
	static const char sql[] =
		"SELECT mode, k, sigma_milli, \"group\", library, bytes, outliers, cos_median, cos_p5, "
		"error, floor_nano, met, fit_key FROM choices WHERE key = ?";
	sqlite3_stmt *row = xfp_manifest_query(m, sql, "t", key);
	enum xfp_mode mode;

	if (!row)
		return false;
	assert_true(xfp_mode_parse((const char *)sqlite3_column_text(row, 0), &mode));
	*choice = (struct xfp_choice){
		.candidate = { .mode = mode,
			       .k = (uint32_t)sqlite3_column_int64(row, 1),
			       .sigma_milli = (uint32_t)sqlite3_column_int64(row, 2),
			       .group = (uint16_t)sqlite3_column_int64(row, 3),
			       .library = (uint16_t)sqlite3_column_int64(row, 4),
			       .bytes = (uint64_t)sqlite3_column_int64(row, 5),
			       .outliers = (uint64_t)sqlite3_column_int64(row, 6),
			       .cos_median = sqlite3_column_double(row, 7),
			       .cos_p5 = sqlite3_column_double(row, 8),
			       .error = sqlite3_column_double(row, 9) },
		.floor = (uint32_t)sqlite3_column_int64(row, 10),
		.met = (uint32_t)sqlite3_column_int64(row, 11),
	};
	snprintf(choice->fit, sizeof choice->fit, "%s", (const char *)sqlite3_column_text(row, 12));
	sqlite3_reset(row);
	return true;
}

static inline void everything_is_there(struct xfp_manifest *m)
{
	struct xfp_choice choice = { 0 }, want = the_choice();
	struct xfp_fit fit = fixture_fit_table();
	struct xfp_candidate candidates[XFP_MAX_CANDIDATES];
	struct xfp_output_measure outputs[XFP_MAX_CANDIDATES];
	bool calibrated = true;
	uint32_t count = 0;

	for (unsigned i = 0; i < 4; i++)
		assert_true(xfp_manifest_has(m, cache_keys[i]));
	assert_true(get_choice(m, CHOICE, &choice));
	assert_memory_equal(&choice.candidate, &want.candidate, sizeof choice.candidate);
	assert_int_equal(choice.floor, 980000000);
	assert_int_equal(choice.met, 1);
	assert_string_equal(choice.fit, FIT);
	assert_true(xfp_manifest_get_candidates(m, FIT, XFP_MAX_CANDIDATES, candidates, outputs, &calibrated, &count));
	assert_int_equal(count, 2);
	assert_false(calibrated);
	assert_memory_equal(candidates, fit.candidates, 2 * sizeof *candidates);
	assert_false(get_choice(m, FIT, &choice));
	assert_false(
		xfp_manifest_get_candidates(m, CHOICE, XFP_MAX_CANDIDATES, candidates, outputs, &calibrated, &count));
}

#endif
