/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe_tables.h - merges by pair.
 */
#ifndef XFP_TOKENIZER_BPE_TABLES_H
#define XFP_TOKENIZER_BPE_TABLES_H

#include "model/tokenizer/bpe.h"

struct bpe_merge {
	uint32_t left, right, rank, id; /* the pair, its priority, and the merged token */
};

#define BPE_NONE UINT32_MAX
#define BPE_LONGEST_AFFIXES 56

struct xfp_bpe {
	const struct xfp_vocabulary *vocabulary;
	struct bpe_merge *merge; /* NULL: pairs merge to tokens, by id; open addressing; rank BPE_NONE: empty */
	size_t merge_mask;
	char *prefix, *suffix; /* prefix of tokens that continue a piece, suffix of those that end it; "" */
	uint32_t unknown;      /* unknown token; BPE_NONE: none */
	uint32_t byte[256];    /* <0x00> to <0xFF>; BPE_NONE: not a token */
	bool fuse_unknown, byte_fallback, ignore_merges;
};

/* The merge of a pair. False if it does not merge. */
bool bpe_merge_of(const struct xfp_bpe *bpe, uint32_t left, uint32_t right, struct bpe_merge *merge);

#endif
