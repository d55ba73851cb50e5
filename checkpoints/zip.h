/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.h - what is in a zip archive, and where. Private to checkpoints/.
 *
 * The central directory says what there is, and each member's local header must say the same. An archive is refused
 * where two members have the same name, or bytes in common, or share them with the directory; where a name is absolute
 * or leads out of the folder; where anything is encrypted, or lies in another file. Compressed members are listed, for
 * whoever may not need them.
 *
 * libarchive is not used: of two entries of the directory that have one local header it lists the first alone, so that
 * neither duplicates nor overlaps can be found behind it.
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
	uint64_t offset, bytes; /* of what is stored, in the file that the archive is in */
	uint32_t crc;           /* CRC-32 by the directory, 0: it has none */
	bool compressed;        /* so that these are not the member's own bytes */
};

struct xfp_zip {
	struct xfp_zip_member *members; /* sorted by name, no two alike; folders are left out */
	uint32_t count;
	uint32_t first; /* the member that the directory has first */
};

/* Anything wrong with the archive is XFP_BAD_INPUT. `fd` is the file of `place`, whose `bytes` are what there is of it.
 * What is read is not kept but for names and places: about as much as the directory takes. */
enum xfp_status xfp_zip_read(int fd, const struct xfp_place *place, struct xfp_zip *out, struct xfp_error *err);
/* Add to the checkpoint's counts of members and of those without a CRC-32. */
void xfp_zip_count(const struct xfp_zip *zip, struct xfp_checkpoint *checkpoint);
void xfp_zip_free(struct xfp_zip *zip); /* one that was never filled in must be zero */

/* NULL: there is none of that name. */
const struct xfp_zip_member *xfp_zip_find(const struct xfp_zip *zip, const char *name);

#endif
