/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_read.c - the reading half of file.h: exact reads, whole files, file types.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"

enum xfp_status xfp_pread(int fd, void *buf, size_t size, uint64_t offset, const char *path, struct xfp_error *err)
{
	char *to = buf;

	while (size) {
		ssize_t got;

		if (offset > INT64_MAX)
			goto truncated;
		got = pread(fd, to, size < SSIZE_MAX ? size : SSIZE_MAX, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return xfp_fail_errno(err, errno, "%s: cannot read", path);
		if (!got)
			goto truncated;
		to += got;
		size -= (size_t)got;
		offset += (uint64_t)got;
	}
	return XFP_OK;

truncated:
	return xfp_fail(err, XFP_BAD_INPUT, "%s: truncated: ends before byte %llu; download or create it again", path,
			(unsigned long long)offset + size);
}

enum xfp_status xfp_open_regular(const char *path, int *out, struct stat *st, struct xfp_error *err)
{
	const char *what = "a pipe or a device";
	/* A blocking open of a pipe would wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), errnum = fd < 0 ? errno : 0;

	if (fd >= 0 && fstat(fd, st))
		errnum = errno;
	if (!errnum && S_ISREG(st->st_mode)) {
		*out = fd;
		return XFP_OK;
	}
	if (fd >= 0)
		close(fd);
	if (errnum == ELOOP)
		what = "a symbolic link loop";
	else if (errnum && errnum != ENXIO)
		return xfp_fail_errno(err, errnum, "%s: cannot open", path);
	else if (!errnum && S_ISDIR(st->st_mode))
		what = "a folder";
	return xfp_fail(err, XFP_BAD_INPUT, "%s: is %s, not a regular file", path, what);
}

/* Read everything from `fd`, and close it. */
static enum xfp_status slurp(int fd, const struct stat *st, const char *path, size_t limit, char **text, size_t *size,
			     struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	size_t used = 0, capacity = 4096;
	char *buf = NULL;

	if (S_ISREG(st->st_mode) && (uint64_t)st->st_size > limit)
		goto too_large;
	if (S_ISREG(st->st_mode))
		capacity = (size_t)st->st_size + 2; /* the NUL, and one byte more to detect the end of the file */
	buf = malloc(capacity);
	for (;;) {
		ssize_t got;

		if (buf && used + 1 == capacity) {
			char *grown = realloc(buf, capacity *= 2);

			if (!grown)
				free(buf);
			buf = grown;
		}
		if (!buf) {
			status = xfp_no_memory_for(err, path);
			goto done;
		}
		got = read(fd, buf + used, capacity - used - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			status = xfp_fail_errno(err, errno, "%s: cannot read", path);
			goto done;
		}
		if (!got)
			break;
		used += (size_t)got;
		if (used > limit)
			goto too_large;
	}
	buf[used] = '\0';
	*text = buf;
	if (size)
		*size = used;
	buf = NULL;
	goto done;

too_large:
	status = xfp_fail(err, XFP_BAD_INPUT, "%s: larger than the limit of %zu bytes", path, limit);
done:
	free(buf);
	close(fd);
	return status;
}

static enum xfp_status slurp_path(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), errnum = fd < 0 ? errno : 0;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st)) {
		errnum = errno;
		close(fd);
	}
	return errnum ? xfp_fail_errno(err, errnum, "%s: cannot open", path)
		      : slurp(fd, &st, path, limit, text, size, err);
}

enum xfp_status xfp_slurp(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err)
{
	enum xfp_status status = slurp_path(path, limit, text, size, err);

	/* Another host has replaced the file on NFS since it was opened. */
	return status == XFP_FAILED && errno == ESTALE ? slurp_path(path, limit, text, size, err) : status;
}

enum xfp_status xfp_slurp_regular(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err)
{
	struct stat st;
	int fd;
	enum xfp_status status = xfp_open_regular(path, &fd, &st, err);

	if (status == XFP_FAILED && errno == ENOENT)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: no such file", path);
	return status ? status : slurp(fd, &st, path, limit, text, size, err);
}

const char *xfp_input_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

enum xfp_status xfp_slurp_input(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err)
{
	const char *name = xfp_input_name(path);
	int fd = name == path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: no such file", name);
	if (fd < 0 || fstat(fd, &st)) {
		int errnum = errno;

		if (fd >= 0)
			close(fd);
		return xfp_fail_errno(err, errnum, "%s: cannot open", name);
	}
	if (S_ISDIR(st.st_mode)) {
		close(fd);
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is a folder; name a file", name);
	}
	return slurp(fd, &st, name, limit, text, size, err);
}

enum xfp_status xfp_stat(const char *path, struct stat *st, struct xfp_error *err)
{
	if (!stat(path, st))
		return XFP_OK;
	if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return xfp_fail_errno(err, errno, "%s: cannot open", path);
	*st = (struct stat){ 0 };
	return XFP_OK;
}
