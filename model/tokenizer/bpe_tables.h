/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe_tables.h - tokens by their text and by their id, and merges by their pair.
 */
#ifndef XFP_TOKENIZER_BPE_TABLES_H
#define XFP_TOKENIZER_BPE_TABLES_H

#include "model/tokenizer/bpe.h"

struct bpe_token {
	size_t at; /* in texts */
	uint32_t size, id;
};

struct bpe_merge {
	uint32_t left, right, rank, id; /* the pair, and what becomes of it */
};

#define BPE_NONE UINT32_MAX
#define BPE_LONGEST_AFFIXES 56

struct xfp_bpe {
	struct xfp_growable texts;
	struct bpe_token *token; /* by id */
	uint32_t tokens;
	uint32_t *by_text; /* open addressing: indices of tokens, or BPE_NONE */
	size_t text_mask;
	struct bpe_merge *merge; /* open addressing, too; rank BPE_NONE: empty */
	size_t merge_mask;
	char *prefix, *suffix; /* of what continues, or ends, a piece; "" */
	uint32_t unknown;      /* BPE_NONE: there is none */
	uint32_t byte[256];    /* <0x00> to <0xFF>; BPE_NONE: not a token */
	bool fuse_unknown, byte_fallback, ignore_merges;
};

/* The token of a pair that merges, NULL: it does not. */
const struct bpe_merge *bpe_merge_of(const struct xfp_bpe *bpe, uint32_t left, uint32_t right);

#endif
