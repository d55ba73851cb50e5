/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - checked file I/O and atomic publication.
 *
 * An xfp file appears under its final name complete or not at all: it is written as a pending file in the same folder,
 * then renamed. A pending file's name is ".NAME.PID-SPACE-N.tmp": SPACE is eight hex digits that identify the boot and
 * the PID namespace in which PID is valid, and N is a counter. A pending file whose process has ended is debris, and
 * any process that can detect this may remove it.
 */
#ifndef XFP_FILE_H
#define XFP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/xfp_error.h"

struct xfp_text;

/* Read exactly `size` bytes at `offset`. XFP_BAD_INPUT: the file ends earlier; the message names `path`. XFP_FAILED:
 * errno is the system's error. */
enum xfp_status xfp_pread(int fd, void *buf, size_t size, uint64_t offset, const char *path, struct xfp_error *err);
/* Start writing a range to disk, if the system supports it, so that a later sync waits less. */
void xfp_write_back(int fd, uint64_t offset, uint64_t size);
/* Write all `size` bytes at the file position, or at `offset`. */
enum xfp_status xfp_write(int fd, const void *buf, size_t size, const char *path, struct xfp_error *err);
enum xfp_status xfp_pwrite(int fd, const void *buf, size_t size, uint64_t offset, const char *path,
			   struct xfp_error *err);

/* Read a whole file into a new NUL-terminated buffer, owned by the caller; `size` may be NULL. XFP_BAD_INPUT: larger
 * than `limit` bytes. XFP_FAILED: missing or unreadable. */
enum xfp_status xfp_slurp(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err);

/* stat; st_mode is 0 if `path` does not exist or is a dangling link. XFP_FAILED: `path` cannot be examined, so it must
 * not be treated as missing. */
enum xfp_status xfp_stat(const char *path, struct stat *st, struct xfp_error *err);

/* Open a regular file. XFP_BAD_INPUT: a folder, a pipe, a link loop or any other kind of file; plain open() and read()
 * would wait for the other end of a pipe. */
enum xfp_status xfp_open_regular(const char *path, int *fd, struct stat *st, struct xfp_error *err);
/* Read a whole regular file: xfp_slurp with the checks of xfp_open_regular. XFP_BAD_INPUT also if it is missing. */
enum xfp_status xfp_slurp_regular(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err);
/* Read an input named on the command line: a file, a pipe or, for "-", standard input. XFP_BAD_INPUT: it does not
 * exist, is a folder or is larger than `limit` bytes. */
enum xfp_status xfp_slurp_input(const char *path, size_t limit, char **text, size_t *size, struct xfp_error *err);
/* The name of an input for messages: "standard input" for "-". */
const char *xfp_input_name(const char *path);

/* Both return a new string, or NULL if memory runs out: xfp_path "folder/name", xfp_formatted the result of printf. */
char *xfp_path(const char *folder, const char *name);
char *xfp_formatted(const char *format, ...) XFP_PRINTF(1, 2);

/* Resolve the symbolic links that `path` itself is (not its folders) into a new string, so that replacing a file keeps
 * the links. The target need not exist. XFP_USAGE: link loop. */
enum xfp_status xfp_follow_links(const char *path, char **target, struct xfp_error *err);

/* Create a folder and its parents; existing folders are accepted. */
enum xfp_status xfp_mkdirs(const char *path, struct xfp_error *err);
/* Make earlier renames in `folder` durable. */
enum xfp_status xfp_sync_folder(const char *folder, struct xfp_error *err);
/* xfp_sync_folder for the folder of a file. */
enum xfp_status xfp_sync_folder_of(const char *path, struct xfp_error *err);

/* A file under construction. */
struct xfp_pending {
	int fd;           /* open for reading and writing */
	char *path;       /* temporary name */
	char *final_path; /* name after xfp_pending_publish */
	bool kept;        /* keep the temporary file if publishing fails or `pending` is discarded */
};

enum xfp_status xfp_pending_open(const char *final_path, struct xfp_pending *pending, struct xfp_error *err);
/* Create or reopen a pending file that a later process can continue after a failure or kill. Its name, ".NAME.pending",
 * contains no process id, so it never counts as debris; NAMEs over 200 bytes end in a digest. Existing content stays;
 * the caller must validate it. XFP_FAILED: another process has the file open in this way. */
enum xfp_status xfp_pending_keep(const char *final_path, struct xfp_pending *pending, struct xfp_error *err);
/* The name of a kept pending file in a new string, or NULL if memory runs out; and its removal, unless a process has it
 * open. */
char *xfp_pending_kept_path(const char *final_path);
void xfp_pending_kept_remove(const char *final_path);
/* Close the file (checked) and rename it to its final name. With `durable`, sync the file first and its folder
 * afterwards. On failure the temporary file is removed, unless it is kept. `pending` is finished in either case. */
enum xfp_status xfp_pending_publish(struct xfp_pending *pending, bool durable, struct xfp_error *err);
/* Close and remove the temporary file, unless it is kept. Safe for a finished or zeroed struct whose path is NULL. */
void xfp_pending_discard(struct xfp_pending *pending);

/* Write and publish a small file in one call. */
enum xfp_status xfp_write_file(const char *path, const void *data, size_t size, bool durable, struct xfp_error *err);
/* End a text, write it as a small file that is not durable, and free it. */
enum xfp_status xfp_write_text(const char *path, struct xfp_text *text, struct xfp_error *err);

/* Remove the debris of dead processes (see above) from `folder`. Pending files of other hosts, boots and containers are
 * removed only after a day without writes. Errors are ignored: debris only costs disk space. */
void xfp_sweep_pending(const char *folder);
/* For callers that check before they remove: whether `name` is the name of a pending file, and whether that file is
 * debris. */
bool xfp_pending_is_name(const char *name);
bool xfp_pending_is_debris(const char *name, const struct stat *st);

/* Remove a file; a missing file is not an error. */
enum xfp_status xfp_remove_file(const char *path, struct xfp_error *err);

/* The identity of a file, to detect changes. All zero if never filled. */
struct xfp_identity {
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};
struct xfp_identity xfp_identity_of(const struct stat *st);
bool xfp_identity_equal(const struct xfp_identity *a, const struct xfp_identity *b);

#endif
