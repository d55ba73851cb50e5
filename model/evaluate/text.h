/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVALUATE_TEXT_H
#define XFP_EVALUATE_TEXT_H

#include "model/model.h"
#include "model/tokenizer/defects.h"
#include "model/tokens.h"

#define XFP_LARGEST_TEXT ((size_t)1 << 32)

/* Open the tokenizer of the first model that has one; `other` may be NULL. */
enum xfp_status xfp_evaluation_tokenizer(const struct xfp_model *model, const struct xfp_model *other,
					 struct xfp_tokenizer **tokenizer, struct xfp_error *err);

/* Encode a text with the tokenizer of the first model that has one (`other` may be NULL), and cut it into consecutive
 * sequences of `length` tokens. Each sequence starts with the tokens that the tokenizer adds before a text, which count
 * towards its length; tokens that it adds after a text, and those that do not fill the last sequence, are left out. A
 * shorter text is one sequence. `defects` describes what looks unlike UTF-8 text; it is empty if nothing does.
 * XFP_BAD_INPUT if there is no tokenizer, or the text has fewer than two tokens; XFP_USAGE if `length` leaves no room
 * for the text. */
enum xfp_status xfp_tokens_of_text(const char *path, const struct xfp_model *model, const struct xfp_model *other,
				   size_t length, struct xfp_tokens *tokens, char defects[XFP_TEXT_DEFECTS],
				   struct xfp_error *err);

#endif
