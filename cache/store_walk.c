/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/steps.h"
#include "cache/store.h"

#define KEY_DIGITS 32
#define MANIFEST XFP_STORE_MANIFEST

/* ---- names ------------------------------------------------------------------------------------- */

struct names {
	char **name;
	size_t count, capacity;
};

static void free_names(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
	*names = (struct names){ 0 };
}

static bool add_name(struct names *names, const char *name)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? names->capacity * 2 : 64;
		char **grown = realloc(names->name, capacity * sizeof *grown);

		if (!grown)
			return false;
		names->name = grown;
		names->capacity = capacity;
	}
	if (!(names->name[names->count] = strdup(name)))
		return false;
	names->count++;
	return true;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* List a folder in ascending order; empty if the folder does not exist. The caller frees the list. */
static enum xfp_status list_folder(const char *folder, struct names *names, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? XFP_OK
							   : xfp_fail_errno(err, errno, "%s: cannot list", folder);
	for (errno = 0; !status && (entry = readdir(dir)); errno = 0)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !add_name(names, entry->d_name))
			status = xfp_no_memory_for(err, folder);
	if (!status && errno)
		status = xfp_fail_errno(err, errno, "%s: cannot list", folder);
	if (!status && names->count)
		qsort(names->name, names->count, sizeof *names->name, by_text);
	closedir(dir);
	return status;
}

static bool is_hex(const char *text, size_t digits)
{
	return strspn(text, "0123456789abcdef") >= digits;
}

/* Whether a file's name is that of an artifact in folder `number`; other files are not ours. */
static bool is_artifact(const char *name, unsigned number)
{
	static const char digits[] = "0123456789abcdef";

	return strlen(name) == KEY_DIGITS + sizeof XFP_STORE_SUFFIX - 1 && is_hex(name, KEY_DIGITS) &&
	       !strcmp(name + KEY_DIGITS, XFP_STORE_SUFFIX) && name[0] == digits[number >> 4] &&
	       name[1] == digits[number & 15];
}

/* "manifest.sqlite" and its journals are the current manifest; with ".old-N" appended, an old one. */
static enum xfp_store_entry_kind what_of_manifest(const char *name)
{
	static const char *const tails[] = { "", "-wal", "-shm", "-journal" };
	const char *tail = name + sizeof MANIFEST - 1;
	bool old = !strncmp(tail, ".old-", 5) && strspn(tail + 5, "0123456789");

	if (old)
		tail += 5 + strspn(tail + 5, "0123456789");
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
		if (!strcmp(tail, tails[i]))
			return old ? XFP_STORE_SUPERSEDED : XFP_STORE_OWN;
	return XFP_STORE_UNKNOWN;
}

/* The index of the manifest's journal exists while any process, including this one, has the manifest open. */
static bool is_transient(const char *name)
{
	return !strcmp(name, MANIFEST "-shm");
}

static enum xfp_store_entry_kind what_in_cache(const char *name)
{
	if (!strcmp(name, "CACHEDIR.TAG") || !strcmp(name, XFP_STORE_LOCK) || !strcmp(name, XFP_STORE_GUARD) ||
	    !strcmp(name, XFP_STEPS_FILE))
		return XFP_STORE_OWN;
	return strncmp(name, MANIFEST, sizeof MANIFEST - 1) ? XFP_STORE_UNKNOWN : what_of_manifest(name);
}

/* ---- artifacts --------------------------------------------------------------------------------- */

/* The names and the order of the 256 folders are known, so they need not be listed. */
static char *folder_number(const struct xfp_store *store, unsigned number)
{
	return xfp_formatted("%s/" XFP_STORE_ARTIFACTS "/%02x", store->folder, number);
}

void xfp_store_sweep(const struct xfp_store *store)
{
	if (!store->read_only)
		xfp_sweep_pending(store->folder);
	for (unsigned number = 0; number < 256 && !store->read_only; number++) {
		char *folder = folder_number(store, number);

		if (folder && !access(folder, F_OK))
			xfp_sweep_pending(folder);
		free(folder);
	}
}

static enum xfp_status each_of_folder(const char *folder, unsigned number,
				      enum xfp_status (*each)(const char *key, const char *path, void *context,
							      struct xfp_error *err),
				      void *context, struct xfp_error *err)
{
	struct names names = { 0 };
	enum xfp_status status = list_folder(folder, &names, err);

	for (size_t i = 0; !status && i < names.count; i++) {
		char key[KEY_DIGITS + 1] = "", *path;

		if (!is_artifact(names.name[i], number))
			continue;
		memcpy(key, names.name[i], KEY_DIGITS);
		path = xfp_path(folder, names.name[i]);
		status = path ? each(key, path, context, err) : xfp_no_memory_for(err, folder);
		free(path);
	}
	free_names(&names);
	return status;
}

enum xfp_status xfp_store_each(const struct xfp_store *store,
			       enum xfp_status (*each)(const char *key, const char *path, void *context,
						       struct xfp_error *err),
			       void *context, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (unsigned number = 0; !status && number < 256; number++) {
		char *folder = folder_number(store, number);

		status = folder ? each_of_folder(folder, number, each, context, err)
				: xfp_no_memory_for(err, store->folder);
		free(folder);
	}
	return status;
}

/* ---- everything -------------------------------------------------------------------------------- */

struct store_walk {
	enum xfp_status (*each)(const struct xfp_store_entry *entry, void *context, struct xfp_error *err);
	void *context;
};

static enum xfp_status show(const struct store_walk *walk, const char *folder, const char *name,
			    enum xfp_store_entry_kind what, struct xfp_error *err)
{
	struct xfp_store_entry entry = { .what = what };
	enum xfp_status status = XFP_OK;
	struct stat st;
	char *path = xfp_path(folder, name);

	if (!path)
		return xfp_no_memory_for(err, folder);
	entry.path = path;
	if (lstat(path, &st)) {
		/* Other processes may remove and rename files during the walk. */
		if (errno != ENOENT)
			status = xfp_fail_errno(err, errno, "%s: cannot stat", path);
		goto done;
	}
	entry.bytes = S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size;
	entry.modified = st.st_mtime;
	if (what == XFP_STORE_ARTIFACT)
		memcpy(entry.key, name, KEY_DIGITS);
	else if (what == XFP_STORE_UNKNOWN && xfp_pending_is_name(name))
		entry.what = xfp_pending_is_debris(name, &st) ? XFP_STORE_DEBRIS : XFP_STORE_PENDING;
	status = walk->each(&entry, walk->context, err);
done:
	free(path);
	return status;
}

/* Visit the artifacts, folder by folder. */
static enum xfp_status walk_artifacts(const struct xfp_store *store, const struct store_walk *walk,
				      struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (unsigned number = 0; !status && number < 256; number++) {
		char *folder = folder_number(store, number);
		struct names names = { 0 };

		status = folder ? list_folder(folder, &names, err) : xfp_no_memory_for(err, store->folder);
		for (size_t i = 0; !status && i < names.count; i++)
			status = show(walk, folder, names.name[i],
				      is_artifact(names.name[i], number) ? XFP_STORE_ARTIFACT : XFP_STORE_UNKNOWN, err);
		free_names(&names);
		free(folder);
	}
	return status;
}

/* Visit everything next to the folders of artifacts, and next to their parent folder. */
static enum xfp_status walk_rest(const char *folder, bool top, const struct store_walk *walk, struct xfp_error *err)
{
	struct names names = { 0 };
	enum xfp_status status = list_folder(folder, &names, err);

	for (size_t i = 0; !status && i < names.count; i++) {
		const char *name = names.name[i];

		if (top ? !strcmp(name, XFP_STORE_ARTIFACTS) : strlen(name) == 2 && is_hex(name, 2))
			continue;
		if (top && is_transient(name))
			continue;
		status = show(walk, folder, name, top ? what_in_cache(name) : XFP_STORE_UNKNOWN, err);
	}
	free_names(&names);
	return status;
}

enum xfp_status xfp_store_walk(const struct xfp_store *store,
			       enum xfp_status (*each)(const struct xfp_store_entry *entry, void *context,
						       struct xfp_error *err),
			       void *context, struct xfp_error *err)
{
	const struct store_walk walk = { each, context };
	char *artifacts = xfp_path(store->folder, XFP_STORE_ARTIFACTS);
	enum xfp_status status;

	if (!artifacts)
		return xfp_no_memory_for(err, store->folder);
	if (!(status = walk_artifacts(store, &walk, err)) && !(status = walk_rest(artifacts, false, &walk, err)))
		status = walk_rest(store->folder, true, &walk, err);
	free(artifacts);
	return status;
}
