/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/disk_space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/filesystem.h"
#include "base/text/size.h"
#include "conversion/estimate/footprint.h"

#define BLOCK 512u /* of st_blocks */

/* The nearest existing parent folder of a path, allocated; NULL if out of memory. */
static char *nearest_folder(const char *path)
{
	char *folder = strdup(path), *slash;
	struct stat st;

	while (folder && (stat(folder, &st) || !S_ISDIR(st.st_mode)) && strcmp(folder, "/") != 0 &&
	       (slash = strrchr(folder, '/')))
		slash[slash == folder] = '\0';
	return folder;
}

uint64_t xfp_free_bytes_at(const char *path)
{
	char *folder = nearest_folder(path);
	uint64_t bytes = 0;

	if (folder && !xfp_free_bytes(folder, &bytes))
		bytes = 0;
	free(folder);
	return bytes;
}

/* Total size of the files in a folder without subfolders. */
static uint64_t folder_bytes(const char *folder)
{
	DIR *dir = opendir(folder);
	uint64_t bytes = 0;
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_blocks * BLOCK;
	if (dir)
		closedir(dir);
	return bytes;
}

/* ---- comparison with the free space ------------------------------------------------------------ */

enum { BUNDLE, CACHE, WORK, PLACES };

struct disk_place {
	const char *path, *what, *option;
	uint64_t need;
	char *folder; /* allocated */
	dev_t device;
};

/* Bytes needed on a disk that has both bundle and cache: less than their sum if artifacts are removed as the bundle
 * grows. The work folder is added if it is on the same disk. */
static uint64_t peak_bytes(const struct disk_place *places, const struct xfp_disk *disk)
{
	const uint64_t total = xfp_disk_total(disk), both = total > disk->work ? total - disk->work : 0;

	return both + (places[WORK].device == places[BUNDLE].device ? places[WORK].need : 0);
}

/* Check the file system of place `first` against the sum of all places on it. */
static enum xfp_status check_device(const struct disk_place *places, size_t first, const struct xfp_disk *disk,
				    struct xfp_error *err)
{
	char what[256] = "", options[64] = "", needed[32], free_[32];
	uint64_t need = 0, disk_space;

	for (size_t i = 0; i < PLACES; i++) {
		if (places[i].device != places[first].device || !places[i].need)
			continue;
		if (i < first)
			return XFP_OK; /* counted at that place */
		need += places[i].need;
		snprintf(what + strlen(what), sizeof what - strlen(what), "%s%s (%s)", *what ? ", " : "",
			 places[i].what, xfp_human((double)places[i].need, "B", needed));
		snprintf(options + strlen(options), sizeof options - strlen(options), "%s%s", *options ? " or " : "",
			 places[i].option);
	}
	if (places[BUNDLE].device == places[CACHE].device && places[first].device == places[BUNDLE].device &&
	    need > peak_bytes(places, disk))
		need = peak_bytes(places, disk);
	if (!xfp_free_bytes(places[first].folder, &disk_space))
		return xfp_fail_errno(err, errno, "%s: cannot determine its free space", places[first].folder);
	if (disk_space >= need)
		return XFP_OK;
	return xfp_fail(err, XFP_FAILED,
			"%s: about %s needed, %s free, for %s; free some space, choose another location with %s, or "
			"try anyway with --force",
			places[first].folder, xfp_human((double)need, "B", needed),
			xfp_human((double)disk_space, "B", free_), what, options);
}

enum xfp_status xfp_check_disk_space(const struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	const struct xfp_disk disk = xfp_footprint_disk(&input, XFP_EXPECTED);
	const uint64_t there = folder_bytes(c->request->work), work = disk.work > there ? disk.work - there : 0;
	struct disk_place places[PLACES] = {
		[BUNDLE] = { .path = c->request->out, .what = "the bundle", .option = "-o", .need = disk.bundle },
		[CACHE] = { .path = c->request->cache, .what = "the cache", .option = "--cache" },
		[WORK] = { .path = c->request->work, .what = "the work folder", .option = "--work", .need = work },
	};
	enum xfp_status status = XFP_OK;
	struct stat st;

	if (c->units.todo)
		places[CACHE].need = disk.artifacts;
	for (size_t i = 0; !status && i < PLACES; i++) {
		if (!(places[i].folder = nearest_folder(places[i].path)))
			status = xfp_no_memory(err);
		else if (stat(places[i].folder, &st))
			status = xfp_fail_errno(err, errno, "%s", places[i].folder);
		else
			places[i].device = st.st_dev;
	}
	for (size_t i = 0; !status && i < PLACES; i++)
		if (places[i].need)
			status = check_device(places, i, &disk, err);
	for (size_t i = 0; i < PLACES; i++)
		free(places[i].folder);
	return status;
}
