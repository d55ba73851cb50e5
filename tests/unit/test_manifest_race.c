/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that ingest at the same time. The program is linked with --wrap=xfp_artifact_open, which runs between the
 * check whether an artifact is known and the transaction that records it, and with --wrap=xfp_artifact_get_label, which
 * runs in the middle of that transaction.
 */
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/cache_fixture.h"

static const struct xfp_store *racing; /* NULL: no other process is first */

enum xfp_status __real_xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
					 struct xfp_artifact *a, struct xfp_error *err);
enum xfp_status __wrap_xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
					 struct xfp_artifact *a, struct xfp_error *err);

static const char *self;

/* Run this program again, as SQLite requires: a fork would share its parent's connections. */
static pid_t another_process_ingests(const struct xfp_store *store, const char *key)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		execv(self, (char *[]){ (char *)self, store->folder, (char *)key, NULL });
		_exit(127);
	}
	return child;
}

static int ingest_only(char *folder, const char *key)
{
	struct xfp_error err = { 0 };
	struct xfp_manifest *m = NULL;
	struct xfp_store store;
	int64_t rebuilt;
	enum xfp_status status = xfp_store_open(folder, &store, &err);

	if (status || (status = xfp_manifest_open(&store, &m, &rebuilt, &err)) ||
	    (status = xfp_manifest_ingest(m, &store, key, &err)))
		fprintf(stderr, "%s: %s\n", folder, err.text);
	xfp_manifest_close(m);
	xfp_store_close(&store);
	return (int)status;
}

static void expect_success(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

enum xfp_status __wrap_xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
					 struct xfp_artifact *a, struct xfp_error *err)
{
	const struct xfp_store *store = racing;

	racing = NULL;
	if (store)
		expect_success(another_process_ingests(store, key));
	return __real_xfp_artifact_open(path, kind, version, key, a, err);
}

static const struct xfp_store *crowded; /* NULL: no other process interferes */
static const char *meanwhile;           /* artifact that another process ingests */
static pid_t late;

enum xfp_status __real_xfp_artifact_get_label(struct xfp_artifact *a, struct xfp_artifact_label *label,
					      struct xfp_error *err);
enum xfp_status __wrap_xfp_artifact_get_label(struct xfp_artifact *a, struct xfp_artifact_label *label,
					      struct xfp_error *err);

enum xfp_status __wrap_xfp_artifact_get_label(struct xfp_artifact *a, struct xfp_artifact_label *label,
					      struct xfp_error *err)
{
	const struct xfp_store *store = crowded;

	crowded = NULL;
	if (store) {
		late = another_process_ingests(store, meanwhile);
		nanosleep(&(struct timespec){ 0, 500 * 1000 * 1000 }, NULL);
	}
	return __real_xfp_artifact_get_label(a, label, err);
}

static void the_other_comes_first(void **state)
{
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);

	for (unsigned i = 0; i < 4; i++) {
		add_artifact(&store, i);
		racing = &store;
		OK(xfp_manifest_ingest(m, &store, cache_keys[i], &err));
		assert_null(racing);
	}
	everything_is_there(m);
	expect(state, "SELECT count(*) FROM artifacts", "4");
	expect(state, "SELECT count(*) FROM candidates", "2");
	expect(state, "SELECT count(*) FROM inputs", "3");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* A transaction is not undone by another writer, which waits. */
static void another_comes_meanwhile(void **state)
{
	struct xfp_store store = open_cache(state, 0);
	struct xfp_manifest *m = open_manifest(&store, -1);

	for (unsigned i = 0; i < 4; i++)
		add_artifact(&store, i);
	crowded = &store;
	meanwhile = cache_keys[1];
	OK(xfp_manifest_ingest(m, &store, cache_keys[0], &err));
	assert_null(crowded);
	expect_success(late);
	crowded = &store;
	meanwhile = cache_keys[3];
	OK(xfp_manifest_begin(m, &err));
	OK(xfp_manifest_ingest(m, &store, cache_keys[2], &err));
	OK(xfp_manifest_commit(m, &err));
	expect_success(late);
	everything_is_there(m);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* Several at once, with the same and with other artifacts. */
static void all_at_once(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m;
	pid_t child[12];

	for (unsigned i = 0; i < 12; i++)
		child[i] = another_process_ingests(&store, cache_keys[i % 4]);
	for (unsigned i = 0; i < 12; i++)
		expect_success(child[i]);
	m = open_manifest(&store, -1);
	everything_is_there(m);
	expect(state, "SELECT count(*) FROM artifacts", "4");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

PROGRAM("test_manifest_race")
{
	const struct CMUnitTest tests[] = { scratch_test(the_other_comes_first), scratch_test(another_comes_meanwhile),
					    scratch_test(all_at_once) };

	if (argc == 3)
		return ingest_only(argv[1], argv[2]);
	self = argv[0];
	return cmocka_run_group_tests_name("manifest_race", tests, NULL, NULL);
}
