/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe.h - byte-pair encoding: the tokens, and the merges of pairs of them, in order of priority.
 */
#ifndef XFP_TOKENIZER_BPE_H
#define XFP_TOKENIZER_BPE_H

#include "model/tokenizer/growable.h"
#include "model/tokenizer/member.h"
#include "model/tokenizer/token_ids.h"

struct xfp_bpe;

/* Parse "model" of the file. NULL after a failure. */
struct xfp_bpe *xfp_bpe_open(struct xfp_part_reader *r, const json_t *model);
void xfp_bpe_free(struct xfp_bpe *bpe);

/* -1 if no token has this text. */
int64_t xfp_bpe_find(const struct xfp_bpe *bpe, const char *text, size_t size);
/* NULL if no token has this id. */
const char *xfp_bpe_text(const struct xfp_bpe *bpe, uint32_t id, size_t *size);
/* One more than the largest id. */
uint32_t xfp_bpe_ids(const struct xfp_bpe *bpe);

/* Scratch memory for encoding one piece after another. Zeroed, it is empty. */
struct xfp_bpe_work {
	struct bpe_symbol *symbol;
	struct bpe_pair *heap;
	size_t count, symbols, pairs, heaped;
};

void xfp_bpe_work_free(struct xfp_bpe_work *work);
/* Append the ids of a piece of text, in O(n log n) for a piece of any length. */
enum xfp_status xfp_bpe_encode(const struct xfp_bpe *bpe, const char *text, size_t size, struct xfp_bpe_work *work,
			       struct xfp_token_ids *ids, struct xfp_error *err);

static inline bool xfp_ids_add(struct xfp_token_ids *ids, uint32_t id)
{
	if (ids->count == ids->capacity && !xfp_grow(&ids->id, sizeof *ids->id, ids->count, 1, &ids->capacity))
		return false;
	ids->id[ids->count++] = id;
	return true;
}

#endif
