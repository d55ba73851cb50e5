/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/new_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"

/* The length of the parent folder's part of a path; 0: the current folder. */
static int parent_length(const char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length && path[length - 1] != '/')
		length--;
	while (length > 1 && path[length - 1] == '/')
		length--;
	return (int)length;
}

/* The parent folder in a new string; NULL: out of memory. */
static char *parent_of(const char *path)
{
	int length = parent_length(path);

	return length ? strndup(path, (size_t)length) : strdup(".");
}

enum xfp_status xfp_created_add(struct xfp_created *created, char *path, struct xfp_error *err)
{
	char **grown = path ? realloc(created->path, (created->count + 1) * sizeof *grown) : NULL;

	if (!grown) {
		free(path);
		return xfp_no_memory(err);
	}
	created->path = grown;
	grown[created->count++] = path;
	return XFP_OK;
}

enum xfp_status xfp_created_sync(const struct xfp_created *created, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char *last = NULL;

	for (size_t i = 0; !status && i < created->count; i++) {
		char *parent = parent_of(created->path[i]);

		if (!parent)
			status = xfp_no_memory(err);
		else if (!last || strcmp(parent, last)) /* files of one folder are mostly consecutive */
			status = xfp_sync_folder(parent, err);
		free(last);
		last = parent;
	}
	free(last);
	return status;
}

void xfp_created_undo(struct xfp_created *created)
{
	while (created->count) {
		char *path = created->path[--created->count];

		(void)!remove(path);
		free(path);
	}
}

void xfp_created_free(struct xfp_created *created)
{
	for (size_t i = 0; i < created->count; i++)
		free(created->path[i]);
	free(created->path);
	*created = (struct xfp_created){ 0 };
}

static enum xfp_status no_folder(const char *path, int errnum, struct xfp_error *err)
{
	int length = parent_length(path);

	if (errnum == ENOENT)
		return xfp_fail(err, XFP_FAILED, "%s: its parent folder %.*s does not exist; create that first", path,
				length, path);
	return xfp_fail_errno(err, errnum, "%s: cannot create a folder in %.*s", path, length ? length : 1,
			      length ? path : ".");
}

enum xfp_status xfp_new_folder_check(const char *path, struct xfp_error *err)
{
	struct dirent *entry;
	bool empty = true;
	DIR *folder = opendir(path);

	if (!folder && errno == ENOTDIR)
		return xfp_fail(err, XFP_USAGE, "%s: is a file; name a new folder", path);
	if (!folder && errno != ENOENT)
		return xfp_fail_errno(err, errno, "%s", path);
	if (!folder) {
		char *parent = parent_of(path);
		int errnum = parent && access(parent, W_OK | X_OK) ? errno : 0;

		free(parent);
		return errnum ? no_folder(path, errnum, err) : XFP_OK;
	}
	while (empty && (entry = readdir(folder)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(folder);
	return empty ? XFP_OK : xfp_fail(err, XFP_USAGE, "%s: not empty; name a new folder", path);
}

enum xfp_status xfp_new_folder_make(struct xfp_created *created, const char *path, struct xfp_error *err)
{
	if (!mkdir(path, 0777))
		return xfp_created_add(created, strdup(path), err);
	return errno == EEXIST ? XFP_OK : no_folder(path, errno, err);
}
