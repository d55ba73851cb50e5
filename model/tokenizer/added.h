/* SPDX-License-Identifier: Apache-2.0 */
/*
 * added.h - added tokens: found in a text before it is split, without regard to merges.
 */
#ifndef XFP_TOKENIZER_ADDED_H
#define XFP_TOKENIZER_ADDED_H

#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/vocabulary.h"

struct xfp_added;

/* Parse "added_tokens" of the file. NULL after a failure. */
struct xfp_added *xfp_added_open(struct xfp_part_reader *r, const json_t *list, const struct xfp_vocabulary *vocabulary,
				 const struct xfp_normalizer *normalizer);
void xfp_added_free(struct xfp_added *added);

/* The token's text, normalized if it is matched in normalized text. NULL if no added token has this id. */
const char *xfp_added_text(const struct xfp_added *added, uint32_t id, size_t *size, bool *special);
/* -1 if no added token has this text. */
int64_t xfp_added_find(const struct xfp_added *added, const char *text);
/* One more than the largest id. */
uint32_t xfp_added_ids(const struct xfp_added *added);

/* Split a text into pieces: added tokens, and normalized text between them. `pieces` is empty. */
enum xfp_status xfp_added_split(const struct xfp_added *added, const struct xfp_normalizer *normalizer,
				struct xfp_pattern_budget *budget, const struct xfp_growable *text,
				struct xfp_pieces *pieces, struct xfp_error *err);

#endif
