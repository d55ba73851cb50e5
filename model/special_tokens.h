/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_SPECIAL_TOKENS_H
#define XFP_SPECIAL_TOKENS_H

#include "base/xfp_error.h"
#include "model/tokenizer/token_ids.h"

/* Append the ids of a member such as "eos_token_id" of a config, or of its text_config: a token or a list of tokens;
 * none if it is missing or null. `where` names the text in messages. */
enum xfp_status xfp_special_tokens(const char *config, const char *where, const char *member, struct xfp_token_ids *ids,
				   struct xfp_error *err);

#endif
