/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_through.h - a file, or a piece of one, read from end to end in blocks.
 */
#ifndef XFP_READ_THROUGH_H
#define XFP_READ_THROUGH_H

#include <stddef.h>
#include <stdint.h>

#include "base/system/signals.h"
#include "base/xfp_error.h"

#define XFP_TO_THE_END UINT64_MAX

/* `bytes` bytes from `offset` on, handed to `take` one block after the other, each but the last of the same size. The
 * file must be a regular one. `signals` (NULL: none) are asked before each block; one that came is XFP_FAILED. */
enum xfp_status xfp_read_through(const char *path, uint64_t offset, uint64_t bytes, struct xfp_signals *signals,
				 void (*take)(void *context, const void *data, size_t size), void *context,
				 struct xfp_error *err);

#endif
