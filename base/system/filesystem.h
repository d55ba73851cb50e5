/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystem.h - guarantees that the file system of a path does not give.
 */
#ifndef XFP_FILESYSTEM_H
#define XFP_FILESYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/file.h"

struct xfp_filesystem {
	bool shared;        /* other hosts, or a process of its own, may write without the kernel's knowledge, so mapped
			     * memory is not coherent with them */
	bool inodes_change; /* inode numbers are not stable */
};

/* Look up the type reported by statfs; an unknown type is assumed to be local with stable inode numbers. */
struct xfp_filesystem xfp_filesystem_of_type(uint32_t type);
struct xfp_filesystem xfp_filesystem_at(const char *path);

/* The identity of the file at `path`, to compare with an earlier or later one. On file systems that invent inode
 * numbers (FUSE, SMB, 9p, FAT) the inode is left out, and only device, size and both times are compared. */
struct xfp_identity xfp_identity_at(const char *path, const struct stat *st);

/* Open a regular file that must have this identity (NULL: any). The open file is checked, because links may have
 * changed. XFP_FAILED: another file. On failure nothing is open and *fd is -1. */
enum xfp_status xfp_open_identified(const char *path, const struct xfp_identity *identity, int *fd, struct stat *st,
				    struct xfp_error *err);

/* Ask the server of a shared file system for the current state of a folder: NFS clients remember for up to a minute
 * which files a folder does not have. */
void xfp_folder_refresh(const char *folder);

/* The space that this user may still write on the file system of a folder, in bytes; false (with errno) if unknown. */
bool xfp_free_bytes(const char *folder, uint64_t *bytes);

#endif
