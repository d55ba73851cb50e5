/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/temporary.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/file.h"

#define MAX_OPEN 16

char *xfp_temporary_folder(struct xfp_error *err)
{
	const char *parent = getenv("TMPDIR");
	char *path = xfp_formatted("%s/xfp-XXXXXX", parent && *parent ? parent : "/tmp");

	if (path && mkdtemp(path))
		return path;
	xfp_fail_errno(err, errno, "%s: cannot create a temporary folder", path ? path : "xfp");
	free(path);
	return NULL;
}

/* Continue after a failure, so that everything else is removed. */
static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	(void)!remove(path);
	return 0;
}

void xfp_temporary_remove(char *path)
{
	if (path)
		nftw(path, remove_one, MAX_OPEN, FTW_DEPTH | FTW_PHYS);
	free(path);
}
