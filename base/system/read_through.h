/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_through.h - read a file, or a range of it, in blocks.
 */
#ifndef XFP_READ_THROUGH_H
#define XFP_READ_THROUGH_H

#include <stddef.h>
#include <stdint.h>

#include "base/system/signals.h"
#include "base/xfp_error.h"

#define XFP_TO_THE_END UINT64_MAX

/* Read `bytes` bytes from `offset` on, and pass them to `sink` block by block; all blocks but the last have the same
 * size. The file must be a regular one. XFP_FAILED also if one of `signals` (NULL: none), polled before each block, has
 * arrived. */
enum xfp_status xfp_read_through(const char *path, uint64_t offset, uint64_t bytes, struct xfp_signals *signals,
				 void (*sink)(void *context, const void *data, size_t size), void *context,
				 struct xfp_error *err);
/* SHA-256 of a whole regular file in hex, as printed by sha256sum. */
enum xfp_status xfp_sha256_file(const char *path, struct xfp_signals *signals, char hex[65], struct xfp_error *err);

#endif
