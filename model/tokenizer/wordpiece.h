/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wordpiece.h - WordPiece: of each word the longest token that begins it, then the longest that continues it.
 */
#ifndef XFP_TOKENIZER_WORDPIECE_H
#define XFP_TOKENIZER_WORDPIECE_H

#include "model/tokenizer/token_ids.h"
#include "model/tokenizer/vocabulary.h"

struct xfp_wordpiece;

/* Parse "model" of the file, except for its "vocab". NULL after a failure. */
struct xfp_wordpiece *xfp_wordpiece_open(struct xfp_part_reader *r, const json_t *model,
					 const struct xfp_vocabulary *vocabulary);
void xfp_wordpiece_free(struct xfp_wordpiece *wordpiece);

/* Append the ids of a word. A word without tokens, or with too many characters, is the unknown token. */
enum xfp_status xfp_wordpiece_encode(const struct xfp_wordpiece *wordpiece, const char *text, size_t size,
				     struct xfp_token_ids *ids, struct xfp_error *err);

#endif
