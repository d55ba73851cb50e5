/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/host.h"
#include "base/system/process.h"
#include "cache/steps.h"

#define PATIENCE_S 10
#define LONGEST 65536
#define WHO 640 /* bytes for the description of a lock holder */

/* ---- lock holders ------------------------------------------------------------------------------ */

static void sign(int fd, const char *what)
{
	char host[XFP_HOST_NAME], *line;

	if (!xfp_host_name(host))
		strcpy(host, "-");
	line = xfp_formatted("%ld %08x %s %s\n", (long)getpid(), xfp_process_space(), host, xfp_printable(what).text);
	if (line && lseek(fd, 0, SEEK_END) >= 0)
		(void)!write(fd, line, strlen(line));
	free(line);
}

/* Format a line as "xfp convert -o /x/out.xfp (process 12)"; false if that process is known to have ended. */
static bool describe(const char *line, char text[WHO])
{
	char host[65], what[300], ours[XFP_HOST_NAME];
	unsigned space;
	long pid;

	if (sscanf(line, "%ld %8x %64s %299[^\n]", &pid, &space, host, what) != 4 || pid <= 0)
		return false;
	if (space && space == xfp_process_space() && xfp_process_is_dead((pid_t)pid))
		return false;
	if (!xfp_host_name(ours) || strcmp(host, ours))
		snprintf(text, WHO, "%s (process %ld on %s)", xfp_printable(what).text, pid, xfp_printable(host).text);
	else
		snprintf(text, WHO, "%s (process %ld)", xfp_printable(what).text, pid);
	return true;
}

static enum xfp_status busy(const struct xfp_store *store, const char *path, struct xfp_error *err)
{
	char *text = NULL, *rest, *line, who[WHO] = "";
	unsigned count = 0;

	xfp_slurp(path, LONGEST, &text, NULL, NULL);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		char one[WHO];

		/* Among several holders, name the latest. */
		if (!describe(line, one))
			continue;
		memcpy(who, one, sizeof who);
		count++;
	}
	free(text);
	if (!count)
		return xfp_fail(err, XFP_FAILED,
				"%s: in use by stages of a conversion that has ended, or by another "
				"host; wait for them",
				store->folder);
	return xfp_fail(err, XFP_FAILED, "%s: in use by %s%s; wait for it to end", store->folder, who,
			count > 1 ? " and others" : "");
}

/* ---- taking it --------------------------------------------------------------------------------- */

/* Some network file systems have no locks, or none for a read-only descriptor. */
static bool knows_no_locks(int errnum)
{
	return errnum == ENOLCK || errnum == ENOSYS || errnum == EOPNOTSUPP || errnum == EBADF || errnum == EINVAL;
}

static int take(int fd, int how)
{
	while (flock(fd, how | LOCK_NB))
		if (errno != EINTR)
			return errno;
	return 0;
}

/* Convert the result of `take` into a status. On failure the descriptor is closed; a file system without locks is not
 * an error. */
static enum xfp_status settle(const struct xfp_store *store, const char *path, int fd, int failed,
			      struct xfp_error *err)
{
	if (!failed)
		return XFP_OK;
	close(fd);
	if (failed == EWOULDBLOCK)
		return busy(store, path, err);
	return knows_no_locks(failed) ? XFP_OK : xfp_fail_errno(err, failed, "%s: cannot lock", path);
}

/* Remove the lines of processes; they must have ended, because the lock is exclusively ours. */
static void clear(int fd)
{
	(void)!ftruncate(fd, 0);
}

/* Lock CACHE/lock.guard, whose holder alone may request the exclusive lock. The kernel converts a lock by releasing it
 * first: after a failed conversion, a conversion's artifacts are unprotected until it shares the lock again, and nobody
 * else may get it exclusively then. Waits about a second, since others hold the guard for moments. */
static int guard(const struct xfp_store *store, int *out)
{
	char *path = xfp_path(store->folder, XFP_STORE_GUARD);
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1, failed = path ? errno : ENOMEM;

	for (int tries = 20; fd >= 0 && (failed = take(fd, LOCK_EX)) == EWOULDBLOCK && tries; tries--)
		if (!xfp_wait_a_moment(&store->wait))
			break;
	if (fd >= 0 && failed)
		close(fd);
	*out = failed ? -1 : fd;
	free(path);
	return failed;
}

/* A child that was just forked may still have the descriptor, so closing it is not enough. */
static void unguard(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN);
	close(fd);
}

enum xfp_status xfp_lock_shared(const struct xfp_store *store, const char *what, int *out, struct xfp_error *err)
{
	char *path = xfp_path(store->folder, XFP_STORE_LOCK);
	enum xfp_status status = XFP_OK;
	int fd, failed;

	*out = -1;
	if (!path)
		return xfp_no_memory_for(err, store->folder);
	/* Inherited by make and the stages. */
	fd = store->read_only ? open(path, O_RDONLY) : open(path, O_RDWR | O_CREAT, 0666);
	if (fd < 0) {
		if (!store->read_only)
			status = xfp_store_denied(store, path, errno, err);
		goto done;
	}
	if (!store->read_only && !take(fd, LOCK_EX))
		clear(fd);
	for (int tries = PATIENCE_S * 20; (failed = take(fd, LOCK_SH)) == EWOULDBLOCK && tries; tries--)
		if (!xfp_wait_a_moment(&store->wait))
			break;
	status = settle(store, path, fd, failed, err);
	if (!failed) {
		if (!store->read_only)
			sign(fd, what);
		*out = fd;
	}
done:
	free(path);
	return status;
}

enum xfp_status xfp_lock_exclusive(const struct xfp_store *store, const char *what, int *out, struct xfp_error *err)
{
	char *path = xfp_path(store->folder, XFP_STORE_LOCK);
	enum xfp_status status = XFP_OK;
	int fd, failed, guarded;

	*out = -1;
	if (!path)
		return xfp_no_memory_for(err, store->folder);
	if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0) {
		status = xfp_store_denied(store, path, errno, err);
		goto done;
	}
	failed = guard(store, &guarded);
	failed = failed ? failed : take(fd, LOCK_EX);
	if (!failed && xfp_steps_are_running(store->folder))
		failed = EWOULDBLOCK;
	unguard(guarded);
	status = settle(store, path, fd, failed, err);
	if (!failed) {
		clear(fd);
		sign(fd, what);
		*out = fd;
	}
done:
	free(path);
	return status;
}

/* Share the lock again. */
static int share_again(const struct xfp_store *store, int fd)
{
	int failed;

	for (int tries = PATIENCE_S * 20; (failed = take(fd, LOCK_SH)) == EWOULDBLOCK && tries; tries--)
		if (!xfp_wait_a_moment(&store->wait))
			break;
	return failed;
}

bool xfp_lock_try_upgrade(const struct xfp_store *store, int fd, int *guarded)
{
	*guarded = -1;
	if (fd < 0 || guard(store, guarded))
		return false;
	if (!take(fd, LOCK_EX))
		return true;
	share_again(store, fd);
	unguard(*guarded);
	*guarded = -1;
	return false;
}

enum xfp_status xfp_lock_downgrade(const struct xfp_store *store, int fd, int guarded, struct xfp_error *err)
{
	int failed = fd < 0 ? 0 : share_again(store, fd);
	char *path;
	enum xfp_status status;

	unguard(guarded);
	if (failed != EWOULDBLOCK)
		return failed ? xfp_fail_errno(err, failed, "%s: cannot lock", store->folder) : XFP_OK;
	path = xfp_path(store->folder, XFP_STORE_LOCK);
	status = path ? busy(store, path, err) : xfp_no_memory(err);
	free(path);
	return status;
}

bool xfp_lock_is_of(const struct xfp_store *store, int fd)
{
	char *path = xfp_path(store->folder, XFP_STORE_LOCK);
	struct stat named, held;
	bool same = fd < 0 || !path ||
		    (!stat(path, &named) && !fstat(fd, &held) && named.st_dev == held.st_dev &&
		     named.st_ino == held.st_ino);

	free(path);
	return same;
}

void xfp_lock_release(int fd)
{
	if (fd >= 0)
		close(fd);
}
