/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.h - text to token ids and back, as a tokenizer.json says.
 *
 * Byte-level BPE, and BPE that falls back to bytes. Whatever the file asks for and this does not do is refused by its
 * name, as ids that are nearly right would make every measurement that follows nearly right, too.
 *
 * A tokenizer does not change once it is open: threads may share it.
 */
#ifndef XFP_TOKENIZER_H
#define XFP_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "model/tokenizer/token_ids.h"

struct xfp_tokenizer;

/* Of the bytes of a tokenizer.json, which are not needed afterwards. Messages name the file as `shown`. */
enum xfp_status xfp_tokenizer_open(const char *json, size_t size, const char *shown, struct xfp_tokenizer **tokenizer,
				   struct xfp_error *err);
void xfp_tokenizer_free(struct xfp_tokenizer *tokenizer);
/* Set a callback that xfp_tokenizer_encode asks every 2^20 steps of a regular expression and every 4096 pieces. When
 * it returns false, encoding fails with XFP_FAILED. Call this before threads share the tokenizer. */
void xfp_tokenizer_watch(struct xfp_tokenizer *tokenizer, bool (*goes_on)(void *context), void *context);

/* One more than the largest id. */
uint32_t xfp_tokenizer_ids(const struct xfp_tokenizer *tokenizer);
/* The id of a token spelt as the file spells it, such as "</s>". False: there is none. */
bool xfp_tokenizer_find(const struct xfp_tokenizer *tokenizer, const char *token, uint32_t *id);

/* Appends the ids of a text. What is no UTF-8 counts as U+FFFD, one for each longest beginning of a character that is
 * cut short, as Python's errors='replace' has it. `whole`: with the tokens that the file puts around a text. After a
 * failure `ids` holds what it did before. */
enum xfp_status xfp_tokenizer_encode(const struct xfp_tokenizer *tokenizer, const char *text, size_t size, bool whole,
				     struct xfp_token_ids *ids, struct xfp_error *err);

/* The text of some ids; ids that no token has stand for nothing. `plain`: special tokens are left out. The caller frees
 * `text`, behind which a NUL stands. */
enum xfp_status xfp_tokenizer_decode(const struct xfp_tokenizer *tokenizer, const uint32_t *ids, size_t count,
				     bool plain, char **text, size_t *size, struct xfp_error *err);

/* The same, token by token: all that is given out is, together, what decoding at once gives, and no piece of it ends
 * within a character. What depends on the tokens to come is held back until they have come. */
struct xfp_decoding;

enum xfp_status xfp_decoding_begin(const struct xfp_tokenizer *tokenizer, bool plain, struct xfp_decoding **decoding,
				   struct xfp_error *err);
/* The text that became certain, in memory of the decoding that its next call changes. Nothing follows the end. */
enum xfp_status xfp_decoding_add(struct xfp_decoding *decoding, uint32_t id, const char **text, size_t *size,
				 struct xfp_error *err);
enum xfp_status xfp_decoding_end(struct xfp_decoding *decoding, const char **text, size_t *size, struct xfp_error *err);
void xfp_decoding_free(struct xfp_decoding *decoding);

#endif
