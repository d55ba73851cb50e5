/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - the location of a checkpoint's bytes: a file, or a range of a file, such as a zip member. Private to
 * checkpoints/.
 */
#ifndef XFP_PLACE_H
#define XFP_PLACE_H

#include <stdint.h>

#include "base/system/file.h"
#include "base/xfp_error.h"

struct xfp_place {
	const char *path;  /* path of the file */
	const char *shown; /* name for messages */
	uint64_t offset;
	uint64_t bytes; /* size, or UINT64_MAX: to the end of the file */
};

static inline struct xfp_place xfp_place_of_file(const char *path)
{
	return (struct xfp_place){ path, path, 0, UINT64_MAX };
}

/* Open the file; return its size and identity. *fd stays open even if a later step fails. */
enum xfp_status xfp_place_open(const struct xfp_place *place, int *fd, uint64_t *bytes, struct xfp_identity *identity,
			       struct xfp_error *err);

/* Read everything to a new buffer, NUL-terminated. XFP_BAD_INPUT if it exceeds `limit` bytes. */
enum xfp_status xfp_place_slurp(const struct xfp_place *place, size_t limit, char **text, size_t *size,
				struct xfp_error *err);

#endif
