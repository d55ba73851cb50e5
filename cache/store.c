/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARTIFACTS XFP_STORE_ARTIFACTS
#define SUFFIX XFP_STORE_SUFFIX

static const char cachedir_tag[] =
	"Signature: 8a477f597d28d172789f06886806bc55\n"
	"# This folder is a cache of xfp: everything in it can be made again from the checkpoints.\n"
	"# See https://bford.info/cachedir/ for what this file means.\n";

/* ---- open -------------------------------------------------------------------------------------- */

static bool is_writable(const char *path)
{
	return !faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS);
}

/* Pending files do not count: another xfp may be writing the tag, or was killed while writing it. */
static bool is_empty(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool empty = true;

	if (!dir)
		return false;
	while (empty && (entry = readdir(dir)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			xfp_pending_is_name(entry->d_name);
	closedir(dir);
	return empty;
}

/* First use of CACHE: create its folders, and the tag if the folder contains nothing else. */
static enum xfp_status make_cache(const char *folder, const char *artifacts, struct xfp_error *err)
{
	enum xfp_status status;
	char *tag;

	if ((status = xfp_mkdirs(folder, err)))
		return status;
	if (is_empty(folder)) {
		if (!(tag = xfp_path(folder, "CACHEDIR.TAG")))
			return xfp_no_memory_for(err, folder);
		status = xfp_write_file(tag, cachedir_tag, sizeof cachedir_tag - 1, false, err);
		free(tag);
		if (status)
			return status;
	}
	return xfp_mkdirs(artifacts, err);
}

enum xfp_status xfp_store_open(const char *folder, struct xfp_store *store, struct xfp_error *err)
{
	struct xfp_store opened = { .folder = strdup(folder) };
	char *artifacts = xfp_path(folder, ARTIFACTS);
	enum xfp_status status = XFP_OK;

	if (!opened.folder || !artifacts)
		status = xfp_no_memory_for(err, folder);
	else if (!access(folder, F_OK) && !is_writable(folder))
		opened.read_only = true;
	else if (access(artifacts, F_OK))
		status = make_cache(folder, artifacts, err);
	else
		opened.read_only = !is_writable(artifacts);
	free(artifacts);
	if (status)
		xfp_store_close(&opened);
	else
		*store = opened;
	return status;
}

enum xfp_status xfp_store_open_readonly(const char *folder, struct xfp_store *store, struct xfp_error *err)
{
	char *artifacts = xfp_path(folder, ARTIFACTS);
	enum xfp_status status = XFP_OK;
	struct stat st;

	if (!artifacts)
		return xfp_no_memory_for(err, folder);
	if (stat(folder, &st))
		status = errno == ENOENT ? xfp_fail(err, XFP_FAILED, "%s: no such cache; name one with --cache", folder)
					 : xfp_fail_errno(err, errno, "%s: cannot open this cache", folder);
	else if (!S_ISDIR(st.st_mode) || stat(artifacts, &st) || !S_ISDIR(st.st_mode))
		status = xfp_fail(err, XFP_FAILED, "%s: is not an xfp cache; name one with --cache", folder);
	else
		status = xfp_store_open(folder, store, err);
	free(artifacts);
	return status;
}

void xfp_store_close(struct xfp_store *store)
{
	free(store->folder);
	*store = (struct xfp_store){ 0 };
}

/* ---- artifacts --------------------------------------------------------------------------------- */

char *xfp_store_path(const struct xfp_store *store, const char *key)
{
	return xfp_formatted("%s/" ARTIFACTS "/%.2s/%s" SUFFIX, store->folder, key, key);
}

bool xfp_store_has(const struct xfp_store *store, const char *key)
{
	char *path = xfp_store_path(store, key);
	bool absent = path && access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR);

	free(path);
	return !absent;
}

enum xfp_status xfp_store_denied(const struct xfp_store *store, const char *path, int errnum, struct xfp_error *err)
{
	if (errnum != EACCES)
		return xfp_fail_errno(err, errnum, "%s: cannot open", path);
	return xfp_fail(err, XFP_FAILED,
			"%s: %s; users who share a cache need chmod -R g+rwXs %s, and umask 002 when they convert",
			path, strerror(errnum), store->folder);
}

enum xfp_status xfp_store_begin(const struct xfp_store *store, const char *key, struct xfp_pending *pending,
				struct xfp_error *err)
{
	char *path = NULL, *folder = NULL;
	enum xfp_status status;

	if (store->read_only && access(store->folder, W_OK) && errno == EACCES)
		return xfp_fail(err, XFP_FAILED,
				"%s: the cache lacks artifact %s and cannot be written by this user; choose another "
				"with --cache; users who share one need chmod -R g+rwXs %s, and umask 002 when they "
				"convert",
				store->folder, key, store->folder);
	if (store->read_only)
		return xfp_fail(err, XFP_FAILED,
				"%s: the cache is read-only and lacks artifact %s; choose one that can "
				"be written with --cache",
				store->folder, key);
	path = xfp_store_path(store, key);
	folder = xfp_formatted("%s/" ARTIFACTS "/%.2s", store->folder, key);
	if (!path || !folder)
		status = xfp_no_memory_for(err, store->folder);
	else if (!(status = xfp_mkdirs(folder, err)) && (status = xfp_pending_open(path, pending, err)) &&
		 access(folder, W_OK) && errno == EACCES)
		status = xfp_store_denied(store, folder, EACCES, err);
	free(folder);
	free(path);
	return status;
}

void xfp_store_remove(const struct xfp_store *store, const char *key)
{
	char *path = store->read_only ? NULL : xfp_store_path(store, key);

	if (path)
		unlink(path);
	free(path);
}
