/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_TEXT_IDS_H
#define XFP_TEXT_IDS_H

#include "model/tokenizer/defects.h"
#include "model/tokenizer/tokenizer.h"

/* Token ids of a text, and those that the tokenizer adds before and after a text. */
struct xfp_text_ids {
	struct xfp_token_ids prefix, ids, suffix;
	char defects[XFP_TEXT_DEFECTS]; /* what looks unlike UTF-8 text, "" if nothing does; set after a failure, too */
};

/* Find the tokens that the tokenizer adds around a text; the caller frees them. */
enum xfp_status xfp_text_around(const struct xfp_tokenizer *tokenizer, struct xfp_token_ids *prefix,
				struct xfp_token_ids *suffix, struct xfp_error *err);
/* Encode a text; the caller frees the ids. */
enum xfp_status xfp_text_encode(const struct xfp_tokenizer *tokenizer, const char *text, size_t size,
				struct xfp_text_ids *ids, struct xfp_error *err);
void xfp_text_ids_free(struct xfp_text_ids *ids); /* may be called twice */

#endif
