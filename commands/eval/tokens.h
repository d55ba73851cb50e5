/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.h - token ids: from a file that numpy.save wrote, or of a text.
 */
#ifndef XFP_TOKENS_H
#define XFP_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "model/weights/weights.h"

struct xfp_tokens {
	size_t sequences, length;
	uint32_t *ids;   /* sequence by sequence; the caller frees it */
	size_t left_out; /* of a text, tokens behind the last whole sequence */
};

/* Integers of 1 to 8 bytes, little-endian, [sequences, length], or [length] for one. XFP_BAD_INPUT when it is something
 * else, is cut off, or holds less than two tokens a sequence or a negative number. */
enum xfp_status xfp_tokens_read(const char *path, struct xfp_tokens *tokens, struct xfp_error *err);

/* A text, by the tokenizer.json that goes with the first of the models that has one (`other` may be NULL), in
 * sequences of `length` tokens that follow one another without a gap. Tokens that the tokenizer puts before a text
 * stand before each sequence and count as part of it; those that it puts behind one are left out, as are tokens that do
 * not fill a last sequence. A shorter text is one sequence. XFP_BAD_INPUT when there is no tokenizer, or less than two
 * tokens. */
enum xfp_status xfp_tokens_of_text(const char *path, const struct xfp_weights *model, const struct xfp_weights *other,
				   size_t length, struct xfp_tokens *tokens, struct xfp_error *err);

#endif
