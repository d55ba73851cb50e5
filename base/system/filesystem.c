/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/filesystem.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/statvfs.h>
#include <sys/vfs.h>
#endif

struct xfp_filesystem xfp_filesystem_of_type(uint32_t type)
{
	/* From linux/magic.h, and from the sources of the file systems that it lacks. */
	static const struct {
		uint32_t type;
		struct xfp_filesystem is;
	} known[] = {
		{ 0x00006969, { true, false } }, /* NFS */
		{ 0x0000517b, { true, true } },  /* SMB */
		{ 0xfe534d42, { true, true } },  /* SMB 2 */
		{ 0xff534d42, { true, true } },  /* CIFS */
		{ 0x01021997, { true, true } },  /* 9p */
		{ 0x65735546, { true, true } },  /* FUSE, including sshfs, s3fs and virtiofs */
		{ 0x00c36400, { true, false } }, /* Ceph */
		{ 0x0bd00bd0, { true, false } }, /* Lustre */
		{ 0x47504653, { true, false } }, /* GPFS */
		{ 0x19830326, { true, false } }, /* BeeGFS */
		{ 0x20030528, { true, false } }, /* OrangeFS */
		{ 0xaad7aaea, { true, false } }, /* PanFS */
		{ 0x5346414f, { true, false } }, /* OpenAFS */
		{ 0x6b414653, { true, false } }, /* kAFS */
		{ 0x73757245, { true, false } }, /* Coda */
		{ 0x01161970, { true, false } }, /* GFS2 */
		{ 0x7461636f, { true, false } }, /* OCFS2 */
		{ 0x786f4256, { true, true } },  /* VirtualBox shared folders */
		{ 0xbacbacbc, { true, true } },  /* VMware shared folders */
		{ 0x00004d44, { false, true } }, /* FAT */
		{ 0x2011bab0, { false, true } }, /* exFAT */
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].type == type)
			return known[i].is;
	return (struct xfp_filesystem){ false, false };
}

struct xfp_filesystem xfp_filesystem_at(const char *path)
{
#ifdef __linux__
	struct statfs fs;

	if (!statfs(path, &fs))
		return xfp_filesystem_of_type((uint32_t)fs.f_type);
#else
	(void)path;
#endif
	return (struct xfp_filesystem){ false, false };
}

struct xfp_identity xfp_identity_at(const char *path, const struct stat *st)
{
	struct xfp_identity identity = xfp_identity_of(st);

	if (xfp_filesystem_at(path).inodes_change)
		identity.inode = 0;
	return identity;
}

void xfp_folder_refresh(const char *folder)
{
	struct statx state;

	(void)!statx(AT_FDCWD, folder, AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &state);
}

bool xfp_free_bytes(const char *folder, uint64_t *bytes)
{
	struct statvfs fs;

	if (statvfs(folder, &fs))
		return false;
	/* f_bavail, not f_bfree: blocks reserved for root keep the machine running, and root in a container may not use
	 * them. */
	*bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return true;
}

enum xfp_status xfp_open_identified(const char *path, const struct xfp_identity *identity, int *fd, struct stat *st,
				    struct xfp_error *err)
{
	enum xfp_status status;
	struct xfp_identity now;

	*fd = -1;
	if ((status = xfp_open_regular(path, fd, st, err)) || !identity)
		return status;
	now = xfp_identity_at(path, st);
	if (xfp_identity_equal(&now, identity))
		return XFP_OK;
	close(*fd);
	*fd = -1;
	return xfp_fail(err, XFP_FAILED, "%s: changed while it was being converted; run again", path);
}
