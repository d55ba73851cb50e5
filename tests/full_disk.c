/* SPDX-License-Identifier: Apache-2.0 */
/*
 * full_disk.c - a full disk, preloaded: below the folder FULL_DISK no file can grow until others are removed, and then
 * only by their size.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static off_t room; /* bytes of removed files, less the bytes written since */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int ftruncate64(int fd, off64_t size);

static int is_below(const char *path)
{
	const char *folder = getenv("FULL_DISK");

	return folder && !strncmp(path, folder, strlen(folder));
}

/* Whether a file can have bytes up to `end`. */
static int fits(int fd, off_t end)
{
	char link[64], path[4096];
	ssize_t length;
	struct stat st;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || end <= st.st_size ||
	    (length = readlink(link, path, sizeof path - 1)) < 0)
		return 1;
	path[length] = 0;
	if (!is_below(path))
		return 1;
	if (end - st.st_size > room) {
		errno = ENOSPC;
		return 0;
	}
	room -= end - st.st_size;
	return 1;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	off_t at = lseek(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);

	return at < 0 || fits(fd, at + (off_t)size) ? REAL(write)(fd, bytes, size) : -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
	return fits(fd, at + (off_t)size) ? REAL(pwrite)(fd, bytes, size, at) : -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
	return fits(fd, at + (off_t)size) ? REAL(pwrite64)(fd, bytes, size, at) : -1;
}

int ftruncate(int fd, off_t size)
{
	return fits(fd, size) ? REAL(ftruncate)(fd, size) : -1;
}

int ftruncate64(int fd, off64_t size)
{
	return fits(fd, size) ? REAL(ftruncate64)(fd, size) : -1;
}

int unlink(const char *path)
{
	struct stat st = { .st_size = 0 };
	int known = !lstat(path, &st), result = REAL(unlink)(path);

	if (known && !result && is_below(path))
		room += st.st_size;
	return result;
}
