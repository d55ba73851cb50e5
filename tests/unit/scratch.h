/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - a temporary folder for a test, and files in it.
 */
#ifndef XFP_TEST_SCRATCH_H
#define XFP_TEST_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/unit/unit.h"

static inline int scratch_setup(void **state)
{
	const char *base = getenv("TMPDIR");
	char *folder = xfp_path(base && *base ? base : "/tmp", "xfp-test-XXXXXX");
	char *real;

	if (!folder || !mkdtemp(folder))
		return -1;
	real = realpath(folder, NULL); /* the path that the checkpoint reader will use */
	free(folder);
	*state = real;
	return real ? 0 : -1;
}

static inline int scratch_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int scratch_teardown(void **state)
{
	int failed = nftw(*state, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);

	free(*state);
	return failed;
}

#define scratch_test(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

/* The path of a file in the folder; the caller frees it. */
static inline char *scratch_path(void **state, const char *name)
{
	char *path = xfp_path(*state, name);

	assert_non_null(path);
	return path;
}

static inline void scratch_write(void **state, const char *name, const void *data, size_t size)
{
	char *path = scratch_path(state, name);
	struct xfp_error err = { 0 };

	if (xfp_write_file(path, data, size, false, &err))
		fail_msg("%s", err.text);
	free(path);
}

static inline void scratch_mkdir(void **state, const char *name)
{
	char *path = scratch_path(state, name);

	assert_int_equal(mkdir(path, 0777), 0);
	free(path);
}

static inline bool scratch_has(void **state, const char *name)
{
	char *path = scratch_path(state, name);
	struct stat st;
	bool there = !lstat(path, &st);

	free(path);
	return there;
}

#endif
