/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which artifacts are in use and which may be removed; and that a removal killed at any point does no harm. The program
 * is linked with --wrap=unlink.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

#include "cache/gc.h"
#include "tests/unit/cache_fixture.h"

#define DAY 86400

/* ---- fault injection --------------------------------------------------------------------------- */

static int unlinks_left = -1; /* exit at the n-th further call; -1: never */
static bool die_after;        /* carry out the last of them before */

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
	int result = 0;

	if (unlinks_left > 0)
		unlinks_left--;
	if (unlinks_left || die_after)
		result = __real_unlink(path);
	if (!unlinks_left)
		_exit(99);
	return result;
}

/* ---- a cache and its history ------------------------------------------------------------------- */

static void set_age(const struct xfp_store *store, unsigned i, int64_t seconds)
{
	const struct timespec times[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };
	char *path = xfp_store_path(store, cache_keys[i]);

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	free(path);
}

static int64_t begin_run(struct xfp_manifest *m, const char *output)
{
	int64_t run = 0;

	OK(xfp_manifest_run_begin(m, "/model", output, "{}", &run, &err));
	return run;
}

/* A run that recorded one unit with these artifacts; `status` -1: it was killed. */
static int64_t add_run(struct xfp_manifest *m, const char *output, const char *choice, const char *packed, int status)
{
	const struct xfp_run_unit unit = {
		.name = "q",
		.class_ = "attention",
		.role = "q",
		.experts = 1,
		.rows = 1,
		.cols = 1,
		.mode = "v2",
		.choice_key = choice,
		.packed = packed,
	};
	int64_t run = begin_run(m, output);

	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	if (status >= 0)
		OK(xfp_manifest_run_end(m, run, (enum xfp_status)status, status ? NULL : "00", 1, &err));
	return run;
}

static struct xfp_census take(const struct xfp_store *store, struct xfp_manifest *m)
{
	struct xfp_census census;

	OK(xfp_census_take(store, m, &census, &err));
	return census;
}

static const struct xfp_gc_rules usual = { .keep_runs = 1, .older_than = INT64_MAX };

/* Check the reasons for keeping or removing each of the four artifacts. */
static void expect_fates(const struct xfp_store *store, struct xfp_manifest *m, const struct xfp_gc_rules *rules,
			 const enum xfp_gc_reason want[4])
{
	struct xfp_census census = take(store, m);
	struct xfp_gc_plan plan;

	OK(xfp_gc_plan(&census, rules, &plan, &err));
	assert_int_equal(census.count, 4);
	for (unsigned i = 0; i < 4; i++)
		if (plan.why[i] != want[i])
			fail_msg("artifact %u: %d instead of %d", i, plan.why[i], want[i]);
	xfp_gc_plan_free(&plan);
	xfp_census_free(&census);
}
#define FATES(rules, ...) expect_fates(&store, m, rules, (const enum xfp_gc_reason[4]){ __VA_ARGS__ })

/* ---- the census -------------------------------------------------------------------------------- */

static void census_of_uses(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_census c;
	uint32_t number;
	char *path;

	add_run(m, "/nowhere/a.xfp", CHOICE, PACKED, 0);
	add_run(m, "/nowhere/a.xfp", CHOICE, NULL, 0);
	add_run(m, "/nowhere/b.xfp", NULL, PACKED, 3);
	c = take(&store, m);
	assert_int_equal(c.count, 4);
	assert_int_equal(c.run_count, 3);
	assert_false(c.runs[0].latest);
	assert_true(c.runs[1].latest);
	assert_int_equal(c.runs[2].status, 3);
	for (uint32_t i = 0; i < 4; i++) {
		assert_string_equal(c.items[i].key, cache_keys[i]);
		assert_true(c.items[i].present && c.items[i].known);
		assert_int_equal(c.items[i].bytes, c.items[i].known_bytes);
	}
	/* A choice uses its fit, which uses its outliers; so does a packed artifact. */
	assert_int_equal(c.items[0].runs, 3);
	assert_int_equal(c.items[1].runs, 3);
	assert_int_equal(c.items[2].runs, 2);
	assert_int_equal(c.items[3].runs, 2);
	assert_int_equal(c.use[c.items[3].run], 0);
	assert_int_equal(c.use[c.items[3].run + 1], 2);
	assert_true(c.items[0].current && c.items[1].current && c.items[2].current);
	assert_false(c.items[3].current);
	assert_int_equal(c.items[1].inputs, 1);
	assert_int_equal(c.input[c.items[1].input], 0);
	assert_int_equal(c.items[3].weights, 2 * FIXTURE_ROWS * FIXTURE_COLS);
	OK(xfp_census_find(&c, "1b00", &number, &err));
	assert_int_equal(number, 1);
	assert_int_equal(xfp_census_find(&c, "1b0", &number, NULL), XFP_USAGE);
	assert_int_equal(xfp_census_find(&c, "zzzz", &number, NULL), XFP_USAGE);
	assert_int_equal(xfp_census_find(&c, "1b01", &number, NULL), XFP_FAILED);
	xfp_census_free(&c);

	/* A missing file, and one that the manifest does not know. */
	path = xfp_store_path(&store, FIT);
	assert_int_equal(__real_unlink(path), 0);
	OK(xfp_manifest_remove_artifact(m, CHOICE, &err));
	c = take(&store, m);
	assert_int_equal(c.count, 4);
	assert_true(c.items[1].known && !c.items[1].present);
	assert_true(c.items[2].present && !c.items[2].known);
	assert_string_equal(c.items[2].kind, "");
	xfp_census_free(&c);
	c = take(&store, NULL);
	assert_int_equal(c.count, 3);
	assert_int_equal(c.run_count, 0);
	xfp_census_free(&c);
	free(path);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* ---- removable artifacts ----------------------------------------------------------------------- */

static void superseded_runs(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_gc_rules rules = usual;

	add_run(m, "/nowhere/a.xfp", NULL, PACKED, 0);
	add_run(m, "/nowhere/a.xfp", CHOICE, NULL, 0);
	FATES(&rules, XFP_GC_RUN, XFP_GC_RUN, XFP_GC_RUN, XFP_GC_REMOVED);
	rules.keep_runs = 2;
	FATES(&rules, XFP_GC_RUN, XFP_GC_RUN, XFP_GC_RUN, XFP_GC_RUN);
	rules.keep_runs = 0;
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED);
	/* Runs of another output do not affect this one, not even failed ones. */
	rules.keep_runs = 1;
	add_run(m, "/nowhere/b.xfp", NULL, NULL, 0);
	begin_run(m, "/nowhere/a.xfp");
	FATES(&rules, XFP_GC_RUN, XFP_GC_RUN, XFP_GC_RUN, XFP_GC_REMOVED);
	add_run(m, "/nowhere/a.xfp", NULL, NULL, 0);
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

static void unfinished_runs(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);

	/* Killed before it recorded anything: artifacts made since it began stay. */
	begin_run(m, "/nowhere/a.xfp");
	for (unsigned i = 0; i < 4; i++)
		set_age(&store, i, i < 2 ? 5 * DAY : -5);
	FATES(&usual, XFP_GC_UNRECORDED, XFP_GC_UNRECORDED, XFP_GC_UNFINISHED, XFP_GC_UNFINISHED);
	/* It recorded some artifacts before it failed. */
	add_run(m, "/nowhere/a.xfp", CHOICE, NULL, 1);
	FATES(&usual, XFP_GC_UNFINISHED, XFP_GC_UNFINISHED, XFP_GC_UNFINISHED, XFP_GC_UNFINISHED);
	/* Then a run succeeded with other artifacts. */
	add_run(m, "/nowhere/a.xfp", NULL, PACKED, 0);
	FATES(&usual, XFP_GC_RUN, XFP_GC_RUN, XFP_GC_REMOVED, XFP_GC_RUN);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* A manifest that was rebuilt has no earlier runs. */
static void unrecorded(void **state)
{
	struct xfp_gc_rules rules = usual;
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);

	FATES(&rules, XFP_GC_UNRECORDED, XFP_GC_UNRECORDED, XFP_GC_UNRECORDED, XFP_GC_UNRECORDED);
	add_run(m, "/nowhere/a.xfp", NULL, NULL, 0);
	set_age(&store, 0, DAY);
	FATES(&rules, XFP_GC_UNRECORDED, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED);
	rules.keep_runs = 0;
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

static uint64_t size_of(const struct xfp_store *store, struct xfp_manifest *m)
{
	struct xfp_census c = take(store, m);
	uint64_t size = 0;

	for (uint32_t i = 0; i < c.count; i++)
		size += c.items[i].bytes;
	for (uint32_t i = 0; i < c.other_count; i++)
		size += c.others[i].bytes;
	xfp_census_free(&c);
	return size;
}

static void age_and_size(void **state)
{
	struct xfp_gc_rules rules = { .keep_runs = 0, .older_than = INT64_MAX };
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);

	for (unsigned i = 0; i < 4; i++)
		set_age(&store, i, (10 + (int64_t)i) * DAY); /* the packed one is the oldest */
	rules.older_than = time(NULL) - 12 * DAY + 100;
	FATES(&rules, XFP_GC_YOUNG, XFP_GC_YOUNG, XFP_GC_REMOVED, XFP_GC_REMOVED);
	rules.older_than = INT64_MAX;
	rules.max_size = 1;
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED);
	rules.max_size = UINT64_MAX;
	FATES(&rules, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_FITS);
	/* One byte too many: the least recently used goes. */
	rules.max_size = size_of(&store, m) - 1;
	FATES(&rules, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_REMOVED);
	/* A run uses it and its inputs: now those are the most recently used. */
	add_run(m, "/nowhere/a.xfp", NULL, PACKED, 0);
	rules.max_size = size_of(&store, m) - 1;
	FATES(&rules, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_REMOVED, XFP_GC_FITS);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* Among artifacts last used at the same time, those with smaller keys are removed; an age equal to the limit is not
 * older than it. */
static void of_the_same_age(void **state)
{
	struct xfp_gc_rules rules = { .keep_runs = 0, .older_than = INT64_MAX };
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	const time_t then = time(NULL) - 5 * DAY;
	const struct timespec times[2] = { { then, 0 }, { then, 0 } };
	struct xfp_census c;

	for (unsigned i = 0; i < 4; i++) {
		char *path = xfp_store_path(&store, cache_keys[i]);

		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
		free(path);
	}
	c = take(&store, m);
	rules.max_size = size_of(&store, m);
	FATES(&rules, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_FITS);
	rules.max_size -= 1;
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_FITS);
	rules.max_size = size_of(&store, m) - c.items[0].bytes;
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_FITS, XFP_GC_FITS, XFP_GC_FITS);
	rules.max_size -= 1;
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_FITS, XFP_GC_FITS);
	xfp_census_free(&c);
	rules.max_size = 0;
	rules.older_than = then;
	FATES(&rules, XFP_GC_YOUNG, XFP_GC_YOUNG, XFP_GC_YOUNG, XFP_GC_YOUNG);
	rules.older_than = then + 1;
	FATES(&rules, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED, XFP_GC_REMOVED);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

static void other_files(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_pending pending;
	struct xfp_gc_plan plan;
	struct xfp_census c;

	OK(xfp_store_begin(&store, "0a11111111111111111111111111111a", &pending, &err)); /* of a living process */
	scratch_write(state, CACHE "/artifacts/0a/notes.txt", "mine", 4);
	scratch_write(state, CACHE "/artifacts/README", "mine", 4);
	scratch_write(state, CACHE "/manifest.sqlite.old-x", "mine", 4);
	scratch_write(state, CACHE "/manifest.sqlite.old-12-wal", "old", 3);
	scratch_write(state, CACHE "/manifest.sqlite.old-12", "old", 3);
	scratch_mkdir(state, CACHE "/artifacts/0a/folder");
	scratch_mkdir(state, CACHE "/mine");
	scratch_write(state, CACHE "/mine/file", "mine", 4);
	/* Process 1 of a system that was shut down long ago. */
	scratch_write(state, CACHE "/artifacts/0a/.x.h5.1-00000001-0.tmp", "x", 1);
	{
		const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
		char *path = scratch_path(state, CACHE "/artifacts/0a/.x.h5.1-00000001-0.tmp");

		assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
		free(path);
	}
	c = take(&store, m);
	OK(xfp_gc_plan(&c, &(struct xfp_gc_rules){ .older_than = INT64_MAX }, &plan, &err));
	assert_int_equal(plan.artifacts.count, 4);
	assert_int_equal(plan.debris.count, 1);
	assert_int_equal(plan.superseded.count, 2);
	OK(xfp_gc_remove(&store, &c, &plan, &err));
	OK(xfp_gc_remove_rows(m, &c, &plan, &err));
	xfp_gc_plan_free(&plan);
	xfp_census_free(&c);
	for (unsigned i = 0; i < 4; i++)
		assert_false(xfp_store_has(&store, cache_keys[i]));
	expect(state, "SELECT (SELECT count(*) FROM artifacts) + (SELECT count(*) FROM inputs)", "0");
	assert_true(scratch_has(state, CACHE "/artifacts/0a/notes.txt"));
	assert_true(scratch_has(state, CACHE "/artifacts/0a/folder"));
	assert_true(scratch_has(state, CACHE "/artifacts/README"));
	assert_true(scratch_has(state, CACHE "/manifest.sqlite.old-x"));
	assert_true(scratch_has(state, CACHE "/mine/file"));
	assert_false(scratch_has(state, CACHE "/manifest.sqlite.old-12"));
	assert_false(scratch_has(state, CACHE "/manifest.sqlite.old-12-wal"));
	assert_false(scratch_has(state, CACHE "/artifacts/0a/.x.h5.1-00000001-0.tmp"));
	assert_int_equal(access(pending.path, F_OK), 0);
	c = take(&store, m);
	assert_int_equal(c.count, 0);
	for (uint32_t i = 0; i < c.other_count; i++)
		assert_int_not_equal(c.others[i].what, XFP_STORE_SUPERSEDED);
	xfp_census_free(&c);
	xfp_pending_discard(&pending);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* ---- killed anywhere --------------------------------------------------------------------------- */

static void collect(const struct xfp_store *store)
{
	struct xfp_manifest *m = NULL;
	struct xfp_gc_plan plan;
	struct xfp_census c;

	OK(xfp_manifest_open(store, &m, NULL, &err));
	c = take(store, m);
	OK(xfp_gc_plan(&c, &usual, &plan, &err));
	OK(xfp_gc_remove(store, &c, &plan, &err));
	OK(xfp_gc_remove_rows(m, &c, &plan, &err));
	xfp_gc_plan_free(&plan);
	xfp_census_free(&c);
	xfp_manifest_close(m);
}

/* Choice and packed are removed; their fit and its outliers are in use. */
static void killed_at(void **state, int unlinks, bool after, bool *reached)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = NULL;
	struct xfp_census c;
	uint32_t files = 0;
	pid_t child;
	int ended;

	OK(xfp_manifest_open(&store, &m, NULL, &err));
	for (unsigned i = 0; i < 4; i++)
		OK(xfp_manifest_ingest(m, &store, cache_keys[i], &err));
	xfp_manifest_close(m);
	assert_true((child = fork()) >= 0);
	if (!child) {
		unlinks_left = unlinks;
		die_after = after;
		collect(&store);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &ended, 0), child);
	assert_true(WIFEXITED(ended));
	*reached = WEXITSTATUS(ended) == 99;
	assert_true(*reached || !WEXITSTATUS(ended));

	/* Wherever it was killed: every artifact in use has its file and row, and every row has a file. */
	OK(xfp_manifest_open(&store, &m, NULL, &err));
	c = take(&store, m);
	for (uint32_t i = 0; i < c.count; i++) {
		assert_true(c.items[i].known);
		files += c.items[i].present;
	}
	for (unsigned i = 0; i < 2; i++)
		assert_true(xfp_store_has(&store, cache_keys[i]) && xfp_manifest_has(m, cache_keys[i]));
	if (*reached)
		assert_in_range(files, after ? 2 : 3, 4);
	xfp_census_free(&c);
	/* The rest is usable: a conversion takes it as a hit. */
	for (unsigned i = 2; i < 4; i++)
		if (xfp_store_has(&store, cache_keys[i])) {
			OK(xfp_manifest_ingest(m, &store, cache_keys[i], &err));
			assert_true(xfp_manifest_has(m, cache_keys[i]));
		}
	xfp_manifest_close(m);
	collect(&store);
	OK(xfp_manifest_open(&store, &m, NULL, &err));
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(xfp_store_has(&store, cache_keys[i]), i < 2);
		assert_int_equal(xfp_manifest_has(m, cache_keys[i]), i < 2);
	}
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

static void killed(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	const struct xfp_run_unit unit = {
		.name = "q",
		.class_ = "attention",
		.role = "q",
		.experts = 1,
		.rows = 1,
		.cols = 1,
		.mode = "v2",
		.outliers = OUTLIERS,
		.fit = FIT,
	};
	int64_t run;
	int deaths = 0;

	add_run(m, "/nowhere/a.xfp", CHOICE, PACKED, 0);
	run = begin_run(m, "/nowhere/a.xfp");
	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	OK(xfp_manifest_run_end(m, run, XFP_OK, "00", 1, &err));
	xfp_manifest_close(m);
	xfp_store_close(&store);
	for (int at = 1; at <= 2; at++)
		for (int after = 0; after <= 1; after++) {
			bool reached;

			killed_at(state, at, after, &reached);
			deaths += reached;
		}
	assert_int_equal(deaths, 4); /* otherwise the test has shown nothing */
}

PROGRAM("test_gc")
{
	const struct CMUnitTest tests[] = {
		scratch_test(census_of_uses), scratch_test(superseded_runs), scratch_test(unfinished_runs),
		scratch_test(unrecorded),     scratch_test(age_and_size),    scratch_test(of_the_same_age),
		scratch_test(other_files),    scratch_test(killed),
	};

	return cmocka_run_group_tests_name("gc", tests, NULL, NULL);
}
