/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/system/path.h"
#include "base/system/process.h"
#include "base/text/text.h"

#define DEBRIS_SECONDS (24 * 60 * 60)
#define LONGEST_KEPT 200 /* bytes of the final name kept in a pending name, which is longer and may have 255 bytes */
#define MAX_LINKS 40

/* Report a failed write, sync, close, create or rename; a full disk gets its own message, because the user can fix
 * it. */
static enum xfp_status write_failed(struct xfp_error *err, int errnum, const char *verb, const char *path)
{
	if (errnum == ENOSPC || errnum == EDQUOT)
		return xfp_fail(err, XFP_FAILED, "%s: %s; free some space and run again", path, strerror(errnum));
	return xfp_fail_errno(err, errnum, "%s: cannot %s", path, verb);
}

/* ---- writing ------------------------------------------------------------------------------------ */

enum xfp_status xfp_write(int fd, const void *buf, size_t size, const char *path, struct xfp_error *err)
{
	const char *from = buf;

	while (size) {
		ssize_t put = write(fd, from, size < SSIZE_MAX ? size : SSIZE_MAX);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return write_failed(err, errno, "write", path);
		from += put;
		size -= (size_t)put;
	}
	return XFP_OK;
}

void xfp_write_back(int fd, uint64_t offset, uint64_t size)
{
#ifdef SYNC_FILE_RANGE_WRITE
	sync_file_range(fd, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE);
#else
	(void)fd, (void)offset, (void)size;
#endif
}

enum xfp_status xfp_pwrite(int fd, const void *buf, size_t size, uint64_t offset, const char *path,
			   struct xfp_error *err)
{
	const char *from = buf;

	if (offset > INT64_MAX || size > INT64_MAX - offset)
		return write_failed(err, EFBIG, "write", path);
	while (size) {
		ssize_t put = pwrite(fd, from, size < SSIZE_MAX ? size : SSIZE_MAX, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return write_failed(err, errno, "write", path);
		from += put;
		size -= (size_t)put;
		offset += (uint64_t)put;
	}
	return XFP_OK;
}

/* ---- names and folders -------------------------------------------------------------------------- */

char *xfp_formatted(const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return length < 0 ? NULL : text;
}

char *xfp_path(const char *folder, const char *name)
{
	size_t length = strlen(folder);

	return xfp_formatted("%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
}

/* The folder part of `path`, in a new string. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

enum xfp_status xfp_follow_links(const char *path, char **target, struct xfp_error *err)
{
	char *at = strdup(path), *folder, *next, name[PATH_MAX];
	ssize_t length = 0;

	for (unsigned links = 0; at && (length = readlink(at, name, sizeof name - 1)) >= 0; links++) {
		if (links == MAX_LINKS) {
			free(at);
			return xfp_fail(err, XFP_USAGE, "%s: symbolic link loop; remove it", path);
		}
		name[length] = 0;
		folder = *name == '/' ? NULL : folder_of(at);
		next = *name == '/' ? strdup(name) : folder ? xfp_path(folder, name) : NULL;
		free(folder);
		free(at);
		at = next;
	}
	if (!at)
		return xfp_no_memory_for(err, path);
	*target = at;
	return XFP_OK;
}

enum xfp_status xfp_remove_file(const char *path, struct xfp_error *err)
{
	if (unlink(path) && errno != ENOENT)
		return xfp_fail_errno(err, errno, "%s: cannot remove", path);
	return XFP_OK;
}

enum xfp_status xfp_mkdirs(const char *path, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char *partial = strdup(path), *end = partial;
	struct stat st;
	bool last;

	if (!partial)
		return xfp_no_memory_for(err, path);
	do {
		char kept;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		kept = *end;
		last = !kept;
		*end = '\0';
		/* Check for an existing folder first: on a read-only file system, mkdir fails with EROFS even then. */
		if ((stat(partial, &st) || !S_ISDIR(st.st_mode)) && mkdir(partial, 0777)) {
			int errnum = errno;

			if (errnum != EEXIST || stat(partial, &st) || !S_ISDIR(st.st_mode)) {
				status = write_failed(err, errnum, "create this folder", partial);
				break;
			}
		}
		*end = kept;
	} while (!last);
	free(partial);
	return status;
}

enum xfp_status xfp_sync_folder(const char *folder, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return xfp_fail_errno(err, errno, "%s: cannot open", folder);
	/* EINVAL: the file system does not support fsync of folders. */
	if (fsync(fd) && errno != EINVAL)
		status = write_failed(err, errno, "sync", folder);
	close(fd);
	return status;
}

enum xfp_status xfp_sync_folder_of(const char *path, struct xfp_error *err)
{
	char *folder = folder_of(path);
	enum xfp_status status = folder ? xfp_sync_folder(folder, err) : xfp_no_memory_for(err, path);

	free(folder);
	return status;
}

/* ---- pending files ------------------------------------------------------------------------------ */

/* Return why a rename must not replace this path, or NULL. Root could replace even /dev/null and /dev/stdout. */
static const char *not_replaceable(const char *path)
{
	struct stat named, target, standard;

	if (stat(path, &target))
		return NULL;
	if (S_ISDIR(target.st_mode))
		return "is a folder, not a file";
	if (!S_ISREG(target.st_mode))
		return "is a pipe or a device, not a file";
	if (lstat(path, &named) || !S_ISLNK(named.st_mode))
		return NULL;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (!fstat(fd, &standard) && standard.st_ino == target.st_ino && standard.st_dev == target.st_dev)
			return "is standard output or error, not a file";
	return NULL;
}

enum xfp_status xfp_pending_open(const char *final_path, struct xfp_pending *pending, struct xfp_error *err)
{
	static atomic_uint counter; /* no two pending files of a process share a name */
	const char *name = xfp_base_name(final_path);
	enum xfp_status status = XFP_OK;
	struct xfp_pending made = { .fd = -1 };
	char *folder = folder_of(final_path);
	uint32_t space = xfp_process_space();
	const char *problem;
	int errnum = 0;

	*pending = made;
	if (!*name) {
		status = xfp_fail(err, XFP_FAILED, "%s: is a folder, not a file", final_path);
		goto done;
	}
	if ((problem = not_replaceable(final_path))) {
		status = xfp_fail(err, XFP_FAILED, "%s: %s; choose another output", final_path, problem);
		goto done;
	}
	made.final_path = strdup(final_path);
	if (!folder || !made.final_path) {
		status = xfp_no_memory_for(err, final_path);
		goto done;
	}
	do {
		free(made.path);
		/* A name is at most 255 bytes, and the final name may be that long: cut it. */
		made.path = xfp_formatted("%s/.%.200s.%ld-%08x-%u.tmp", folder, name, (long)getpid(), space,
					  atomic_fetch_add(&counter, 1));
		if (!made.path) {
			status = xfp_no_memory_for(err, final_path);
			goto done;
		}
		made.fd = open(made.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		errnum = errno;
	} while (made.fd < 0 && (errnum == EEXIST || errnum == EINTR));
	if (made.fd < 0) {
		status = write_failed(err, errnum, "create", final_path);
		goto done;
	}
	*pending = made;
	made.path = made.final_path = NULL;

done:
	free(made.path);
	free(made.final_path);
	free(folder);
	return status;
}

char *xfp_pending_kept_path(const char *final_path)
{
	const char *name = xfp_base_name(final_path);
	char *folder = folder_of(final_path), *path, digest[2 + 2 * 16] = "";
	uint8_t sha256[32];

	/* The part cut off distinguishes outputs: keep its digest. */
	if (strlen(name) > LONGEST_KEPT) {
		xfp_sha256(name, strlen(name), sha256);
		*digest = '-';
		xfp_hex(sha256, 16, digest + 1);
	}
	path = folder ? xfp_formatted("%s/.%.*s%s.pending", folder, LONGEST_KEPT, name, digest) : NULL;
	free(folder);
	return path;
}

enum xfp_status xfp_pending_keep(const char *final_path, struct xfp_pending *pending, struct xfp_error *err)
{
	struct xfp_pending made = { .fd = -1, .kept = true };
	struct stat named, held;

	*pending = (struct xfp_pending){ .fd = -1 };
	made.final_path = strdup(final_path);
	made.path = xfp_pending_kept_path(final_path);
	if (!made.final_path || !made.path) {
		free(made.final_path);
		free(made.path);
		return xfp_no_memory_for(err, final_path);
	}
	*pending = made;
	pending->fd = open(made.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (pending->fd < 0)
		return write_failed(err, errno, "create", made.path);
	/* ENOLCK and similar: the file system has no locks; the lock of the work folder has to do. */
	if (flock(pending->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return xfp_fail(err, XFP_FAILED, "%s: another process is writing this file", made.path);
	if (fstat(pending->fd, &held) || lstat(made.path, &named) || held.st_ino != named.st_ino ||
	    held.st_dev != named.st_dev || !S_ISREG(held.st_mode))
		return xfp_fail(err, XFP_FAILED, "%s: another process removed this file; run again", made.path);
	return XFP_OK;
}

void xfp_pending_kept_remove(const char *final_path)
{
	char *path = xfp_pending_kept_path(final_path);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

	if (fd >= 0) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			unlink(path);
		close(fd);
	}
	free(path);
}

/* Reset `pending`, leaving the file in place. */
static void finish(struct xfp_pending *pending)
{
	if (pending->fd >= 0)
		close(pending->fd);
	free(pending->path);
	free(pending->final_path);
	*pending = (struct xfp_pending){ .fd = -1 };
}

void xfp_pending_discard(struct xfp_pending *pending)
{
	if (!pending->path)
		return;
	if (!pending->kept)
		unlink(pending->path);
	finish(pending);
}

enum xfp_status xfp_pending_publish(struct xfp_pending *pending, bool durable, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char *folder = folder_of(pending->final_path);
	int fd = pending->fd;

	if (!folder) {
		status = xfp_no_memory_for(err, pending->final_path);
		goto done;
	}
	if (durable && fsync(fd)) {
		status = write_failed(err, errno, "sync", pending->final_path);
		goto done;
	}
	/* Network file systems report a full disk only on close, which releases the descriptor even if it fails. */
	pending->fd = -1;
	if (close(fd)) {
		status = write_failed(err, errno, "close", pending->final_path);
		goto done;
	}
	if (rename(pending->path, pending->final_path)) {
		status = write_failed(err, errno, "rename a finished file to this name", pending->final_path);
		goto done;
	}
	free(pending->path);
	pending->path = NULL;
	if (durable)
		status = xfp_sync_folder(folder, err);

done:
	free(folder);
	if (pending->path && !pending->kept)
		unlink(pending->path);
	finish(pending);
	return status;
}

enum xfp_status xfp_write_file(const char *path, const void *data, size_t size, bool durable, struct xfp_error *err)
{
	struct xfp_pending pending;
	enum xfp_status status = xfp_pending_open(path, &pending, err);

	if (status)
		return status;
	if ((status = xfp_write(pending.fd, data, size, path, err))) {
		xfp_pending_discard(&pending);
		return status;
	}
	return xfp_pending_publish(&pending, durable, err);
}

enum xfp_status xfp_write_text(const char *path, struct xfp_text *text, struct xfp_error *err)
{
	enum xfp_status status = xfp_text_end(text) ? xfp_write_file(path, text->bytes, text->size, false, err)
						    : xfp_no_memory_for(err, path);

	free(text->bytes);
	return status;
}

/* Parse ".NAME.PID-SPACE-N.tmp" from its end; NAME may contain anything. */
static bool parse_pending(const char *name, pid_t *pid, uint32_t *space)
{
	static const char digits[] = "0123456789", hex[] = "0123456789abcdef", suffix[] = ".tmp";
	size_t length = strlen(name), tail = sizeof suffix - 1;
	const char *dot, *p;
	long id;

	if (name[0] != '.' || length <= tail || memcmp(name + length - tail, suffix, tail))
		return false;
	dot = memrchr(name, '.', length - tail);
	if (!dot || dot == name)
		return false;
	p = dot + 1 + strspn(dot + 1, digits);
	if (p == dot + 1 || p[0] != '-' || strspn(p + 1, hex) != 8 || p[9] != '-')
		return false;
	if (!strspn(p + 10, digits) || p + 10 + strspn(p + 10, digits) != name + length - tail)
		return false;
	errno = 0;
	id = strtol(dot + 1, NULL, 10);
	if (errno || id <= 0 || id > INT_MAX)
		return false;
	*pid = (pid_t)id;
	*space = (uint32_t)strtoul(p + 1, NULL, 16);
	return true;
}

bool xfp_pending_is_name(const char *name)
{
	uint32_t space;
	pid_t pid;

	return parse_pending(name, &pid, &space);
}

bool xfp_pending_is_debris(const char *name, const struct stat *st)
{
	uint32_t space, here = xfp_process_space();
	pid_t pid;

	if (!parse_pending(name, &pid, &space) || !S_ISREG(st->st_mode))
		return false;
	return here && space == here ? xfp_process_is_dead(pid) : st->st_mtime + DEBRIS_SECONDS < time(NULL);
}

void xfp_sweep_pending(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat st;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (xfp_pending_is_name(entry->d_name) &&
		    !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    xfp_pending_is_debris(entry->d_name, &st))
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}

/* ---- identity ----------------------------------------------------------------------------------- */

static int64_t nanoseconds(struct timespec time)
{
	/* Unsigned, so that an absurd timestamp wraps instead of overflowing. */
	return (int64_t)((uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec);
}

struct xfp_identity xfp_identity_of(const struct stat *st)
{
	return (struct xfp_identity){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = nanoseconds(st->st_mtim),
		.ctime_ns = nanoseconds(st->st_ctim),
	};
}

bool xfp_identity_equal(const struct xfp_identity *a, const struct xfp_identity *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}
