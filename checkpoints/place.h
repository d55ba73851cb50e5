/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where bytes of a checkpoint are: in a file of their own, or in a range of one, as members of a zip are.
 * Private to checkpoints/.
 */
#ifndef XFP_PLACE_H
#define XFP_PLACE_H

#include <stdint.h>

#include "base/system/file.h"
#include "base/xfp_error.h"

struct xfp_place {
	const char *path;  /* of the file */
	const char *shown; /* what messages call it */
	uint64_t offset;
	uint64_t bytes; /* UINT64_MAX: to the end of the file */
};

static inline struct xfp_place xfp_whole_file(const char *path)
{
	return (struct xfp_place){ path, path, 0, UINT64_MAX };
}

/* Open the file, which is left open in `*fd` where this fails later, too; how many bytes are there, and whose. */
enum xfp_status xfp_place_open(const struct xfp_place *place, int *fd, uint64_t *bytes, struct xfp_identity *identity,
			       struct xfp_error *err);

/* All of it in a new buffer, NUL-terminated. More than `limit` bytes are XFP_BAD_INPUT. */
enum xfp_status xfp_place_slurp(const struct xfp_place *place, size_t limit, char **text, size_t *size,
				struct xfp_error *err);

#endif
