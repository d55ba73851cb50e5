/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/bundle_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- files ------------------------------------------------------------------------------------- */

uint8_t *fixture_read(const char *path, size_t *size)
{
	char *text;

	assert_int_equal(xfp_slurp(path, SIZE_MAX, &text, size, NULL), XFP_OK);
	return (uint8_t *)text;
}

void fixture_write(const char *path, const void *data, size_t size)
{
	assert_int_equal(xfp_write_file(path, data, size, false, NULL), XFP_OK);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void fixture_remove(const char *folder)
{
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- bundles and commands --------------------------------------------------------------------- */

enum xfp_status fixture_write_bundle(struct fixture *f, struct xfp_error *err)
{
	char sha256[65];
	struct stat st;

	/* Record the checkpoint's current identity as the inspected one, whatever a test did to it. */
	if (!stat(f->file.path, &st))
		f->file.identity = xfp_identity_of(&st);
	return xfp_bundle_write(f->out, &f->input, sha256, err);
}

void fixture_make_bundle(struct fixture *f, int small)
{
	struct xfp_error err;

	fixture_make(f, small);
	if (fixture_write_bundle(f, &err))
		fail_msg("%s", err.text);
}

struct xfp_bundle *fixture_open(const char *path)
{
	struct xfp_bundle *bundle;
	struct xfp_error err;

	if (xfp_bundle_open(path, &bundle, &err))
		fail_msg("%s", err.text);
	return bundle;
}

enum xfp_status fixture_accept(const char *path, struct xfp_error *err)
{
	struct xfp_bundle *bundle;
	enum xfp_status status = xfp_bundle_open(path, &bundle, err);

	if (status) {
		assert_null(bundle);
		return status;
	}
	status = xfp_bundle_check(bundle, NULL, NULL, err);
	xfp_bundle_close(bundle);
	return status;
}

void fixture_result_free(struct result *result)
{
	free(result->out);
	free(result->err);
}

void fixture_run(struct fixture *f, struct result *result, int (*command)(int, char **), const char *const *words)
{
	char *argv[16] = { (char *)"xfp test" }, *out = xfp_path(f->folder, "stdout"),
	     *errors = xfp_path(f->folder, "stderr");
	int argc = 1, status;
	pid_t child;

	/* Copy the arguments: a command may modify them, like those of main. */
	for (; words[argc - 1]; argc++)
		assert_non_null(argv[argc] = strdup(words[argc - 1]));
	fflush(NULL);
	child = fork();
	if (!child) {
		if (!freopen(out, "w", stdout) || !freopen(errors, "w", stderr))
			_exit(99);
		status = command(argc, argv);
		fflush(NULL);
		_exit(status); /* no leak check: threads of the parent, which hold memory, are not here */
	}
	assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
	fixture_result_free(result);
	result->status = WEXITSTATUS(status);
	result->out = (char *)fixture_read(out, NULL);
	result->err = (char *)fixture_read(errors, NULL);
	while (argc > 1)
		free(argv[--argc]);
	free(out);
	free(errors);
}
