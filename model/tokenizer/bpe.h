/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe.h - byte-pair encoding: merges of pairs of tokens, in order of priority.
 */
#ifndef XFP_TOKENIZER_BPE_H
#define XFP_TOKENIZER_BPE_H

#include "model/tokenizer/token_ids.h"
#include "model/tokenizer/vocabulary.h"

struct xfp_bpe;

/* Parse "model" of the file, except for its "vocab". NULL after a failure. */
struct xfp_bpe *xfp_bpe_open(struct xfp_part_reader *r, const json_t *model, const struct xfp_vocabulary *vocabulary);
void xfp_bpe_free(struct xfp_bpe *bpe);

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

#endif
