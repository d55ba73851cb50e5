/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over a cache while its disk fails, while others remove files, and with a manifest that contradicts it. The
 * program is linked with --wrap=readdir and --wrap=lstat.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>

#include "cache/check.h"
#include "tests/unit/cache_fixture.h"

static int fail_reading, fail_looking; /* errno; 0: succeed */
static unsigned after;                 /* number of calls that succeed first */
static unsigned failed;

static bool fails(int errnum)
{
	if (!errnum || (after && after--))
		return false;
	errno = errnum;
	failed++;
	return true;
}

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);

struct dirent *__wrap_readdir(DIR *dir)
{
	return fails(fail_reading) ? NULL : __real_readdir(dir);
}

int __wrap_lstat(const char *path, struct stat *st)
{
	return fails(fail_looking) ? -1 : __real_lstat(path, st);
}

static enum xfp_status count(const struct xfp_store_entry *entry, void *context, struct xfp_error *err)
{
	(void)err;
	*(unsigned *)context += entry->what == XFP_STORE_ARTIFACT;
	return XFP_OK;
}

static enum xfp_status walk(const struct xfp_store *store, unsigned *artifacts, struct xfp_error *err)
{
	enum xfp_status status;

	*artifacts = failed = 0;
	status = xfp_store_walk(store, count, artifacts, err);
	fail_reading = fail_looking = 0;
	return status;
}

/* A read error in a folder is not treated as its end. */
static void folders_that_cannot_be_read(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_error err = { 0 };
	unsigned artifacts;

	OK(walk(&store, &artifacts, &err));
	assert_int_equal(artifacts, 4);
	for (unsigned i = 0; i < 8; i++) {
		fail_reading = EIO;
		after = i;
		assert_int_equal(walk(&store, &artifacts, &err), XFP_FAILED);
		assert_true(failed > 0);
		assert_non_null(strstr(err.text, "cannot list: Input/output error"));
	}
	xfp_store_close(&store);
}

/* Files removed by others are skipped; files that cannot be examined are reported. */
static void files_that_cannot_be_looked_at(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_error err = { 0 };
	unsigned artifacts;

	fail_looking = ENOENT;
	OK(walk(&store, &artifacts, &err));
	if (!failed) {
		print_message("# this libc has another lstat\n");
		skip();
	}
	assert_int_equal(artifacts, 0);
	fail_looking = EIO;
	after = 2;
	assert_int_equal(walk(&store, &artifacts, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "cannot stat: Input/output error"));
	assert_int_equal(artifacts, 2);
	xfp_store_close(&store);
}

/* ---- checks ------------------------------------------------------------------------------------- */

static enum xfp_status found(const struct xfp_finding *finding, void *context, struct xfp_error *err)
{
	(void)err;
	assert_true(strlen(finding->message) > 0);
	*(unsigned *)context |= 1u << finding->what;
	return XFP_OK;
}

/* Check the current cache with a census that may be older. */
static unsigned findings(const struct xfp_store *store, const struct xfp_census *census, bool read)
{
	unsigned what = 0;
	const struct xfp_check_rules rules = { .read = read };
	const struct xfp_check_hooks hooks = { .found = found, .context = &what };
	struct xfp_check_result result = { 0 };

	OK(xfp_check_cache(store, census, true, &rules, &hooks, &result, &err));
	return what;
}

/* A row with a size that is off by one, in either direction. */
static void sizes_that_the_manifest_has_otherwise(void **state)
{
	static const char *const updates[] = { "UPDATE artifacts SET bytes = bytes + 1 WHERE key = '" FIT "'",
					       "UPDATE artifacts SET bytes = bytes - 2 WHERE key = '" FIT "'" };
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_census census;

	OK(xfp_census_take(&store, m, &census, &err));
	assert_int_equal(findings(&store, &census, false), 0);
	xfp_census_free(&census);
	for (int i = 0; i < 2; i++) {
		free(ask(state, updates[i]));
		OK(xfp_census_take(&store, m, &census, &err));
		assert_int_equal(findings(&store, &census, false), 1u << XFP_FINDING_DIFFERS);
		xfp_census_free(&census);
	}
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

/* A file removed since the census is not reported; one that cannot be opened is. */
static void artifacts_that_cannot_be_opened(void **state)
{
	struct xfp_store store = open_cache(state, 4);
	struct xfp_manifest *m = open_manifest(&store, 4);
	struct xfp_census census;
	struct rlimit limit, none;
	unsigned what;

	OK(xfp_census_take(&store, m, &census, &err));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	what = findings(&store, &census, false);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(what, 1u << XFP_FINDING_UNREADABLE);
	xfp_store_remove(&store, FIT);
	assert_int_equal(findings(&store, &census, false), 0);
	xfp_census_free(&census);
	xfp_manifest_close(m);
	xfp_store_close(&store);
}

PROGRAM("test_walk")
{
	const struct CMUnitTest tests[] = {
		scratch_test(folders_that_cannot_be_read),
		scratch_test(files_that_cannot_be_looked_at),
		scratch_test(sizes_that_the_manifest_has_otherwise),
		scratch_test(artifacts_that_cannot_be_opened),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
