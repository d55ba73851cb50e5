/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/wait.h>

#include "cache/lock.h"
#include "cache/rebuild.h"
#include "tests/unit/cache_fixture.h"

static unsigned complaints;

static void left_out(const char *message, void *context)
{
	(void)context;
	assert_non_null(strstr(message, "damaged artifact"));
	complaints++;
}

static const struct xfp_rebuild_hooks hooks = { .left_out = left_out };

static struct xfp_rebuilt rebuild(const struct xfp_store *store)
{
	struct xfp_rebuilt result = { 0 };

	OK(xfp_manifest_rebuild(store, &hooks, &result, &err));
	return result;
}

/* A run, a bundle and a source that only a manifest records. */
static void add_history(struct xfp_manifest *m)
{
	const struct xfp_identity identity = { 1, 2, 3, 4, 5 };
	const struct xfp_run_unit unit = {
		.name = "q",
		.class_ = "attention",
		.role = "q",
		.experts = 1,
		.rows = 1,
		.cols = 1,
		.mode = "v2",
		.packed = PACKED,
	};
	uint8_t digest[16] = "0123456789abcde";
	int64_t run;

	OK(xfp_manifest_run_begin(m, "/m", "/o", "{}", &run, &err));
	OK(xfp_manifest_run_unit(m, run, &unit, &err));
	OK(xfp_manifest_run_end(m, run, XFP_OK, "00", 1, &err));
	OK(xfp_manifest_put_source(m, "/x", &identity, "0", digest, &err));
	OK(xfp_manifest_put_source(m, "/x", &identity, "1", digest, &err));
}

#define HISTORY                                                                                            \
	"SELECT (SELECT count(*) FROM runs) || (SELECT count(*) FROM run_units) || (SELECT count(*) FROM " \
	"bundles) || (SELECT count(*) FROM source_files) || (SELECT count(*) FROM sources)"

/* The result is a manifest that xfp accepts without changes. */
static void check_result(void **state, const struct xfp_store *store, const char *history)
{
	struct xfp_manifest *m = open_manifest(store, -1);

	everything_is_there(m);
	expect(state, HISTORY, history);
	add_history(m); /* it is writable, with new numbers */
	xfp_manifest_close(m);
}

static void history_is_kept(void **state)
{
	static const char *const versions[] = { "PRAGMA user_version = 3", "PRAGMA user_version = 1",
						"PRAGMA user_version = 99" };
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);

	add_history(m);
	xfp_manifest_close(m);
	for (unsigned i = 0; i < 3; i++) {
		struct xfp_rebuilt r = { 0 };
		char history[16];

		free(ask(state, versions[i]));
		free(ask(state, "DELETE FROM artifacts WHERE kind = 'fit'"));
		r = rebuild(&store);
		assert_int_equal(r.artifacts, 4);
		assert_int_equal(r.runs, i + 1);
		assert_int_equal(r.sources, 1);
		assert_string_equal(r.lost, "");
		assert_null(r.aside);
		snprintf(history, sizeof history, "%u%u%u12", i + 1, i + 1, i + 1);
		check_result(state, &store, history);
	}
	expect(state, "SELECT group_concat(run) FROM runs", "1,2,3,4");
	xfp_store_close(&store);
}

/* A table of another version with unknown columns, and without some others. */
static void other_columns(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_rebuilt r = { 0 };

	add_history(m);
	xfp_manifest_close(m);
	free(ask(state, "ALTER TABLE runs ADD COLUMN mood TEXT"));
	free(ask(state, "DROP TABLE sources"));
	free(ask(state, "PRAGMA user_version = 98"));
	r = rebuild(&store);
	assert_int_equal(r.old, XFP_MANIFEST_OTHER);
	assert_int_equal(r.runs, 1);
	assert_int_equal(r.sources, 0);
	assert_non_null(strstr(r.lost, "sources"));
	assert_non_null(r.aside); /* because it was not copied completely */
	assert_int_equal(access(r.aside, F_OK), 0);
	free(r.aside);
	check_result(state, &store, "11100");
	xfp_store_close(&store);
}

static void no_good_manifest(void **state)
{
	static const char garbage[] = "This is not a database, and longer than the header of one has to be. ..........."
				      "....................................................................";
	struct xfp_store store = open_cache(state, 4);
	struct xfp_rebuilt r = rebuild(&store);

	assert_int_equal(r.old, XFP_MANIFEST_ABSENT);
	assert_null(r.aside);
	check_result(state, &store, "00000");
	scratch_write(state, CACHE "/manifest.sqlite", garbage, sizeof garbage);
	r = rebuild(&store);
	assert_int_equal(r.old, XFP_MANIFEST_DAMAGED);
	assert_string_not_equal(r.lost, "");
	assert_non_null(r.aside);
	free(r.aside);
	check_result(state, &store, "00000");
	scratch_write(state, CACHE "/manifest.sqlite", "", 0);
	r = rebuild(&store);
	assert_int_equal(r.old, XFP_MANIFEST_EMPTY);
	check_result(state, &store, "00000");
	xfp_store_close(&store);
}

static void damaged_artifact(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	char *path = xfp_store_path(&store, FIT);
	struct xfp_rebuilt r = { 0 };

	assert_int_equal(truncate(path, 1000), 0);
	complaints = 0;
	r = rebuild(&store);
	assert_int_equal(r.artifacts, 3);
	assert_int_equal(r.left_out, 1);
	assert_int_equal(complaints, 1);
	expect(state, "SELECT count(*) FROM artifacts", "3");
	free(path);
	xfp_store_close(&store);
}

/* Another process has it open: nothing changes, and the message names that process. */
static void busy(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	int ready[2], over[2];
	struct xfp_error err;
	struct xfp_rebuilt r = { 0 };
	char byte = 0, pid[64];
	pid_t child;

	add_history(m);
	xfp_manifest_close(m);
	assert_int_equal(pipe(ready) || pipe(over), 0);
	assert_true((child = fork()) >= 0);
	if (!child) {
		struct xfp_manifest *mine;

		if (xfp_manifest_open(&store, &mine, NULL, NULL) || write(ready[1], &byte, 1) != 1 ||
		    read(over[0], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(xfp_manifest_rebuild(&store, &hooks, &r, &err), XFP_FAILED);
	snprintf(pid, sizeof pid, "(process %ld)", (long)child);
	assert_non_null(strstr(err.text, pid));
	expect(state, HISTORY, "11112");
	assert_int_equal(write(over[1], &byte, 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	r = rebuild(&store);
	assert_int_equal(r.runs, 1);
	check_result(state, &store, "11112");
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(over[i]);
	}
	xfp_store_close(&store);
}

static void die(uint64_t done, uint64_t total, void *context)
{
	if (done == *(uint64_t *)context)
		_exit(99);
	assert_int_equal(total, 4);
}

/* Killed in the middle: the old one is unchanged, and the debris is removed next time. */
static void killed(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);

	add_history(m);
	xfp_manifest_close(m);
	for (uint64_t at = 1; at <= 4; at++) {
		const struct xfp_rebuild_hooks deadly = { .progress = die, .context = &at };
		struct xfp_rebuilt r = { 0 };
		pid_t child;
		int ended;

		assert_true((child = fork()) >= 0);
		if (!child) {
			xfp_manifest_rebuild(&store, &deadly, &r, NULL);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &ended, 0), child);
		assert_int_equal(WEXITSTATUS(ended), 99);
		m = open_manifest(&store, -1);
		everything_is_there(m);
		xfp_manifest_close(m);
		expect(state, HISTORY, "11112");
	}
	rebuild(&store);
	check_result(state, &store, "11112");
	xfp_store_close(&store);
}

/* ---- the lock of the cache --------------------------------------------------------------------- */

static void locks(void **state)
{
	struct xfp_store store = open_cache(state, 0);
	int one = -1, two = -1, alone = -1;
	struct xfp_error err;
	char pid[64];

	OK(xfp_lock_shared(&store, "xfp convert -o /a\nb.xfp", &one, &err));
	OK(xfp_lock_shared(&store, "xfp convert -o /c.xfp", &two, &err));
	assert_true(one >= 0 && two >= 0);
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &alone, &err), XFP_FAILED);
	snprintf(pid, sizeof pid, "/c.xfp (process %ld) and others", (long)getpid());
	assert_non_null(strstr(err.text, pid));
	xfp_lock_release(two);
	xfp_lock_release(one);
	OK(xfp_lock_exclusive(&store, "xfp cache gc", &alone, &err));
	assert_true(alone >= 0);
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &one, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "xfp cache gc (process "));
	assert_null(strstr(err.text, "others")); /* those lines disappeared with their locks */
	xfp_lock_release(alone);
	/* The line of a dead process names nobody. */
	{
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(xfp_lock_shared(&store, "xfp convert -o /gone.xfp", &one, NULL) != XFP_OK);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
	OK(xfp_lock_shared(&store, "xfp convert -o /d.xfp", &two, &err));
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &alone, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "/d.xfp"));
	assert_null(strstr(err.text, "gone"));
	xfp_lock_release(two);
	xfp_store_close(&store);
}

PROGRAM("test_rebuild")
{
	const struct CMUnitTest tests[] = {
		scratch_test(history_is_kept),
		scratch_test(other_columns),
		scratch_test(no_good_manifest),
		scratch_test(damaged_artifact),
		scratch_test(busy),
		scratch_test(killed),
		scratch_test(locks),
	};

	return cmocka_run_group_tests_name("rebuild", tests, NULL, NULL);
}
