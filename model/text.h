/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_TEXT_IDS_H
#define XFP_TEXT_IDS_H

#include "model/tokenizer/defects.h"
#include "model/tokenizer/tokenizer.h"

/* Token ids of a text, and those that the tokenizer adds before a text. */
struct xfp_text_ids {
	struct xfp_token_ids prefix, ids;
	char defects[XFP_TEXT_DEFECTS]; /* what looks unlike UTF-8 text, "" if nothing does; set after a failure, too */
};

/* Encode a text; the caller frees the ids. Tokens that the tokenizer adds after a text are left out. */
enum xfp_status xfp_text_encode(const struct xfp_tokenizer *tokenizer, const char *text, size_t size,
				struct xfp_text_ids *ids, struct xfp_error *err);
void xfp_text_ids_free(struct xfp_text_ids *ids); /* may be called twice */

#endif
