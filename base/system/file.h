/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - checked file I/O and atomic publication.
 *
 * A file of xfp appears under its final name complete or not at all: it is written as a pending
 * file in the same folder, then renamed. A pending file's name is ".NAME.PID-SPACE-N.tmp": SPACE is
 * eight hex digits that stand for the boot and the PID namespace in which PID means something, and N
 * is a counter. A pending file whose process is gone is debris, and anyone who can tell may remove it.
 */
#ifndef XFP_FILE_H
#define XFP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/xfp_error.h"

/* Read exactly `size` bytes at `offset`; a short file is XFP_BAD_INPUT, naming `path` as truncated. */
enum xfp_status xfp_pread(int fd, void *buf, size_t size, uint64_t offset, const char *path, struct xfp_error *err);
/* Begin to write a range to the disk, where the system offers that: a later sync has less to wait for. */
void xfp_write_back(int fd, uint64_t offset, uint64_t size);
/* Write all of `size` bytes at the file position, or at `offset`. */
enum xfp_status xfp_write(int fd, const void *buf, size_t size, const char *path, struct xfp_error *err);
enum xfp_status xfp_pwrite(int fd, const void *buf, size_t size, uint64_t offset, const char *path,
			   struct xfp_error *err);

/* Whole file into a new NUL-terminated buffer (the caller frees it); `size` may be NULL. A file over `limit` bytes is
 * XFP_BAD_INPUT; one that is missing or unreadable is XFP_FAILED. */
enum xfp_status xfp_slurp(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err);

/* stat: st_mode is 0 where there is nothing, or a link to nothing. What the system does not let us look at is
 * XFP_FAILED, and must not be mistaken for nothing. */
enum xfp_status xfp_look(const char *path, struct stat *st, struct xfp_error *err);

/* Open what must be a file, as those of a checkpoint must: anything else (a folder, a pipe, links in a circle) is
 * XFP_BAD_INPUT at once, where plain open() and read() would wait for the other end of a pipe. */
enum xfp_status xfp_open_regular(const char *path, int *fd, struct stat *st, struct xfp_error *err);
/* xfp_slurp of such a file. */
enum xfp_status xfp_slurp_regular(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err);
/* Input named on the command line, read once from start to end: a file, a pipe or, for "-", standard input.
 * XFP_BAD_INPUT if it does not exist, is a folder or is larger than `limit`. */
enum xfp_status xfp_slurp_input(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err);
/* Its name for messages: "standard input" for "-". */
const char *xfp_input_name(const char *path);

/* "a/b" in a new string, or NULL when out of memory; and printf into a new string, likewise. */
char *xfp_path(const char *folder, const char *name);
char *xfp_formatted(const char *format, ...) XFP_PRINTF(1, 2);

/* Where symbolic links lead that `path` itself is (its folders are left as they are), in a new string: a file that is
 * to be replaced is replaced there, and the links stay. There need be nothing. XFP_USAGE for links in a circle. */
enum xfp_status xfp_follow_links(const char *path, char **target, struct xfp_error *err);

/* Create a folder and its parents; one that exists is fine. */
enum xfp_status xfp_mkdirs(const char *path, struct xfp_error *err);
/* Make earlier renames in `folder` durable. */
enum xfp_status xfp_sync_folder(const char *folder, struct xfp_error *err);
/* In the folder of a file. */
enum xfp_status xfp_sync_folder_of(const char *path, struct xfp_error *err);

/* A file under construction. */
struct xfp_pending {
	int fd;           /* open for reading and writing */
	char *path;       /* temporary name */
	char *final_path; /* name after xfp_pending_publish */
	bool kept;        /* the temporary file stays where publishing fails, or is given up */
};

enum xfp_status xfp_pending_open(const char *final_path, struct xfp_pending *pending, struct xfp_error *err);
/* The same for a file that is continued by whoever comes after a failure or a kill: its name is ".NAME.pending" and
 * says nothing of a process, so that nobody takes it for debris. Of a NAME over 200 bytes the rest is a digest.
 * What is in it stays, and is the caller's to judge. XFP_FAILED while another process has it open in this way. */
enum xfp_status xfp_pending_keep(const char *final_path, struct xfp_pending *pending, struct xfp_error *err);
/* Its temporary name, allocated; NULL when out of memory. And removing it, unless a process has it open. */
char *xfp_pending_kept_path(const char *final_path);
void xfp_pending_kept_remove(const char *final_path);
/* Close (checked) and rename over the final name. With `durable`, the file is synced first and its
 * folder after. On failure the temporary file is removed, unless it is kept. Either way `pending` is finished. */
enum xfp_status xfp_pending_publish(struct xfp_pending *pending, bool durable, struct xfp_error *err);
/* Close and remove the temporary file, unless it is kept. Safe on a finished or zeroed struct whose path is NULL. */
void xfp_pending_discard(struct xfp_pending *pending);

/* Publish a small file in one call. */
enum xfp_status xfp_write_file(const char *path, const void *data, size_t size, bool durable, struct xfp_error *err);

/* Remove the debris of dead processes (see above) in `folder`. Pending files of other hosts, boots and
 * containers are left alone until nobody has written to them for a day. Errors are ignored: debris
 * costs space on the disk, nothing else. */
void xfp_sweep_pending(const char *folder);
/* For those who look before they remove: whether this is the name of a pending file, and whether that is debris. */
bool xfp_pending_is_name(const char *name);
bool xfp_pending_is_debris(const char *name, const struct stat *st);

/* Remove a file; one that is gone already is fine. */
enum xfp_status xfp_remove_file(const char *path, struct xfp_error *err);

/* Who a file is, for "has it changed since". All zero when never filled. */
struct xfp_identity {
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};
struct xfp_identity xfp_identity_of(const struct stat *st);
bool xfp_identity_equal(const struct xfp_identity *a, const struct xfp_identity *b);

#endif
