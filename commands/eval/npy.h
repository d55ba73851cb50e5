/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h - token ids from a file that numpy.save wrote.
 */
#ifndef XFP_NPY_H
#define XFP_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

struct xfp_tokens {
	size_t sequences, length;
	uint32_t *ids; /* sequence by sequence; the caller frees it */
};

/* Integers of 1 to 8 bytes, little-endian, [sequences, length], or [length] for one. XFP_BAD_INPUT when it is something
 * else, is cut off, or holds less than two tokens a sequence or a negative number. */
enum xfp_status xfp_tokens_read(const char *path, struct xfp_tokens *tokens, struct xfp_error *err);

#endif
