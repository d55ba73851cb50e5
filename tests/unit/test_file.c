/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checked I/O, pending files and their removal, printable names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/printable.h"
#include "tests/unit/scratch.h"

static struct xfp_error err;

static void expect(enum xfp_status status, enum xfp_status expected, const char *part)
{
	if (status != expected || (part && !strstr(err.text, part)))
		fail_msg("status %d instead of %d, \"%s\" without \"%s\"", (int)status, (int)expected, err.text,
			 part ? part : "");
}

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

/* ---- reading and writing ------------------------------------------------------------------------ */

static void test_reads_exactly(void **state)
{
	char *path = scratch_path(state, "a"), buf[8] = "";
	int fd;

	scratch_write(state, "a", "0123456789", 10);
	fd = open(path, O_RDONLY);
	assert_int_equal(xfp_pread(fd, buf, 4, 6, path, &err), XFP_OK);
	assert_memory_equal(buf, "6789", 4);
	assert_int_equal(xfp_pread(fd, buf, 0, 100, path, &err), XFP_OK);
	expect(xfp_pread(fd, buf, 5, 6, path, &err), XFP_BAD_INPUT, "truncated");
	assert_non_null(strstr(err.text, path));
	expect(xfp_pread(fd, buf, 1, UINT64_MAX, path, &err), XFP_BAD_INPUT, "truncated");
	close(fd);
	expect(xfp_pread(fd, buf, 1, 0, path, &err), XFP_FAILED, "Bad file descriptor");
	free(path);
}

static void test_writes_where_asked(void **state)
{
	char *path = scratch_path(state, "a"), *text;
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	size_t size;

	assert_int_equal(xfp_write(fd, "abcdef", 6, path, &err), XFP_OK);
	assert_int_equal(xfp_pwrite(fd, "XY", 2, 1, path, &err), XFP_OK);
	assert_int_equal(xfp_write(fd, "gh", 2, path, &err), XFP_OK);
	expect(xfp_pwrite(fd, "z", 1, UINT64_MAX, path, &err), XFP_FAILED, path);
	close(fd);
	assert_int_equal(xfp_slurp(path, 100, &text, &size, &err), XFP_OK);
	assert_int_equal(size, 8);
	assert_string_equal(text, "aXYdefgh");
	free(text);
	free(path);
}

/* /dev/full is a disk that is always full. */
static void test_full_disk(void **state)
{
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	if (fd < 0)
		skip();
	expect(xfp_write(fd, "a", 1, "out.xfp", &err), XFP_FAILED, "out.xfp: No space left on device; free some space");
	close(fd);
}

static void test_slurp(void **state)
{
	char *path = scratch_path(state, "a"), *missing = scratch_path(state, "b"), *text = NULL;
	size_t size = 99;

	scratch_write(state, "a", "ab\0cd", 5);
	assert_int_equal(xfp_slurp(path, 5, &text, &size, &err), XFP_OK);
	assert_int_equal(size, 5);
	assert_memory_equal(text, "ab\0cd", 6);
	free(text);
	text = NULL;
	expect(xfp_slurp(path, 4, &text, &size, &err), XFP_BAD_INPUT, path);
	expect(xfp_slurp(missing, 4, &text, &size, &err), XFP_FAILED, "No such file");
	expect(xfp_slurp(*state, 4, &text, &size, &err), XFP_FAILED, NULL);
	assert_null(text);
	/* Not a regular file: its size is known only at its end. */
	expect(xfp_slurp("/dev/zero", 100000, &text, &size, &err), XFP_BAD_INPUT, "/dev/zero");
	scratch_write(state, "a", "", 0);
	assert_int_equal(xfp_slurp(path, 0, &text, &size, &err), XFP_OK);
	free(text);
	assert_int_equal(xfp_slurp(path, 0, &text, NULL, &err), XFP_OK);
	assert_int_equal(size, 0);
	assert_string_equal(text, "");
	free(text);
	free(path);
	free(missing);
}

static void test_paths(void **state)
{
	char *a = xfp_path("x", "y"), *b = xfp_path("/", "y"), *c = xfp_formatted("%d-%s", 3, "z");

	(void)state;
	assert_string_equal(a, "x/y");
	assert_string_equal(b, "/y");
	assert_string_equal(c, "3-z");
	free(a);
	free(b);
	free(c);
}

static void test_mkdirs(void **state)
{
	char *deep = scratch_path(state, "a//b/c/"), *blocked = scratch_path(state, "a/file/x");

	for (int i = 0; i < 2; i++)
		assert_int_equal(xfp_mkdirs(deep, &err), XFP_OK);
	assert_true(scratch_has(state, "a/b/c"));
	assert_int_equal(xfp_sync_folder(deep, &err), XFP_OK);
	assert_int_equal(xfp_mkdirs("/", &err), XFP_OK);
	scratch_write(state, "a/file", "", 0);
	expect(xfp_mkdirs(blocked, &err), XFP_FAILED, "a/file");
	expect(xfp_sync_folder(blocked, &err), XFP_FAILED, blocked);
	free(deep);
	free(blocked);
}

static void test_removes(void **state)
{
	char *path = scratch_path(state, "a");

	scratch_write(state, "a", "", 0);
	assert_int_equal(xfp_remove_file(path, &err), XFP_OK);
	assert_false(scratch_has(state, "a"));
	assert_int_equal(xfp_remove_file(path, &err), XFP_OK); /* another process was faster */
	scratch_mkdir(state, "a");
	expect(xfp_remove_file(path, &err), XFP_FAILED, "/a: cannot remove: ");
	free(path);
}

/* ---- pending files ------------------------------------------------------------------------------ */

static void test_publishes(void **state)
{
	char *path = scratch_path(state, "final name"), *text;
	struct xfp_pending a, b;
	struct stat st;
	mode_t mask = umask(027);
	size_t size;

	scratch_write(state, "final name", "old", 3);
	assert_int_equal(xfp_pending_open(path, &a, &err), XFP_OK);
	assert_int_equal(xfp_pending_open(path, &b, &err), XFP_OK);
	umask(mask);
	assert_string_not_equal(a.path, b.path);
	assert_int_equal(strrchr(a.path, '/')[1], '.');
	assert_string_equal(a.path + strlen(a.path) - 4, ".tmp");
	assert_int_equal(fcntl(a.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(xfp_write(a.fd, "new", 3, a.path, &err), XFP_OK);
	assert_int_equal(xfp_slurp(path, 9, &text, &size, &err), XFP_OK);
	assert_string_equal(text, "old");
	free(text);
	assert_int_equal(xfp_pending_publish(&a, true, &err), XFP_OK);
	xfp_pending_discard(&a);
	xfp_pending_discard(&b);
	xfp_pending_discard(&b);
	assert_int_equal(xfp_slurp(path, 9, &text, &size, &err), XFP_OK);
	assert_string_equal(text, "new");
	free(text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(entries(*state), 1);
	free(path);
}

static void test_discards_a_zeroed_one(void **state)
{
	struct xfp_pending pending = { 0 };

	(void)state;
	xfp_pending_discard(&pending);
	assert_true(fcntl(0, F_GETFD) >= 0 || errno == EBADF);
}

/* Like /dev/stdout if standard output is a file. */
static void test_link_to_standard_error(void **state)
{
	char *file = scratch_path(state, "file"), *link = scratch_path(state, "link");
	int kept = dup(STDERR_FILENO), fd = open(file, O_RDWR | O_CREAT, 0600);
	struct xfp_pending pending;
	enum xfp_status status;

	assert_int_equal(symlink("file", link), 0);
	dup2(fd, STDERR_FILENO);
	status = xfp_pending_open(link, &pending, &err);
	dup2(kept, STDERR_FILENO);
	expect(status, XFP_FAILED, "is standard output or error");
	assert_int_equal(xfp_pending_open(link, &pending, &err), XFP_OK);
	xfp_pending_discard(&pending);
	close(fd);
	close(kept);
	free(file);
	free(link);
}

static void test_failure_leaves_nothing(void **state)
{
	char *path = scratch_path(state, "taken"), *nowhere = scratch_path(state, "no/where");
	struct xfp_pending pending;

	assert_int_equal(xfp_pending_open(path, &pending, &err), XFP_OK);
	scratch_mkdir(state, "taken");
	expect(xfp_pending_publish(&pending, false, &err), XFP_FAILED, path);
	assert_null(pending.path);
	expect(xfp_pending_open(nowhere, &pending, &err), XFP_FAILED, nowhere);
	assert_null(pending.path);
	expect(xfp_pending_open("folder/", &pending, &err), XFP_FAILED, "is a folder");
	expect(xfp_pending_open(path, &pending, &err), XFP_FAILED, "is a folder");
	expect(xfp_write_file(nowhere, "x", 1, false, &err), XFP_FAILED, nowhere);
	assert_int_equal(entries(*state), 1);
	free(path);
	free(nowhere);
}

/* As on a disk that fills up in the middle: the last write fails, and the old file stays. */
static void test_write_file_keeps_the_old(void **state)
{
	char *path = scratch_path(state, "a"), *text, data[4096] = "new";
	struct rlimit limit, small;
	enum xfp_status status;
	size_t size;

	scratch_write(state, "a", "old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 1000;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	status = xfp_write_file(path, data, sizeof data, true, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, SIG_DFL);
	expect(status, XFP_FAILED, path);
	assert_int_equal(xfp_slurp(path, 9, &text, &size, &err), XFP_OK);
	assert_string_equal(text, "old");
	assert_int_equal(entries(*state), 1);
	free(text);
	free(path);
}

static void test_longest_name(void **state)
{
	char name[256], *path;

	memset(name, 'n', 255);
	name[255] = '\0';
	path = scratch_path(state, name);
	assert_int_equal(xfp_write_file(path, "x", 1, false, &err), XFP_OK);
	assert_true(scratch_has(state, name));
	free(path);
}

/* Leave a pending file behind, as a killed process does. */
static void leave_debris(void **state, const char *name)
{
	char *path = scratch_path(state, name);
	struct xfp_pending pending;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(xfp_pending_open(path, &pending, NULL));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	free(path);
}

static void set_age(void **state, const char *name, time_t seconds)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - seconds }, { .tv_sec = time(NULL) - seconds } };
	char *path = scratch_path(state, name);

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	free(path);
}

static void test_sweeps_debris_only(void **state)
{
	static const char *const kept[] = {
		".foreign.123-00000001-0.tmp", "a.999-00000001-0.tmp", ".hidden.tmp",          ".a.12x-00000001-0.tmp",
		".a.12-0000001-0.tmp",         ".a.12-00000001-.tmp",  ".a.12-00000001-0.tmp2"
	};
	char *path = scratch_path(state, "mine");
	struct xfp_pending mine;

	leave_debris(state, "debris.h5");
	leave_debris(state, "name with.dots and-0.tmp");
	assert_int_equal(entries(*state), 2);
	assert_int_equal(xfp_pending_open(path, &mine, &err), XFP_OK);
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		scratch_write(state, kept[i], "", 0);
		/* All are old enough, but only the first has the form. */
		set_age(state, kept[i], i ? 30 * 24 * 3600 : 23 * 3600);
	}
	scratch_write(state, ".foreign.124-00000001-7.tmp", "", 0);
	set_age(state, ".foreign.124-00000001-7.tmp", 25 * 3600);
	xfp_sweep_pending(*state);
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		assert_true(scratch_has(state, kept[i]));
	assert_int_equal(entries(*state), 1 + sizeof kept / sizeof *kept);
	assert_int_equal(xfp_pending_publish(&mine, false, &err), XFP_OK);
	assert_true(scratch_has(state, "mine"));
	xfp_sweep_pending("/no/such/folder");
	free(path);
}

static void test_identity(void **state)
{
	struct xfp_identity a, b, zero = { 0 };
	char *path = scratch_path(state, "a");
	struct stat st;

	scratch_write(state, "a", "123", 3);
	assert_int_equal(stat(path, &st), 0);
	a = b = xfp_identity_of(&st);
	assert_int_equal(a.size, 3);
	assert_int_equal(a.inode, st.st_ino);
	assert_int_equal(a.mtime_ns / 1000000000, st.st_mtim.tv_sec);
	assert_true(xfp_identity_equal(&a, &b));
	assert_false(xfp_identity_equal(&a, &zero));
	b.ctime_ns++;
	assert_false(xfp_identity_equal(&a, &b));
	free(path);
}

/* ---- printable ---------------------------------------------------------------------------------- */

static void test_printable(void **state)
{
	char name[1024];
	struct xfp_printable cut;

	(void)state;
	assert_string_equal(xfp_printable("model.layers.0").text, "model.layers.0");
	assert_string_equal(xfp_printable("").text, "");
	for (int byte = 1; byte < 0x20; byte++) {
		char one[2] = { (char)byte, '\0' }, shown[8];

		snprintf(shown, sizeof shown, "\\x%02x", (unsigned)byte);
		assert_string_equal(xfp_printable(one).text, shown);
	}
	assert_string_equal(xfp_printable(" ~").text, " ~");
	assert_string_equal(xfp_printable("a\nb\x1b[31m\x7f\\").text, "a\\x0ab\\x1b[31m\\x7f\\\\");
	assert_string_equal(xfp_printable("\xc3\xbc \xe6\xa8\xa1 \xc2\x9b").text, "\xc3\xbc \xe6\xa8\xa1 \\xc2\\x9b");
	/* Invalid UTF-8: a C1 control as interpreted by an 8-bit terminal, a truncated character. */
	assert_string_equal(xfp_printable("\x9bx\xe6\xa8").text, "\\x9bx\\xe6\\xa8");
	assert_string_equal(xfp_printable("\xc2\x80\xc2\x9f\xc2\xa0").text, "\\xc2\\x80\\xc2\\x9f\xc2\xa0");
	/* Cut at any length: the result ends properly, and never inside a character. */
	for (size_t lead = 0; lead < 4; lead++) {
		memset(name, 'x', lead);
		for (size_t i = lead; i + 3 < sizeof name; i += 3)
			memcpy(name + i, "\xe6\xa8\xa1", 4);
		cut = xfp_printable(name);
		assert_in_range(strlen(cut.text), 250, 255);
		assert_string_equal(cut.text + strlen(cut.text) - 3, "...");
		assert_memory_equal(cut.text + strlen(cut.text) - 6, "\xe6\xa8\xa1", 3);
	}
	memset(name, 'x', 255);
	name[255] = '\0';
	assert_int_equal(strlen(xfp_printable(name).text), 255);
	assert_string_equal(xfp_printable(name).text, name);
}

static void escaped(const char *text, size_t capacity, const char *expected)
{
	char *message = calloc(1, capacity); /* of exactly this size, for sanitizers */

	assert_non_null(message);
	memcpy(message, text, strlen(text) + 1);
	xfp_escape_message(message, capacity);
	assert_string_equal(message, expected);
	xfp_escape_message(message, capacity);
	assert_string_equal(message, expected);
	free(message);
}

static void test_escapes_a_message(void **state)
{
	(void)state;
	escaped("", 1, "");
	escaped("a\\b \xc3\xbc", 6 + 1, "a\\b \xc3\xbc");
	escaped("a\x1b]0;x\x07 \xc2\x9b\n\x7f\x9b", 64, "a\\x1b]0;x\\x07 \\xc2\\x9b\\x0a\\x7f\\x9b");
	/* Text that does not fit is cut, but never inside an escape. */
	escaped("ab\x1b", 7, "ab\\x1b");
	escaped("ab\x1b", 6, "ab");
	escaped("ab\x1b"
		"cdefgh",
		11, "ab\\x1bcdef");
	escaped("ab\x1b"
		"c\x1b"
		"d",
		11, "ab\\x1bc");
	escaped("ab\xc2\x9b", 10, "ab");
}

static void test_errors_are_printable(void **state)
{
	struct xfp_error err;

	(void)state;
	xfp_fail(&err, XFP_BAD_INPUT, "config.json: near '%s'", "\x1b]0;x\x07\xc2\x9b");
	assert_string_equal(err.text, "config.json: near '\\x1b]0;x\\x07\\xc2\\x9b'");
	xfp_context(&err, XFP_BAD_INPUT, "m\x7f");
	assert_string_equal(err.text, "m\\x7f: config.json: near '\\x1b]0;x\\x07\\xc2\\x9b'");
	xfp_fail_errno(&err, ENOENT, "m\x9b");
	assert_string_equal(err.text, "m\\x9b: No such file or directory");
}

PROGRAM("test_file")
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_reads_exactly),
		scratch_test(test_writes_where_asked),
		cmocka_unit_test(test_full_disk),
		scratch_test(test_slurp),
		cmocka_unit_test(test_paths),
		scratch_test(test_mkdirs),
		scratch_test(test_removes),
		scratch_test(test_publishes),
		cmocka_unit_test(test_discards_a_zeroed_one),
		scratch_test(test_link_to_standard_error),
		scratch_test(test_failure_leaves_nothing),
		scratch_test(test_write_file_keeps_the_old),
		scratch_test(test_longest_name),
		scratch_test(test_sweeps_debris_only),
		scratch_test(test_identity),
		cmocka_unit_test(test_printable),
		cmocka_unit_test(test_escapes_a_message),
		cmocka_unit_test(test_errors_are_printable),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
