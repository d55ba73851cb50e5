/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARTIFACTS "artifacts"
#define SUFFIX ".h5"
#define KEY_DIGITS 32

static const char cachedir_tag[] =
	"Signature: 8a477f597d28d172789f06886806bc55\n"
	"# This folder is a cache of xfp: everything in it can be made again from the checkpoints.\n"
	"# See https://bford.info/cachedir/ for what this file means.\n";

/* ---- open -------------------------------------------------------------------------------------- */

static bool is_writable(const char *path)
{
	return !faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS);
}

static bool is_empty(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool empty = true;

	if (!dir)
		return false;
	while (empty && (entry = readdir(dir)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(dir);
	return empty;
}

/* First use of CACHE: its folders, and the tag if the folder is ours alone. */
static enum xfp_status make_cache(const char *folder, const char *artifacts, struct xfp_error *err)
{
	enum xfp_status status;
	char *tag;

	if ((status = xfp_mkdirs(folder, err)))
		return status;
	if (is_empty(folder)) {
		if (!(tag = xfp_path(folder, "CACHEDIR.TAG")))
			return xfp_fail(err, XFP_FAILED, "%s: out of memory", folder);
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
		status = xfp_fail(err, XFP_FAILED, "%s: out of memory", folder);
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

void xfp_store_close(struct xfp_store *store)
{
	free(store->folder);
	*store = (struct xfp_store){ 0 };
}

/* ---- artifacts --------------------------------------------------------------------------------- */

char *xfp_store_path(const struct xfp_store *store, const char *key)
{
	return xfp_format("%s/" ARTIFACTS "/%.2s/%s" SUFFIX, store->folder, key, key);
}

bool xfp_store_has(const struct xfp_store *store, const char *key)
{
	char *path = xfp_store_path(store, key);
	bool has = path && !access(path, F_OK);

	free(path);
	return has;
}

enum xfp_status xfp_store_begin(const struct xfp_store *store, const char *key, struct xfp_pending *pending,
				struct xfp_error *err)
{
	char *path = NULL, *folder = NULL;
	enum xfp_status status;

	if (store->read_only)
		return xfp_fail(err, XFP_FAILED,
				"%s: the cache is read-only and lacks artifact %s; choose one that can "
				"be written with --cache",
				store->folder, key);
	path = xfp_store_path(store, key);
	folder = xfp_format("%s/" ARTIFACTS "/%.2s", store->folder, key);
	if (!path || !folder)
		status = xfp_fail(err, XFP_FAILED, "%s: out of memory", store->folder);
	else if (!(status = xfp_mkdirs(folder, err)))
		status = xfp_pending_open(path, pending, err);
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

/* ---- walking ----------------------------------------------------------------------------------- */

/* The 256 folders need no listing: their names are known, and in order. */
static char *folder_number(const struct xfp_store *store, unsigned number)
{
	return xfp_format("%s/" ARTIFACTS "/%02x", store->folder, number);
}

void xfp_store_sweep(const struct xfp_store *store)
{
	for (unsigned number = 0; number < 256 && !store->read_only; number++) {
		char *folder = folder_number(store, number);

		if (folder && !access(folder, F_OK))
			xfp_sweep_pending(folder);
		free(folder);
	}
}

struct keys {
	char (*key)[KEY_DIGITS + 1];
	size_t count, room;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Whether a file's name is that of an artifact in folder `number`; anything else is not ours. */
static bool is_artifact(const char *name, unsigned number)
{
	static const char digits[] = "0123456789abcdef";

	return strlen(name) == KEY_DIGITS + sizeof SUFFIX - 1 && strspn(name, digits) == KEY_DIGITS &&
	       !strcmp(name + KEY_DIGITS, SUFFIX) && name[0] == digits[number >> 4] && name[1] == digits[number & 15];
}

/* The keys in one folder, ascending; none when there is no such folder. */
static enum xfp_status list_folder(const char *folder, unsigned number, struct keys *keys, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	keys->count = 0;
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? XFP_OK
							   : xfp_fail_errno(err, errno, "%s: cannot list", folder);
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		if (!is_artifact(entry->d_name, number))
			continue;
		if (keys->count == keys->room) {
			size_t room = keys->room ? keys->room * 2 : 64;
			void *grown = realloc(keys->key, room * sizeof *keys->key);

			if (!grown) {
				status = xfp_fail(err, XFP_FAILED, "%s: out of memory", folder);
				goto done;
			}
			keys->key = grown;
			keys->room = room;
		}
		memcpy(keys->key[keys->count], entry->d_name, KEY_DIGITS);
		keys->key[keys->count++][KEY_DIGITS] = 0;
	}
	if (errno)
		status = xfp_fail_errno(err, errno, "%s: cannot list", folder);
	else if (keys->count)
		qsort(keys->key, keys->count, sizeof *keys->key, by_text);
done:
	closedir(dir);
	return status;
}

enum xfp_status xfp_store_each(const struct xfp_store *store,
			       enum xfp_status (*each)(const char *key, const char *path, void *context,
						       struct xfp_error *err),
			       void *context, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct keys keys = { 0 };

	for (unsigned number = 0; !status && number < 256; number++) {
		char *folder = folder_number(store, number);

		if (folder)
			status = list_folder(folder, number, &keys, err);
		else
			status = xfp_fail(err, XFP_FAILED, "%s: out of memory", store->folder);
		for (size_t i = 0; !status && i < keys.count; i++) {
			char *path = xfp_store_path(store, keys.key[i]);

			if (path)
				status = each(keys.key[i], path, context, err);
			else
				status = xfp_fail(err, XFP_FAILED, "%s: out of memory", store->folder);
			free(path);
		}
		free(folder);
	}
	free(keys.key);
	return status;
}
