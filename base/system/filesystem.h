/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystem.h - what the file system of a path cannot be trusted with.
 */
#ifndef XFP_FILESYSTEM_H
#define XFP_FILESYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/file.h"

struct xfp_filesystem {
	bool shared;        /* other hosts, or a process of its own, may write behind the kernel's back: memory that is
			     * mapped there is not shared with them */
	bool inodes_change; /* the same file may have another inode number the next time */
};

/* By the type that statfs gives; an unknown type is taken for local and steady. */
struct xfp_filesystem xfp_filesystem_of_type(uint32_t type);
struct xfp_filesystem xfp_filesystem_at(const char *path);

/* Who the file at `path` is, for comparing with who it was or will be. Where the file system makes inode numbers up
 * (FUSE, SMB, 9p, FAT) they say nothing and are left out: device, size and both times have to do. */
struct xfp_identity xfp_identity_at(const char *path, const struct stat *st);

/* xfp_open_regular, of a file that must be the one of this identity; NULL: whichever is there. Links may lead elsewhere
 * than before, so it is the open file that counts. Another one is XFP_FAILED. On failure nothing is open, *fd is -1. */
enum xfp_status xfp_open_identified(const char *path, const struct xfp_identity *identity, int *fd, struct stat *st,
				    struct xfp_error *err);

/* What this user may still write to the file system of a folder; false (and errno) when that cannot be told. */
bool xfp_free_bytes(const char *folder, uint64_t *bytes);

#endif
