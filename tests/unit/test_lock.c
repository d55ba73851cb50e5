/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a cache: its holder, messages about it, and a lock whose file was replaced under its holder.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "base/system/process.h"
#include "cache/lock.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

static struct xfp_store open_cache(void **state)
{
	char *folder = scratch_path(state, "cache");
	struct xfp_store store;

	assert_int_equal(xfp_store_open(folder, &store, &err), XFP_OK);
	free(folder);
	return store;
}

static int share(const struct xfp_store *store, const char *what)
{
	int fd = -1;

	if (xfp_lock_shared(store, what, &fd, &err))
		fail_msg("%s", err.text);
	assert_true(fd >= 0);
	return fd;
}

/* The number of open descriptors, if the system reports it. */
static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void shared_or_alone(void **state)
{
	unsigned before = descriptors();
	struct xfp_store store = open_cache(state);
	int one = share(&store, "xfp convert -o one"), two = share(&store, "xfp convert -o two"), fd = 7;

	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &fd, &err), XFP_FAILED);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.text, "in use by xfp convert -o two (process "));
	assert_non_null(strstr(err.text, " and others; wait for it to end"));
	assert_null(strstr(err.text, " on ")); /* this host */
	xfp_lock_release(one);
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &fd, &err), XFP_FAILED);
	xfp_lock_release(two);
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &fd, &err), XFP_OK);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	/* Earlier holders are removed. */
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache drop", &two, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "in use by xfp cache gc (process "));
	assert_null(strstr(err.text, "and others"));
	xfp_lock_release(fd);
	xfp_lock_release(-1);
	/* A conversion that takes the lock exclusively for a moment removes them, too. */
	one = share(&store, "xfp convert -o three");
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &fd, &err), XFP_FAILED);
	assert_null(strstr(err.text, "and others"));
	assert_non_null(strstr(err.text, "xfp convert -o three"));
	xfp_lock_release(one);
	assert_int_equal(descriptors(), before);
	xfp_store_close(&store);
}

/* An exclusive holder is waited for. */
static void sharing_waits(void **state)
{
	struct xfp_store store = open_cache(state);
	int status, held = -1, fd;
	pid_t child;

	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &held, &err), XFP_OK);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		nanosleep(&(struct timespec){ 0, 300 * 1000 * 1000 }, NULL);
		_exit(0); /* the last holder */
	}
	close(held);
	fd = share(&store, "xfp convert -o one");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &held, &err), XFP_FAILED);
	xfp_lock_release(fd);
	xfp_store_close(&store);
}

/* The lock that is held is then useless: others lock the new file. */
static void made_anew_while_it_is_held(void **state)
{
	struct xfp_store store = open_cache(state);
	char *path = scratch_path(state, "cache/" XFP_STORE_LOCK), *old = scratch_path(state, "old");
	int held = share(&store, "xfp convert -o one"), alone = -1;

	assert_true(xfp_lock_is_of(&store, held));
	assert_true(xfp_lock_is_of(&store, -1));
	assert_int_equal(rename(path, old), 0);
	assert_false(xfp_lock_is_of(&store, held)); /* the file does not exist */
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache drop", &alone, &err), XFP_OK);
	assert_false(xfp_lock_is_of(&store, held)); /* another file exists */
	assert_true(xfp_lock_is_of(&store, alone));
	assert_int_equal(rename(old, path), 0);
	assert_true(xfp_lock_is_of(&store, held));
	assert_false(xfp_lock_is_of(&store, alone));
	xfp_lock_release(held);
	xfp_lock_release(alone);
	free(path);
	free(old);
	xfp_store_close(&store);
}

/* Lines are informational: those of dead processes are left out, those of other processes and hosts are reported as
 * such. */
static void lines_of_others(void **state)
{
	static const char rubbish[] = "12 torn\n0 00000000 h xfp\nrubbish\n\n";
	struct xfp_store store = open_cache(state);
	int held, fd;
	pid_t child = fork();
	char *line;

	assert_true(child >= 0);
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	held = share(&store, "xfp convert -o one");
	assert_int_equal(ftruncate(held, 0), 0);
	assert_int_equal(xfp_lock_exclusive(&store, "gc", &fd, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "by stages of a conversion that has ended, or by another host"));
	assert_int_equal(pwrite(held, rubbish, strlen(rubbish), 0), strlen(rubbish));
	assert_int_equal(xfp_lock_exclusive(&store, "gc", &fd, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "that has ended, or by another host"));
	line = xfp_formatted("%ld %08x %s xfp convert -o x\n", (long)child, xfp_process_space(), "here");
	assert_int_equal(pwrite(held, line, strlen(line), 0), strlen(line));
	assert_int_equal(xfp_lock_exclusive(&store, "gc", &fd, &err), XFP_FAILED);
	assert_null(strstr(err.text, "-o x"));
	free(line);
	line = xfp_formatted("%ld 00000000 far-away.example xfp convert\t-o x\n", (long)child);
	assert_int_equal(pwrite(held, line, strlen(line), 0), strlen(line));
	assert_int_equal(xfp_lock_exclusive(&store, "gc", &fd, &err), XFP_FAILED);
	assert_non_null(strstr(err.text, "in use by xfp convert\\x09-o x (process "));
	assert_non_null(strstr(err.text, " on far-away.example)"));
	free(line);
	xfp_lock_release(held);
	xfp_store_close(&store);
}

/* A cache that is not writable needs no lock, but an existing lock file is shared. */
static void read_only(void **state)
{
	struct xfp_store store = open_cache(state);
	int fd = 7, alone = -1;

	store.read_only = true;
	assert_int_equal(xfp_lock_shared(&store, "xfp convert", &fd, &err), XFP_OK);
	assert_int_equal(fd, -1);
	store.read_only = false;
	xfp_lock_release(share(&store, "xfp convert"));
	store.read_only = true;
	fd = share(&store, "xfp convert");
	store.read_only = false;
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &alone, &err), XFP_FAILED);
	xfp_lock_release(fd);
	xfp_store_close(&store);
}

/* A conversion converts its lock to exclusive for a moment if nobody else shares it; its children do not count. */
static void alone_for_a_moment(void **state)
{
	struct xfp_store store = open_cache(state);
	int one = share(&store, "xfp convert -o one"), two = share(&store, "xfp convert -o two"), other, guard;

	store.wait = (struct xfp_wait){ 0 };
	assert_false(xfp_lock_try_upgrade(&store, one, &guard));
	assert_int_equal(guard, -1);
	xfp_lock_release(two);
	/* The failed attempt has not lost the shared lock. */
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &two, &err), XFP_FAILED);
	other = dup(one); /* as a child inherits it */
	assert_true(xfp_lock_try_upgrade(&store, one, &guard));
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &two, &err), XFP_FAILED);
	assert_int_equal(xfp_lock_downgrade(&store, one, guard, &err), XFP_OK);
	two = share(&store, "xfp convert -o two");
	assert_false(xfp_lock_try_upgrade(&store, -1, &guard));
	assert_int_equal(xfp_lock_downgrade(&store, -1, guard, &err), XFP_OK);
	xfp_lock_release(two);
	xfp_lock_release(other);
	xfp_lock_release(one);
	xfp_store_close(&store);
}

static bool is_over(void *context)
{
	(void)context;
	return true;
}

/* While another process holds the guard, its lock may be released for a moment: nobody else gets it exclusively. */
static void the_guard_protects_a_failed_attempt(void **state)
{
	struct xfp_store store = open_cache(state);
	char *path = scratch_path(state, "cache/" XFP_STORE_GUARD);
	int guard = open(path, O_RDWR | O_CREAT, 0666), one, fd;

	assert_int_equal(flock(guard, LOCK_EX), 0);
	store.wait = (struct xfp_wait){ is_over, NULL };
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &fd, &err), XFP_FAILED);
	one = share(&store, "xfp convert -o one");
	assert_false(xfp_lock_try_upgrade(&store, one, &fd));
	close(guard);
	assert_true(xfp_lock_try_upgrade(&store, one, &fd));
	assert_int_equal(xfp_lock_downgrade(&store, one, fd, &err), XFP_OK);
	xfp_lock_release(one);
	assert_int_equal(xfp_lock_exclusive(&store, "xfp cache gc", &fd, &err), XFP_OK);
	xfp_lock_release(fd);
	xfp_store_close(&store);
	free(path);
}

PROGRAM("test_lock")
{
	const struct CMUnitTest tests[] = {
		scratch_test(shared_or_alone),
		scratch_test(alone_for_a_moment),
		scratch_test(sharing_waits),
		scratch_test(made_anew_while_it_is_held),
		scratch_test(lines_of_others),
		scratch_test(read_only),
		scratch_test(the_guard_protects_a_failed_attempt),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
