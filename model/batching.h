/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batching.h - how many sequences pass through a model together within a memory limit. Results do not depend on it.
 */
#ifndef XFP_BATCHING_H
#define XFP_BATCHING_H

#include <stdint.h>

/* The largest number of sequences, from 1 to `all`, that need at most `memory` bytes; 1 if none does. `needed` returns
 * the bytes that this many sequences need, which grow with the number. */
uint64_t xfp_largest_batch(uint64_t all, uint64_t memory, uint64_t (*needed)(void *context, uint64_t sequences),
			   void *context);

/* Memory of this process: tables of the models, token ids. Pages of files do not count: how many are mapped depends on
 * the page cache. */
uint64_t xfp_resident_bytes(void);
/* Half of the memory that is available without swapping; UINT64_MAX if unknown. */
uint64_t xfp_default_memory(void);

#endif
