/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_ids.h - a growable list of token ids.
 */
#ifndef XFP_TOKEN_IDS_H
#define XFP_TOKEN_IDS_H

#include "model/tokenizer/unicode/growable.h"

/* Zeroed, it is empty; its owner frees `id`. */
struct xfp_token_ids {
	uint32_t *id;
	size_t count, capacity;
};

/* False if out of memory. */
static inline bool xfp_ids_add(struct xfp_token_ids *ids, uint32_t id)
{
	if (ids->count == ids->capacity && !xfp_grow(&ids->id, sizeof *ids->id, ids->count, 1, &ids->capacity))
		return false;
	ids->id[ids->count++] = id;
	return true;
}

#endif
