/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command that resumes a conversion: a shell parses it to the original words.
 */
#include <stdio.h>
#include <sys/wait.h>

#include "conversion/resume.h"
#include "stages/inspect/family_choose.h"
#include "stages/settings/data.h"
#include "tests/unit/scratch.h"

#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })

static void expect_command(char *const *inherited, char *const *argv, const char *command)
{
	struct xfp_resume resume = xfp_resume_find(inherited, argv);
	char here[4096];

	assert_non_null(resume.command);
	assert_string_equal(resume.command, command);
	assert_false(resume.other_folder);
	assert_string_equal(resume.folder, getcwd(here, sizeof here));
	xfp_resume_free(&resume);
	assert_null(resume.command);
	assert_null(resume.folder);
}

static void words_are_quoted_where_they_must_be(void **state)
{
	(void)state;
	unsetenv("XFP_RUN_BY");
	unsetenv(XFP_FAMILY_PATH);
	expect_command(NULL, WORDS("xfp convert", "m", "-o", "out.xfp"), "xfp convert m -o out.xfp");
	/* An empty argument is an argument. */
	expect_command(NULL, WORDS("xfp convert", "", "-o", ""), "xfp convert '' -o ''");
	expect_command(NULL, WORDS("xfp convert", "a b", "it's", "$x", "*", "~", "a\nb", "'"),
		       "xfp convert 'a b' 'it'\\''s' '$x' '*' '~' 'a\nb' ''\\'''");
	expect_command(NULL, WORDS("xfp convert", "-_+=./,:@%09azAZ", "\xc3\xa9"),
		       "xfp convert -_+=./,:@%09azAZ '\xc3\xa9'");
	/* Settings of the environment come first, because the last of two options takes effect. */
	expect_command(WORDS("--group-size=32", "--cache=a b"), WORDS("xfp convert", "m", "--group-size=64"),
		       "xfp convert --group-size=32 '--cache=a b' m --group-size=64");
	setenv(XFP_FAMILY_PATH, "/my families", 1);
	expect_command(NULL, WORDS("xfp convert", "m"), XFP_FAMILY_PATH "='/my families' xfp convert m");
	setenv(XFP_FAMILY_PATH, "", 1);
	expect_command(NULL, WORDS("xfp convert", "m"), "xfp convert m");
	unsetenv(XFP_FAMILY_PATH);
}

static void the_folder_is_named_where_it_is_another(void **state)
{
	char *text;

	(void)state;
	text = xfp_resume_text("make -j2", "/a b/it's", true);
	assert_string_equal(text, "cd '/a b/it'\\''s' && make -j2");
	free(text);
	text = xfp_resume_text("make", "/a\x1b[2J\xc2\x9b\x9b'\\", true);
	assert_string_equal(text, "cd $'/a\\x1b[2J\\xc2\\x9b\\x9b\\'\\\\' && make");
	free(text);
	text = xfp_resume_text("make -j2", "/a", false);
	assert_string_equal(text, "make -j2");
	free(text);
	text = xfp_resume_text("make -j2", NULL, true);
	assert_string_equal(text, "make -j2");
	free(text);
}

/* The command for a process with these words, if make started us. */
static void expect_make(char *const *words, const char *command, bool other_folder)
{
	struct xfp_resume resume;
	char *text = NULL, *line = NULL;
	bool there = false;
	int pipes[2];
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		dup2(pipes[0], 0);
		close(pipes[1]);
		execv("/bin/sh", words);
		_exit(127);
	}
	close(pipes[0]);
	text = xfp_formatted("/proc/%ld/cmdline", (long)child);
	for (int i = 0; i < 2000 && !there; i++) { /* until it has executed the shell */
		there = !xfp_slurp(text, 4096, &line, NULL, NULL) && !strcmp(line, words[0]);
		free(line);
		line = NULL;
		usleep(there ? 0 : 5000);
	}
	free(text);
	assert_true(there);
	text = xfp_formatted("%ld", (long)child);
	setenv("XFP_RUN_BY", "make", 1);
	setenv("XFP_RUN_PID", text, 1);
	resume = xfp_resume_find(NULL, WORDS("xfp convert", "no matter"));
	unsetenv("XFP_RUN_BY");
	unsetenv("XFP_RUN_PID");
	free(text);
	close(pipes[1]);
	waitpid(child, NULL, 0);
	assert_non_null(resume.command);
	assert_string_equal(resume.command, command);
	assert_int_equal(resume.other_folder, other_folder);
	xfp_resume_free(&resume);
}

static void make_is_told_as_it_was_started(void **state)
{
	(void)state;
	if (access("/proc/self/cmdline", R_OK)) {
		print_message("# there is no /proc/PID/cmdline\n");
		skip();
	}
	expect_make(WORDS("make", "-c", "read x", "-f", "a b.mk", "", "FLOOR=.99"),
		    "make -c 'read x' -f 'a b.mk' '' FLOOR=.99", false);
	/* -C in every form: we are already in that folder. */
	expect_make(WORDS("make", "-c", "read x", "-C", "there", "all"), "make -c 'read x' all", true);
	expect_make(WORDS("make", "-c", "read x", "-Cthere", "all"), "make -c 'read x' all", true);
	expect_make(WORDS("make", "-c", "read x", "-ksC", "there", "all"), "make -c 'read x' -ks all", true);
	expect_make(WORDS("make", "-c", "read x", "--directory", "there", "all"), "make -c 'read x' all", true);
	expect_make(WORDS("make", "-c", "read x", "--directory=there", "all"), "make -c 'read x' all", true);
	expect_make(WORDS("make", "-c", "read x", "--directories", "-fC", "all"),
		    "make -c 'read x' --directories -fC all", false);
}

/* Unknown parts stay unknown. */
static void what_is_not_known(void **state)
{
	struct xfp_resume resume;

	(void)state;
	setenv("XFP_RUN_BY", "make", 1);
	unsetenv("XFP_RUN_PID");
	resume = xfp_resume_find(NULL, WORDS("xfp convert"));
	assert_null(resume.command);
	xfp_resume_free(&resume);
	setenv("XFP_RUN_PID", "999999999", 1);
	resume = xfp_resume_find(NULL, WORDS("xfp convert"));
	assert_null(resume.command);
	xfp_resume_free(&resume);
	unsetenv("XFP_RUN_BY");
	unsetenv("XFP_RUN_PID");
}

PROGRAM("test_resume")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_quoted_where_they_must_be),
		cmocka_unit_test(the_folder_is_named_where_it_is_another),
		cmocka_unit_test(make_is_told_as_it_was_started),
		cmocka_unit_test(what_is_not_known),
	};

	return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
