/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "cache/store.h"
#include "tests/unit/scratch.h"

#define FIRST "00aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SECOND "ab000000000000000000000000000000"
#define THIRD "abffffffffffffffffffffffffffffff"
#define LAST "ff000000000000000000000000000000"

static void put(const struct xfp_store *store, const char *key)
{
	struct xfp_pending pending;

	OK(xfp_store_begin(store, key, &pending, &err));
	OK(xfp_write(pending.fd, key, strlen(key), pending.path, &err));
	OK(xfp_pending_publish(&pending, false, &err));
}

static struct xfp_store open_cache(void **state, const char *name)
{
	char *folder = scratch_path(state, name);
	struct xfp_store store;

	OK(xfp_store_open(folder, &store, &err));
	free(folder);
	return store;
}

struct walk {
	char keys[16][33];
	unsigned count, stop_at;
};

static enum xfp_status visit(const char *key, const char *path, void *context, struct xfp_error *err)
{
	struct walk *walk = context;

	assert_non_null(strstr(path, key));
	assert_int_equal(access(path, R_OK), 0);
	strcpy(walk->keys[walk->count++], key);
	return walk->count == walk->stop_at ? xfp_fail(err, XFP_UNMET, "enough") : XFP_OK;
}

static void put_find_remove(void **state)
{
	struct xfp_store store = open_cache(state, "caché of \"mine\"/deep");
	struct xfp_pending pending;
	char *path = xfp_store_path(&store, SECOND);

	assert_false(store.read_only);
	assert_non_null(strstr(path, "/deep/artifacts/ab/" SECOND ".h5"));
	assert_false(xfp_store_has(&store, SECOND));
	OK(xfp_store_begin(&store, SECOND, &pending, &err));
	assert_false(xfp_store_has(&store, SECOND));
	assert_string_equal(pending.final_path, path);
	xfp_pending_discard(&pending);
	put(&store, SECOND);
	put(&store, SECOND); /* the last one does no harm */
	assert_true(xfp_store_has(&store, SECOND));
	xfp_store_remove(&store, SECOND);
	xfp_store_remove(&store, SECOND);
	assert_false(xfp_store_has(&store, SECOND));
	free(path);
	xfp_store_close(&store);
}

/* Only artifacts known not to exist are absent. */
static void cannot_tell(void **state)
{
	struct xfp_store store = open_cache(state, "c");
	char *folder = scratch_path(state, "c/artifacts/ab");

	put(&store, SECOND);
	assert_false(xfp_store_has(&store, THIRD)); /* no such file */
	assert_false(xfp_store_has(&store, FIRST)); /* no such folder */
	xfp_store_remove(&store, SECOND);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(symlink(folder, folder), 0); /* a loop, which even root cannot pass */
	assert_true(xfp_store_has(&store, SECOND));
	assert_int_equal(unlink(folder), 0);
	scratch_write(state, "c/artifacts/ab", "", 0);
	assert_false(xfp_store_has(&store, SECOND)); /* not a folder */
	free(folder);
	xfp_store_close(&store);
}

static int count_pending(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind;
	return xfp_pending_is_name(path + ftw->base);
}

static void each_in_order(void **state)
{
	struct xfp_store store = open_cache(state, "c");
	struct walk walk = { .stop_at = 99 };
	struct xfp_pending pending;
	struct xfp_error err = { 0 };

	OK(xfp_store_each(&store, visit, &walk, &err));
	assert_int_equal(walk.count, 0);
	put(&store, LAST);
	put(&store, THIRD);
	put(&store, FIRST);
	put(&store, SECOND);
	for (char digit = '1'; digit <= '9'; digit++) {
		char key[] = SECOND;

		key[2] = digit;
		put(&store, key);
	}
	/* None of these is an artifact. */
	OK(xfp_store_begin(&store, "ab111111111111111111111111111111", &pending, &err));
	scratch_write(state, "c/artifacts/ab/README", "x", 1);
	scratch_write(state, "c/artifacts/ab/" LAST ".h5", "x", 1);
	scratch_write(state, "c/artifacts/ab/AB000000000000000000000000000000.h5", "x", 1);
	scratch_write(state, "c/artifacts/ab/" SECOND ".h5~", "x", 1);
	scratch_write(state, "c/artifacts/11", "x", 1);
	scratch_mkdir(state, "c/artifacts/AB");
	OK(xfp_store_each(&store, visit, &walk, &err));
	assert_int_equal(walk.count, 13);
	assert_string_equal(walk.keys[0], FIRST);
	assert_string_equal(walk.keys[1], SECOND);
	assert_string_equal(walk.keys[11], THIRD);
	assert_string_equal(walk.keys[12], LAST);
	for (unsigned i = 1; i < walk.count; i++)
		assert_true(strcmp(walk.keys[i - 1], walk.keys[i]) < 0);
	walk = (struct walk){ .stop_at = 2 };
	assert_int_equal(xfp_store_each(&store, visit, &walk, &err), XFP_UNMET);
	assert_int_equal(walk.count, 2);
	xfp_pending_discard(&pending);
	xfp_store_close(&store);
}

/* A new or empty folder becomes a marked cache; a user's own folder is not marked. */
static void tag(void **state)
{
	struct xfp_store store = open_cache(state, "new");
	char *text, *path = scratch_path(state, "new/CACHEDIR.TAG");
	size_t size;

	xfp_store_close(&store);
	OK(xfp_slurp(path, 4096, &text, &size, &err));
	assert_memory_equal(text, "Signature: 8a477f597d28d172789f06886806bc55", 43);
	free(text);
	assert_int_equal(unlink(path), 0);
	free(path);
	store = open_cache(state, "new");
	xfp_store_close(&store);
	assert_false(scratch_has(state, "new/CACHEDIR.TAG"));

	scratch_mkdir(state, "empty");
	store = open_cache(state, "empty");
	xfp_store_close(&store);
	assert_true(scratch_has(state, "empty/CACHEDIR.TAG"));

	scratch_mkdir(state, "home");
	scratch_write(state, "home/thesis.tex", "x", 1);
	store = open_cache(state, "home");
	xfp_store_close(&store);
	assert_true(scratch_has(state, "home/artifacts"));
	assert_false(scratch_has(state, "home/CACHEDIR.TAG"));
}

/* Killed while writing the tag, once before any other file existed, once long after. */
static void killed_tag(void **state)
{
	char *folder = scratch_path(state, "c"), *tag = scratch_path(state, "c/CACHEDIR.TAG");

	scratch_mkdir(state, "c");
	for (int again = 0; again < 2; again++) {
		struct xfp_pending alive;
		struct xfp_store store;
		pid_t child = fork();
		int ended;

		assert_true(child >= 0);
		if (!child) {
			struct xfp_pending debris;

			_exit(xfp_pending_open(tag, &debris, NULL));
		}
		assert_int_equal(waitpid(child, &ended, 0), child);
		assert_int_equal(ended, 0);
		OK(xfp_pending_open(tag, &alive, &err)); /* and one that is being written */
		OK(xfp_store_open(folder, &store, &err));
		xfp_store_sweep(&store);
		assert_true(scratch_has(state, "c/CACHEDIR.TAG"));
		assert_int_equal(access(alive.path, F_OK), 0);
		xfp_pending_discard(&alive);
		assert_int_equal(nftw(folder, count_pending, 4, FTW_PHYS), 0);
		xfp_store_close(&store);
	}
	free(folder);
	free(tag);
}

static void sweep(void **state)
{
	struct xfp_store store = open_cache(state, "c");
	pid_t child = fork();
	struct xfp_pending mine;
	struct walk walk = { .stop_at = 99 };
	int ended;

	assert_true(child >= 0);
	if (!child) {
		struct xfp_pending debris;

		_exit(xfp_store_begin(&store, SECOND, &debris, NULL));
	}
	assert_int_equal(waitpid(child, &ended, 0), child);
	assert_int_equal(ended, 0);
	put(&store, THIRD);
	OK(xfp_store_begin(&store, FIRST, &mine, &err));
	xfp_store_sweep(&store);
	assert_int_equal(access(mine.path, F_OK), 0);
	OK(xfp_pending_publish(&mine, false, &err));
	OK(xfp_store_each(&store, visit, &walk, &err));
	assert_int_equal(walk.count, 2);
	xfp_store_remove(&store, FIRST);
	xfp_store_remove(&store, THIRD);
	/* Nothing is left in the folder that had the debris. */
	{
		char *folder = scratch_path(state, "c/artifacts/ab");

		assert_int_equal(rmdir(folder), 0);
		free(folder);
	}
	xfp_store_close(&store);
}

static void read_only(void **state)
{
	struct xfp_store store = open_cache(state, "c");
	char *folder = scratch_path(state, "c"), *artifacts = scratch_path(state, "c/artifacts"),
	     *missing = scratch_path(state, "c/artifacts/none/such");
	uid_t user = geteuid();
	struct xfp_pending pending;
	struct xfp_error err = { 0 };

	put(&store, FIRST);
	xfp_store_close(&store);
	assert_int_equal(chmod(*state, 0755), 0);
	assert_int_equal(chmod(artifacts, 0555), 0);
	assert_int_equal(chmod(folder, 0555), 0);
	if (!user) /* root ignores permissions */
		assert_int_equal(seteuid(65534), 0);
	OK(xfp_store_open(folder, &store, &err));
	assert_true(store.read_only);
	assert_true(xfp_store_has(&store, FIRST));
	assert_int_equal(xfp_store_begin(&store, SECOND, &pending, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, folder));
	assert_non_null(strstr(err.text, "--cache"));
	xfp_store_close(&store);
	/* A cache that cannot be created is an error. */
	assert_int_equal(xfp_store_open(missing, &store, &err), XFP_FAILED);
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(artifacts, 0755), 0);
	free(missing);
	free(artifacts);
	free(folder);
}

PROGRAM("test_store")
{
	const struct CMUnitTest tests[] = {
		scratch_test(put_find_remove), scratch_test(cannot_tell),
		scratch_test(each_in_order),   scratch_test(tag),
		scratch_test(killed_tag),      scratch_test(sweep),
		scratch_test(read_only),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
