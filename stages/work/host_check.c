/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/work/host_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/filesystem.h"
#include "base/system/host.h"
#include "base/system/process.h"
#include "cache/store.h"
#include "stages/work/hosts.h"

#define MAX_ANSWER 4096
#define MOUNT "mount the same file system under this path on all hosts"

/* ---- files ------------------------------------------------------------------------------------- */

static char *path_of(const char *folder, const char *what, const struct xfp_host_check *check)
{
	return xfp_formatted("%s/.host-%s-%s-0.tmp", folder, what, check->name);
}

static void get_host(char host[XFP_HOST_NAME])
{
	if (!xfp_host_name(host))
		strcpy(host, "-");
}

static enum xfp_status write_line(const char *folder, const char *what, const struct xfp_host_check *check,
				  struct xfp_error *err)
{
	char *path = path_of(folder, what, check), host[XFP_HOST_NAME], line[XFP_HOST_CHECK_NAME + XFP_HOST_NAME + 2];
	enum xfp_status status;

	get_host(host);
	snprintf(line, sizeof line, "%s %s\n", check->name, host);
	status = path ? xfp_write_file(path, line, strlen(line), false, err) : xfp_no_memory(err);
	free(path);
	return status;
}

/* Read a line that another host wrote: its name. False: it is not there, or is another check's. */
static bool read_line(const char *folder, const char *what, const struct xfp_host_check *check,
		      char host[XFP_HOST_NAME])
{
	size_t length = strlen(check->name);
	char *path = path_of(folder, what, check), *text = NULL;
	bool same;

	xfp_folder_refresh(folder);
	same = path && !xfp_slurp(path, MAX_ANSWER, &text, NULL, NULL) && !strncmp(text, check->name, length) &&
	       text[length] == ' ';
	if (same)
		snprintf(host, XFP_HOST_NAME, "%.*s", (int)strcspn(text + length + 1, "\n"), text + length + 1);
	free(text);
	free(path);
	return same;
}

/* ---- the conversion's host --------------------------------------------------------------------- */

enum xfp_status xfp_host_check_ask(struct xfp_host_check *check, struct xfp_error *err)
{
	char other[XFP_HOST_NAME];
	enum xfp_status status;
	uint64_t token;

	if (getrandom(&token, sizeof token, 0) != sizeof token)
		return xfp_fail_errno(err, errno, "cannot get random bytes");
	snprintf(check->name, sizeof check->name, "%016" PRIx64 ".%ld-%08" PRIx32, token, (long)getpid(),
		 xfp_process_space());
	if ((status = write_line(check->work, "asks", check, err)) ||
	    (status = write_line(check->cache, "asks", check, err)))
		return status;
	/* From now on this host remembers that there are no answers. */
	read_line(check->work, "answers", check, other);
	read_line(check->cache, "answers", check, other);
	return XFP_OK;
}

enum xfp_status xfp_host_check_conclude(const struct xfp_host_check *check, struct xfp_error *err)
{
	char host[XFP_HOST_NAME] = "", other[XFP_HOST_NAME] = "";
	bool work = read_line(check->work, "answers", check, host),
	     cache = read_line(check->cache, "answers", check, other);

	if (work && cache)
		return XFP_OK;
	if (!work && !cache)
		return xfp_fail(
			err, XFP_FAILED,
			"%s: no node has answered there; the launcher must run the command that is appended to it, "
			"on a host that shares this folder",
			check->work);
	return xfp_fail(err, XFP_FAILED, "%s: files that %s writes there are not seen by this host; " MOUNT,
			work ? check->cache : check->work, xfp_printable(work ? host : other).text);
}

void xfp_host_check_remove(const struct xfp_host_check *check)
{
	const char *const folders[] = { check->work, check->cache }, *const what[] = { "asks", "answers" };

	for (int i = 0; i < 4; i++) {
		char *path = path_of(folders[i / 2], what[i % 2], check);

		if (path)
			unlink(path);
		free(path);
	}
}

/* ---- the other host ---------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	return strlen(name) < XFP_HOST_CHECK_NAME && strspn(name, "0123456789abcdef.-") == strlen(name);
}

/* The conversion holds FOLDER/lock: taking it has to fail. */
static enum xfp_status check_lock(const char *folder, int how, struct xfp_error *err)
{
	char *path = xfp_path(folder, XFP_STORE_LOCK);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	int failed = fd < 0 ? errno : flock(fd, how | LOCK_NB) ? errno : 0;

	if (fd >= 0)
		close(fd);
	free(path);
	if (failed == EWOULDBLOCK)
		return XFP_OK;
	if (failed)
		return xfp_fail_errno(err, failed, "%s/" XFP_STORE_LOCK ": cannot lock", folder);
	return xfp_fail(err, XFP_FAILED,
			"%s: locks of the conversion's host are not seen; mount the folder with locks (flock) that all "
			"hosts share",
			folder);
}

static enum xfp_status check_folder(const struct xfp_host_check *check, const char *folder, int how,
				    struct xfp_error *err)
{
	char asking[XFP_HOST_NAME];
	enum xfp_status status;

	if (!read_line(folder, "asks", check, asking))
		return xfp_fail(err, XFP_FAILED,
				access(folder, F_OK) ? "%s: does not exist on this host; " MOUNT
						     : "%s: is not the folder of the conversion's host; " MOUNT,
				folder);
	status = check_lock(folder, how, err);
	return status ? status : write_line(folder, "answers", check, err);
}

enum xfp_status xfp_host_check_answer(const struct xfp_host_check *check, struct xfp_error *err)
{
	char host[XFP_HOST_NAME];
	enum xfp_status status;

	if (!is_name(check->name))
		return xfp_fail(err, XFP_USAGE, "--step %s: not the name of a check", xfp_printable(check->name).text);
	/* The conversion holds the first lock exclusively, and shares the second. */
	if (!(status = xfp_run_version_check(err)) && !(status = check_folder(check, check->work, LOCK_SH, err)))
		status = check_folder(check, check->cache, LOCK_EX, err);
	get_host(host);
	return status ? xfp_context(err, status, "node %s", xfp_printable(host).text) : XFP_OK;
}
