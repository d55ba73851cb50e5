/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Special handling of file systems that are shared between hosts, or that invent inode numbers.
 */
#include "base/system/filesystem.h"
#include "checkpoints/checkpoint.h"

#include <sqlite3.h>
#include <sys/vfs.h>

#include "cache/manifest.h"
#include "schemas/ledger.h"
#include "tests/unit/scratch.h"

static uint32_t type; /* type of every file system; 0: the real one */

/* Replaces the function of libc through the linker's --wrap. */
int __real_statfs(const char *path, struct statfs *fs);
int __wrap_statfs(const char *path, struct statfs *fs);

int __wrap_statfs(const char *path, struct statfs *fs)
{
	int failed = __real_statfs(path, fs);

	if (type)
		fs->f_type = (__typeof__(fs->f_type))type;
	return failed;
}

static void types(void **state)
{
	(void)state;
	assert_true(xfp_filesystem_of_type(0x6969).shared);
	assert_false(xfp_filesystem_of_type(0x6969).inodes_change);
	assert_true(xfp_filesystem_of_type(0x65735546).shared);
	assert_true(xfp_filesystem_of_type(0x65735546).inodes_change);
	assert_true(xfp_filesystem_of_type(0xff534d42).shared);
	assert_false(xfp_filesystem_of_type(0x4d44).shared);
	assert_false(xfp_filesystem_of_type(0xef53).shared); /* ext4 */
	assert_false(xfp_filesystem_of_type(0xef53).inodes_change);
	assert_false(xfp_filesystem_at("no such file").shared);
	type = 0xff534d42; /* whose sign some systems extend */
	assert_true(xfp_filesystem_at(".").shared);
	type = 0;
}

static void journal_is(const char *folder, const char *mode)
{
	char *path = xfp_path(folder, XFP_STORE_MANIFEST);
	sqlite3_stmt *row;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &row, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(row, 0), mode);
	sqlite3_finalize(row);
	sqlite3_close(db);
	free(path);
}

/* WAL needs memory shared by all who have the database open: SQLite does not support it between hosts. */
static void manifest_of_many_hosts(void **state)
{
	static const uint32_t turns[] = { 0x6969, 0, 0xff534d42 }; /* a cache may also be moved */
	char *folder = scratch_path(state, "c");

	for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
		struct xfp_manifest *manifest;
		struct xfp_store store;
		int64_t rebuilt;

		type = turns[i];
		OK(xfp_store_open(folder, &store, &err));
		OK(xfp_manifest_open(&store, &manifest, &rebuilt, &err));
		xfp_manifest_close(manifest);
		xfp_store_close(&store);
		journal_is(folder, type ? "delete" : "wal");
		type = 0;
	}
	free(folder);
}

/* Whether a ledger that was made when the file was `then` is still valid, for checking and for reading. */
static bool still_holds(const char *path, const struct stat *then)
{
	struct xfp_identity identity = xfp_identity_at(path, then);
	struct xfp_source_file file = { .path = (char *)path, .identity = identity };
	struct xfp_ledger ledger = { .files = &file, .file_count = 1 };
	struct xfp_matrix_source source = { .path = path,
					    .tensor = "x",
					    .dtype = XFP_U8,
					    .bytes = 1,
					    .view = { 0, 1, 1, 1, 1 },
					    .identity = &identity };
	struct xfp_matrix_reader *reader = NULL;
	bool holds = !xfp_ledger_check_files(&ledger, NULL);

	assert_int_equal(xfp_matrix_open(&source, &reader, NULL), holds ? XFP_OK : XFP_FAILED);
	xfp_matrix_close(reader);
	return holds;
}

/* Only the inode number of the file differs. */
static void made_up_inodes(void **state)
{
	char *path = scratch_path(state, "m.safetensors");
	struct stat st, then;

	scratch_write(state, "m.safetensors", "x", 1);
	assert_int_equal(stat(path, &st), 0);
	assert_true(still_holds(path, &st));
	then = st;
	then.st_ino++;
	assert_false(still_holds(path, &then));
	type = 0x6969;
	assert_false(still_holds(path, &then));
	type = 0x65735546;
	assert_true(still_holds(path, &then));
	/* Everything else must be equal. */
	for (unsigned field = 0; field < 4; field++) {
		then = st;
		then.st_dev += field == 0;
		then.st_size += field == 1;
		then.st_mtim.tv_nsec ^= field == 2;
		then.st_ctim.tv_nsec ^= field == 3;
		assert_false(still_holds(path, &then));
	}
	type = 0;
	free(path);
}

PROGRAM("test_filesystem")
{
	const struct CMUnitTest tests[] = { scratch_test(types), scratch_test(manifest_of_many_hosts),
					    scratch_test(made_up_inodes) };

	return cmocka_run_group_tests_name("filesystem", tests, NULL, NULL);
}
