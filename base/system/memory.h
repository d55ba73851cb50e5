/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - aligned buffers.
 */
#ifndef XFP_MEMORY_H
#define XFP_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* Allocate a zeroed buffer at a multiple of 64 bytes; the caller frees it. NULL: memory runs out. */
static inline void *xfp_aligned_new(size_t bytes)
{
	const size_t all = xfp_align(bytes ? bytes : 1, 64);
	void *buffer = aligned_alloc(64, all);

	if (buffer)
		memset(buffer, 0, all);
	return buffer;
}

#endif
