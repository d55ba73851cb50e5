/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleaned paths: shorter, and naming the same file.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/system/path.h"

static char folder[] = "/tmp/xfp-path-XXXXXX";

static int make_folders(void **state)
{
	(void)state;
	return !mkdtemp(folder) || chdir(folder) || mkdir("real", 0777) || mkdir("real/in", 0777) ||
	       mkdir("-real", 0777) || symlink("real/in", "link");
}

static int remove_folders(void **state)
{
	(void)state;
	return unlink("link") || rmdir("-real") || rmdir("real/in") || rmdir("real") || chdir("/") || rmdir(folder);
}

static void paths_are_cleaned(void **state)
{
	static const struct {
		const char *path, *clean;
	} cases[] = {
		{ "", "" },
		{ "/", "/" },
		{ "///", "/" },
		{ ".", "." },
		{ "./", "." },
		{ "./.", "." },
		{ "a", "a" },
		{ "./a", "a" },
		{ ".//a", "a" },
		{ "a/", "a" },
		{ "a//b///c/", "a/b/c" },
		{ "/a/./b/.", "/a/b" },
		{ "..", ".." },
		{ "../..//a", "../../a" },
		{ "/..", "/" },
		{ "/../a", "/a" },
		{ "real/..", "." },
		{ "real/../real/in", "real/in" },
		{ "real/in/../..", "." },
		{ "real/in/../../..", ".." },
		{ "link/../real", "link/../real" }, /* .. is relative to the link's target */
		{ "link/./..//real/", "link/../real" },
		{ "none/../real", "none/../real" }, /* cannot be opened, and must remain so */
		{ ".hidden/..x/...", ".hidden/..x/..." },
		{ "-", "-" },
		{ "./-", "./-" }, /* not standard input */
		{ ".//-x", "./-x" },
		{ "real/../-x", "./-x" },
		{ "-real/..", "." },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *path = strdup(cases[i].path);

		xfp_path_clean(path);
		assert_string_equal(path, cases[i].clean);
		xfp_path_clean(path);
		assert_string_equal(path, cases[i].clean);
		free(path);
	}
}

PROGRAM("test_path")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_cleaned),
	};

	return cmocka_run_group_tests_name("path", tests, make_folders, remove_folders);
}
