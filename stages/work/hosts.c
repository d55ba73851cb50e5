/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/hosts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/system/filesystem.h"
#include "base/system/temporary.h"
#include "cache/steps.h"
#include "cache/store.h"

#define REMOVED_PREFIX ".hosts-" /* of folders that are being removed */

/* Write the tag of this host; false if it is the run's. */
static bool find_tag(char tag[XFP_HOST_TAG])
{
	const char *run = getenv(XFP_RUN_HOST);

	if (!run || !*run)
		return false;
	xfp_host_tag(tag);
	return strcmp(tag, run) != 0;
}

bool xfp_is_remote(void)
{
	char tag[XFP_HOST_TAG];

	return find_tag(tag);
}

char *xfp_host_folder(const char *work)
{
	char tag[XFP_HOST_TAG];

	return find_tag(tag) ? xfp_formatted("%s/" XFP_HOSTS_FOLDER "/%s", work, tag) : strdup(work);
}

bool xfp_host_folder_make(const char *work)
{
	char *parent = xfp_path(work, XFP_HOSTS_FOLDER), *folder = xfp_host_folder(work);
	struct stat st;
	bool made;

	/* Both may exist, or be created at the same time by another stage. */
	if (parent && folder && strcmp(folder, work) != 0) {
		mkdir(parent, 0777);
		mkdir(folder, 0777);
	}
	made = folder && !stat(folder, &st) && S_ISDIR(st.st_mode);
	free(parent);
	free(folder);
	return made;
}

/* ---- all hosts --------------------------------------------------------------------------------- */

static enum xfp_status add(struct xfp_host_folders *folders, char *path, struct xfp_error *err)
{
	char **grown = path ? realloc(folders->path, (folders->count + 1) * sizeof *grown) : NULL;

	if (!grown) {
		free(path);
		return xfp_no_memory(err);
	}
	folders->path = grown;
	folders->path[folders->count++] = path;
	return XFP_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum xfp_status xfp_host_folders_list(const char *work, struct xfp_host_folders *folders, struct xfp_error *err)
{
	char *parent = xfp_path(work, XFP_HOSTS_FOLDER);
	DIR *open_parent = parent ? opendir(parent) : NULL;
	enum xfp_status status;
	struct dirent *entry;

	*folders = (struct xfp_host_folders){ 0 };
	status = parent ? add(folders, strdup(work), err) : xfp_no_memory(err);
	while (!status && open_parent && (entry = readdir(open_parent)))
		if (*entry->d_name != '.')
			status = add(folders, xfp_path(parent, entry->d_name), err);
	if (open_parent)
		closedir(open_parent);
	free(parent);
	if (status)
		xfp_host_folders_free(folders);
	else
		qsort(folders->path + 1, folders->count - 1, sizeof *folders->path, by_name);
	return status;
}

void xfp_host_folders_free(struct xfp_host_folders *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		free(folders->path[i]);
	free(folders->path);
	*folders = (struct xfp_host_folders){ 0 };
}

/* Over NFS, a file that another process has open cannot be removed with its folder, so the folder is moved first. */
static enum xfp_status move_hosts(const char *work, struct xfp_error *err)
{
	char *hosts = xfp_path(work, XFP_HOSTS_FOLDER), *removed = xfp_path(work, REMOVED_PREFIX "XXXXXX"), *to = NULL;
	enum xfp_status status = XFP_OK;

	if (!hosts || !removed)
		status = xfp_no_memory(err);
	else if (access(hosts, F_OK) && errno == ENOENT)
		;
	else if (!mkdtemp(removed))
		status = xfp_fail_errno(err, errno, "%s: the work folder cannot be written", work);
	else if (!(to = xfp_path(removed, XFP_HOSTS_FOLDER)))
		status = xfp_no_memory(err);
	else if (rename(hosts, to) && errno != ENOENT)
		status = xfp_fail_errno(err, errno, "%s: cannot move it to %s", hosts, to);
	free(to);
	free(removed);
	free(hosts);
	return status;
}

enum xfp_status xfp_host_folders_remove(const char *work, struct xfp_error *err)
{
	enum xfp_status status = move_hosts(work, err);
	DIR *folder = opendir(work);
	struct dirent *entry;

	/* Including the remains of earlier runs. */
	while (folder && (entry = readdir(folder)))
		if (!strncmp(entry->d_name, REMOVED_PREFIX, strlen(REMOVED_PREFIX)))
			xfp_temporary_remove(xfp_path(work, entry->d_name));
	if (folder)
		closedir(folder);
	return status;
}

static void refresh(char *folder)
{
	if (folder)
		xfp_folder_refresh(folder);
	free(folder);
}

void xfp_shared_folders_refresh(const char *work, const char *cache)
{
	struct xfp_host_folders folders;

	xfp_folder_refresh(work);
	refresh(xfp_path(work, XFP_HOSTS_FOLDER));
	if (!xfp_host_folders_list(work, &folders, NULL))
		for (size_t i = 1; i < folders.count; i++)
			xfp_folder_refresh(folders.path[i]);
	xfp_host_folders_free(&folders);
	refresh(xfp_path(cache, XFP_STORE_ARTIFACTS));
	for (unsigned i = 0; i < 256; i++)
		refresh(xfp_formatted("%s/" XFP_STORE_ARTIFACTS "/%02x", cache, i));
}

/* ---- locks and version ------------------------------------------------------------------------- */

struct xfp_stage_locks xfp_stage_locks_share(const char *work, const char *cache)
{
	return (struct xfp_stage_locks){ xfp_steps_share(work), xfp_steps_share(cache) };
}

void xfp_stage_locks_release(const struct xfp_stage_locks *locks)
{
	if (locks->work >= 0)
		close(locks->work);
	if (locks->cache >= 0)
		close(locks->cache);
}

enum xfp_status xfp_run_version_check(struct xfp_error *err)
{
	const char *run = getenv(XFP_RUN_VERSION);

	if (!run || !*run || !strcmp(run, PACKAGE_VERSION))
		return XFP_OK;
	return xfp_fail(err, XFP_FAILED,
			"xfp %s is installed here, but xfp %s runs the conversion; install the same version on all "
			"hosts",
			PACKAGE_VERSION, xfp_printable(run).text);
}
