/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files when system calls fail, are interrupted or are partial: the order of publication, and the state afterwards. The
 * program is linked with --wrap of the calls below.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "checkpoints/checkpoint.h"
#include "tests/unit/artifact_fixture.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

/* ---- system calls ------------------------------------------------------------------------------- */

static bool watching;
static char calls[32];         /* S: file synced, D: folder synced, c: closed, r: renamed */
static char failing;           /* the failing call, one of these or F: fstat, R: read, W: write */
static int failing_with;       /* errno */
static unsigned failing_after; /* number of calls that succeed first */
static bool once;              /* later calls succeed again */
static bool little;            /* reads and writes transfer at most three bytes, every other one is interrupted */
static unsigned interrupted;

/* Record a call; false if it must fail. */
static bool goes_well(char call)
{
	size_t length = strlen(calls);

	if (!watching)
		return true;
	if (strchr("SDcr", call) && length + 1 < sizeof calls) {
		calls[length] = call;
		calls[length + 1] = '\0';
	}
	if (call != failing || failing_after) {
		failing_after -= call == failing;
		return true;
	}
	errno = failing_with;
	if (once)
		failing = 0;
	return false;
}

/* The number of bytes that a read or write transfers; 0: it fails. */
static size_t part(char call, size_t size)
{
	if (!goes_well(call))
		return 0;
	if (!little)
		return size;
	if (interrupted++ % 2 == 0) {
		errno = EINTR;
		return 0;
	}
	return size < 3 ? size : 3;
}

int __real_fstat(int fd, struct stat *st);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);
ssize_t __real_pread(int fd, void *buf, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void *buf, size_t size, off_t offset);
ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __real_write(int fd, const void *buf, size_t size);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);
ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t offset);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __wrap_write(int fd, const void *buf, size_t size);

int __wrap_fstat(int fd, struct stat *st)
{
	return goes_well('F') ? __real_fstat(fd, st) : -1;
}

int __wrap_fsync(int fd)
{
	struct stat st;

	return __real_fstat(fd, &st) || !goes_well(S_ISDIR(st.st_mode) ? 'D' : 'S') ? -1 : __real_fsync(fd);
}

/* The descriptor is closed even on failure, as on Linux. */
int __wrap_close(int fd)
{
	bool well = goes_well('c');
	int saved = errno, result = __real_close(fd);

	if (well)
		return result;
	errno = saved;
	return -1;
}

int __wrap_rename(const char *from, const char *to)
{
	return goes_well('r') ? __real_rename(from, to) : -1;
}

ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t offset)
{
	size_t some = part('R', size);

	return some ? __real_pread(fd, buf, some, offset) : -1;
}

ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
	size_t some = part('W', size);

	return some ? __real_pwrite(fd, buf, some, offset) : -1;
}

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	size_t some = part('R', size);

	return some ? __real_read(fd, buf, some) : -1;
}

ssize_t __wrap_write(int fd, const void *buf, size_t size)
{
	size_t some = part('W', size);

	return some ? __real_write(fd, buf, some) : -1;
}

static void watch(char call, int errnum, unsigned after)
{
	watching = true;
	calls[0] = '\0';
	failing = call;
	failing_with = errnum;
	failing_after = after;
}

static void watch_no_more(void)
{
	watching = little = once = false;
}

/* ---- what there is ------------------------------------------------------------------------------ */

static unsigned entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* The number of open descriptors, if the system reports it. */
static unsigned descriptors(void)
{
	return access("/proc/self/fd", R_OK) ? 0 : entries("/proc/self/fd");
}

static void expect_text(const char *path, const char *text)
{
	char *found;

	assert_int_equal(xfp_slurp(path, 100000, &found, NULL, &err), XFP_OK);
	assert_string_equal(found, text);
	free(found);
}

/* ---- publishing --------------------------------------------------------------------------------- */

/* Watched from the time the file is open: the calls for finding its name do not matter. */
static enum xfp_status publish(const char *path, const char *text, bool durable, char call, int errnum)
{
	struct xfp_pending pending;
	enum xfp_status status;

	assert_int_equal(xfp_pending_open(path, &pending, &err), XFP_OK);
	assert_int_equal(xfp_write(pending.fd, text, strlen(text), path, &err), XFP_OK);
	watch(call, errnum, 0);
	status = xfp_pending_publish(&pending, durable, &err);
	watch_no_more();
	assert_null(pending.path);
	assert_null(pending.final_path);
	assert_int_equal(pending.fd, -1);
	return status;
}

static void durable_files_are_synced_before_they_have_a_name(void **state)
{
	char *path = scratch_path(state, "a");

	assert_int_equal(publish(path, "one", true, 0, 0), XFP_OK);
	assert_string_equal(calls, "ScrDc");
	assert_int_equal(publish(path, "two", false, 0, 0), XFP_OK);
	assert_string_equal(calls, "cr");
	expect_text(path, "two");
	/* all of that in one call */
	watch(0, 0, 0);
	assert_int_equal(xfp_write_file(path, "three", 5, true, &err), XFP_OK);
	watch_no_more();
	assert_non_null(strstr(calls, "ScrDc"));
	watch(0, 0, 0);
	assert_int_equal(xfp_write_file(path, "four", 4, false, &err), XFP_OK);
	watch_no_more();
	assert_null(strchr(calls, 'S'));
	expect_text(path, "four");
	free(path);
}

static void a_failure_leaves_the_old_file(void **state)
{
	static const struct {
		char call;
		bool durable;
		int errnum;
		const char *calls, *text;
	} cases[] = {
		{ 'S', true, EIO, "Sc", "/a: cannot sync: " },
		{ 'S', true, ENOSPC, "Sc", "/a: No space left on device; free some space and run again" },
		{ 'c', true, EDQUOT, "Sc", "; free some space and run again" },
		{ 'c', false, EIO, "c", "/a: cannot close: " },
		{ 'r', true, EACCES, "Scr", "/a: cannot rename a finished file to this name: Permission denied; " },
		{ 'r', false, EIO, "cr", "/a: cannot rename a finished file to this name: " },
	};
	char *path = scratch_path(state, "a");

	scratch_write(state, "a", "old", 3);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned before = descriptors();
		enum xfp_status status = publish(path, "new", cases[i].durable, cases[i].call, cases[i].errnum);

		if (status != XFP_FAILED || strcmp(calls, cases[i].calls) || !strstr(err.text, cases[i].text))
			fail_msg("case %zu: status %d, \"%s\", %s", i, (int)status, calls, err.text);
		assert_int_equal(entries(*state), 1);
		assert_int_equal(descriptors(), before);
		expect_text(path, "old");
	}
	free(path);
}

static void a_write_that_fails_leaves_the_old_file(void **state)
{
	char *path = scratch_path(state, "a");
	unsigned before = descriptors();

	scratch_write(state, "a", "old", 3);
	watch('W', ENOSPC, 0);
	assert_int_equal(xfp_write_file(path, "new", 3, false, &err), XFP_FAILED);
	watch_no_more();
	assert_non_null(strstr(err.text, "/a: No space left on device; free some space and run again"));
	assert_int_equal(entries(*state), 1);
	assert_int_equal(descriptors(), before);
	expect_text(path, "old");
	free(path);
}

/* The renamed file stays; that it may be lost in a crash is still a failure. */
static void a_folder_that_cannot_be_synced(void **state)
{
	char *path = scratch_path(state, "a");
	unsigned before = descriptors();

	assert_int_equal(publish(path, "new", true, 'D', EIO), XFP_FAILED);
	assert_string_equal(calls, "ScrDc");
	assert_non_null(strstr(err.text, "cannot sync"));
	expect_text(path, "new");
	/* a file system that cannot sync folders */
	assert_int_equal(publish(path, "newer", true, 'D', EINVAL), XFP_OK);
	expect_text(path, "newer");
	assert_int_equal(entries(*state), 1);
	assert_int_equal(descriptors(), before);
	free(path);
}

/* A name used by a dead process with the same id is not reused. */
static void the_next_name_is_taken(void **state)
{
	char *path = scratch_path(state, "a"), *taken;
	struct xfp_pending pending;
	unsigned number;

	assert_int_equal(xfp_pending_open(path, &pending, &err), XFP_OK);
	number = (unsigned)strtoul(strrchr(pending.path, '-') + 1, NULL, 10);
	taken = xfp_formatted("%.*s-%u.tmp", (int)(strrchr(pending.path, '-') - pending.path), pending.path,
			      number + 1);
	xfp_pending_discard(&pending);
	assert_int_equal(close(open(taken, O_WRONLY | O_CREAT | O_EXCL, 0600)), 0);
	assert_int_equal(xfp_pending_open(path, &pending, &err), XFP_OK);
	assert_string_not_equal(pending.path, taken);
	assert_int_equal(xfp_pending_publish(&pending, false, &err), XFP_OK);
	assert_int_equal(access(taken, F_OK), 0);
	free(taken);
	free(path);
}

/* ---- reading and writing ------------------------------------------------------------------------ */

static void a_little_at_a_time(void **state)
{
	static const char text[] = "the quick brown fox jumps over the lazy dog";
	char *path = scratch_path(state, "a"), buf[sizeof text] = "", *found;
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	size_t size;

	watch(0, 0, 0);
	little = true;
	assert_int_equal(xfp_write(fd, text, 20, path, &err), XFP_OK);
	assert_int_equal(xfp_pwrite(fd, text + 20, sizeof text - 21, 20, path, &err), XFP_OK);
	assert_int_equal(xfp_pread(fd, buf, sizeof text - 1, 0, path, &err), XFP_OK);
	assert_string_equal(buf, text);
	assert_int_equal(xfp_slurp(path, sizeof text - 1, &found, &size, &err), XFP_OK);
	assert_int_equal(size, sizeof text - 1);
	assert_string_equal(found, text);
	free(found);
	/* nor is the end of the file an early error */
	assert_int_equal(xfp_pread(fd, buf, 10, sizeof text - 10, path, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "truncated: ends before byte 44"));
	watch_no_more();
	assert_true(interrupted > 10);
	close(fd);
	free(path);
}

static void errors_in_the_middle(void **state)
{
	char *path = scratch_path(state, "a"), buf[8], *found = NULL;
	unsigned before = descriptors();
	int fd;

	scratch_write(state, "a", "12345678", 8);
	fd = open(path, O_RDWR);
	for (unsigned after = 0; after < 2; after++) {
		little = after > 0;
		interrupted = 1;
		watch('R', EIO, after);
		assert_int_equal(xfp_pread(fd, buf, 8, 0, path, &err), XFP_FAILED);
		assert_non_null(strstr(err.text, "/a: cannot read: Input/output error"));
		interrupted = 1;
		watch('R', EIO, after);
		assert_int_equal(xfp_slurp(path, 8, &found, NULL, &err), XFP_FAILED);
		assert_non_null(strstr(err.text, "/a: cannot read: Input/output error"));
		assert_null(found);
		interrupted = 1;
		watch('W', ENOSPC, after);
		assert_int_equal(xfp_write(fd, buf, 8, path, &err), XFP_FAILED);
		assert_non_null(strstr(err.text, "free some space and run again"));
		interrupted = 1;
		watch('W', EDQUOT, after);
		assert_int_equal(xfp_pwrite(fd, buf, 8, 0, path, &err), XFP_FAILED);
		assert_non_null(strstr(err.text, "free some space and run again"));
		interrupted = 1;
		watch('W', EIO, after);
		assert_int_equal(xfp_pwrite(fd, buf, 8, 0, path, &err), XFP_FAILED);
		assert_non_null(strstr(err.text, "/a: cannot write: Input/output error"));
		assert_null(strstr(err.text, "room"));
		watch_no_more();
	}
	close(fd);
	assert_int_equal(descriptors(), before);
	free(path);
}

/* NFS reports ESTALE if another host has removed or replaced an open file. */
static void a_file_that_another_host_removed(void **state)
{
	char *path = scratch_path(state, "a"), *found = NULL;
	struct xfp_artifact_label label = label_of(XFP_PACKED_KIND);

	scratch_write(state, "a", "12345678", 8);
	watch('R', ESTALE, 0);
	once = true;
	assert_int_equal(xfp_slurp(path, 8, &found, NULL, &err), XFP_OK); /* replaced by a new one */
	watch('R', ESTALE, 0);
	once = false;
	free(found);
	assert_int_equal(xfp_slurp(path, 8, &found, NULL, &err), XFP_FAILED);
	watch_no_more();
	assert_non_null(strstr(err.text, "/a: cannot read: Stale file handle"));
	fixture_packed(path, &label);
	for (unsigned after = 0; after < 2; after++) {
		watch('R', ESTALE, after);
		assert_int_equal(xfp_artifact_check(path, &err), XFP_FAILED); /* not damage, which callers remove */
		watch_no_more();
		assert_non_null(strstr(err.text, "Stale file handle"));
	}
	free(path);
}

/* If a path cannot be examined, it is not read, whatever stale data memory holds. */
static void a_file_that_cannot_be_looked_at(void **state)
{
	char *path = scratch_path(state, "a"), *found = NULL;
	unsigned before = descriptors();
	struct stat st;

	scratch_write(state, "a", "12345678", 8);
	watch('F', EIO, 0);
	if (!fstat(0, &st) || errno != EIO) {
		watch_no_more();
		print_message("# this libc has another fstat\n");
		skip();
	}
	assert_int_equal(xfp_slurp(path, 8, &found, NULL, &err), XFP_FAILED);
	watch_no_more();
	assert_non_null(strstr(err.text, "/a: cannot open: Input/output error"));
	assert_null(found);
	assert_int_equal(descriptors(), before);
	free(path);
}

/* One of the many reads for the rows of a transposed matrix fails, at any position, and later ones succeed. */
static void a_row_that_cannot_be_read(void **state)
{
	char *path = scratch_path(state, "a");
	uint8_t zeros[100 * 4000] = { 0 }, *rows = malloc(100 * 50);
	struct xfp_matrix_source source = { .path = path,
					    .tensor = "x",
					    .dtype = XFP_U8,
					    .offset = 0,
					    .bytes = sizeof zeros,
					    .view = { 0, 100, 50, 1, 4000 } };
	struct xfp_matrix_reader *reader;
	unsigned failures = 0;

	scratch_write(state, "a", zeros, sizeof zeros);
	for (unsigned after = 0; after < 60; after++) {
		enum xfp_status status;

		assert_int_equal(xfp_matrix_open(&source, &reader, &err), XFP_OK);
		watch('R', EIO, after);
		once = true;
		status = xfp_matrix_read(reader, 0, 100, rows, &err);
		if (!failing != (status == XFP_FAILED))
			fail_msg("read %u: status %d", after, (int)status);
		failures += status != XFP_OK;
		watch_no_more();
		if (status)
			assert_non_null(strstr(err.text, "tensor x: "));
		xfp_matrix_close(reader);
	}
	assert_true(failures > 1);
	free(rows);
	free(path);
}

/* Files with a wrong size in stat, such as those of /proc. */
static void files_that_are_longer_than_they_say(void **state)
{
	char *text = NULL;
	unsigned before = descriptors();
	size_t size;

	(void)state;
	if (access("/proc/self/status", R_OK)) {
		print_message("# there is no /proc/self/status\n");
		skip();
	}
	assert_int_equal(xfp_slurp("/proc/self/status", 100000, &text, &size, &err), XFP_OK);
	assert_true(size > 100);
	assert_int_equal(strlen(text), size);
	assert_non_null(strstr(text, "\nVmPeak:"));
	free(text);
	text = NULL;
	assert_int_equal(xfp_slurp("/proc/self/status", 100, &text, &size, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "larger than the limit of 100 bytes"));
	assert_null(text);
	assert_int_equal(descriptors(), before);
}

/* ---- identity ----------------------------------------------------------------------------------- */

static void identities_differ_in_one_field(void **state)
{
	const struct xfp_identity a = { 1, 2, 3, 4, 5 };
	struct xfp_identity others[] = {
		{ 0, 2, 3, 4, 5 }, { 1, 0, 3, 4, 5 }, { 1, 2, 0, 4, 5 }, { 1, 2, 3, 0, 5 }, { 1, 2, 3, 4, 0 }
	};
	struct stat st = { .st_dev = 1, .st_ino = 2, .st_size = 3, .st_mtim = { 4, 5 }, .st_ctim = { 6, 7 } };
	struct xfp_identity of = xfp_identity_of(&st);

	(void)state;
	assert_true(xfp_identity_equal(&a, &a));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(xfp_identity_equal(&a, &others[i]));
	assert_int_equal(of.device, 1);
	assert_int_equal(of.inode, 2);
	assert_int_equal(of.size, 3);
	assert_int_equal(of.mtime_ns, 4000000005);
	assert_int_equal(of.ctime_ns, 6000000007);
}

PROGRAM("test_publish")
{
	const struct CMUnitTest tests[] = {
		scratch_test(durable_files_are_synced_before_they_have_a_name),
		scratch_test(a_failure_leaves_the_old_file),
		scratch_test(a_write_that_fails_leaves_the_old_file),
		scratch_test(a_folder_that_cannot_be_synced),
		scratch_test(the_next_name_is_taken),
		scratch_test(a_little_at_a_time),
		scratch_test(errors_in_the_middle),
		scratch_test(a_file_that_another_host_removed),
		scratch_test(a_file_that_cannot_be_looked_at),
		scratch_test(a_row_that_cannot_be_read),
		cmocka_unit_test(files_that_are_longer_than_they_say),
		cmocka_unit_test(identities_differ_in_one_field),
	};

	return cmocka_run_group_tests_name("publish", tests, NULL, NULL);
}
