/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.h - list the members of a zip archive and their locations. Private to checkpoints/.
 *
 * The local header of each member must agree with the central directory. An archive is refused if two members have the
 * same name, or overlap each other or the directory; if a name is absolute or leads out of the folder; if anything is
 * encrypted, or in another file. Compressed members are listed, because a caller may not need them.
 *
 * libarchive is not used: of two directory entries with the same local header it lists only the first, which hides
 * duplicates and overlaps.
 */
#ifndef XFP_ZIP_H
#define XFP_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/place.h"

#define XFP_ZIP_DIRECTORY_MAX 100000000 /* bytes of a central directory */

struct xfp_zip_member {
	char *name;
	uint64_t offset, bytes; /* stored data, in the file that contains the archive */
	uint32_t crc;           /* CRC-32 from the directory, or 0 */
	bool compressed;        /* the stored data is compressed */
};

struct xfp_zip {
	struct xfp_zip_member *members; /* sorted by name, unique; without folders */
	uint32_t count;
	uint32_t first; /* number of the first member of the directory */
};

/* Read an archive. XFP_BAD_INPUT if anything is wrong with it. `fd` is the open file of `place`, which has `bytes`
 * bytes. Memory is about the size of the directory: only names and locations are kept. */
enum xfp_status xfp_zip_read(int fd, const struct xfp_place *place, struct xfp_zip *out, struct xfp_error *err);
/* Add to the checkpoint's counts of members and of those without a CRC-32. */
void xfp_zip_count(const struct xfp_zip *zip, struct xfp_checkpoint *checkpoint);
void xfp_zip_free(struct xfp_zip *zip); /* initialize with zeros */

/* Return a member by name, or NULL. */
const struct xfp_zip_member *xfp_zip_find(const struct xfp_zip *zip, const char *name);

#endif
