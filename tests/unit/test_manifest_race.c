/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that ingest the same artifact at the same time. The program is linked with --wrap=xfp_artifact_open: between
 * the look whether an artifact is known and the moment where it is entered, another process enters it.
 */
#include <sys/wait.h>

#include "cache_fixture.h"

static const struct xfp_store *racing; /* NULL: nobody comes first */

enum xfp_status __real_xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
					 struct xfp_artifact *a, struct xfp_error *err);
enum xfp_status __wrap_xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
					 struct xfp_artifact *a, struct xfp_error *err);

static void another_process_ingests(const char *key)
{
	const struct xfp_store *store = racing;
	int status;
	pid_t child;

	racing = NULL;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct xfp_manifest *m = NULL;
		int64_t rebuilt;

		if (xfp_manifest_open(store, &m, &rebuilt, NULL) || xfp_manifest_ingest(m, store, key, NULL))
			_exit(1);
		xfp_manifest_close(m);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

enum xfp_status __wrap_xfp_artifact_open(const char *path, const char *kind, uint32_t version, const char *key,
					 struct xfp_artifact *a, struct xfp_error *err)
{
	if (racing)
		another_process_ingests(key);
	return __real_xfp_artifact_open(path, kind, version, key, a, err);
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

/* Several at once, each all of them, and no one held up by what another has entered. */
static void all_at_once(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m;
	pid_t child[6];

	for (unsigned i = 0; i < 6; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (!child[i]) {
			struct xfp_manifest *own = NULL;
			int64_t rebuilt;
			enum xfp_status status = xfp_manifest_open(&store, &own, &rebuilt, NULL);

			for (unsigned k = 0; !status && k < 4; k++)
				status = xfp_manifest_ingest(own, &store, cache_keys[(i + k) % 4], NULL);
			xfp_manifest_close(own);
			_exit((int)status);
		}
	}
	for (unsigned i = 0; i < 6; i++) {
		int status;

		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	m = open_manifest(&store, -1);
	everything_is_there(m);
	expect(state, "SELECT count(*) FROM artifacts", "4");
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = { scratch_test(the_other_comes_first), scratch_test(all_at_once) };

	return cmocka_run_group_tests_name("manifest_race", tests, NULL, NULL);
}
