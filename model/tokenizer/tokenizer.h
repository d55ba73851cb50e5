/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.h - text to token ids and back, by a tokenizer.json.
 *
 * Byte-level BPE, BPE with byte fallback, and WordPiece. Whatever the file asks for and this code does not support is
 * refused by name: with ids that are almost right, every measurement would be almost right, too.
 *
 * An open tokenizer does not change, so threads may share it.
 */
#ifndef XFP_TOKENIZER_H
#define XFP_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "model/tokenizer/token_ids.h"

struct xfp_tokenizer;

/* Open a tokenizer from the bytes of a tokenizer.json, which are not needed afterwards. Messages name the file as
 * `shown`. */
enum xfp_status xfp_tokenizer_open(const char *json, size_t size, const char *shown, struct xfp_tokenizer **tokenizer,
				   struct xfp_error *err);
void xfp_tokenizer_free(struct xfp_tokenizer *tokenizer);
/* Set a callback that xfp_tokenizer_encode asks every 2^20 steps of a regular expression and every 4096 pieces. When
 * it returns false, encoding fails with XFP_FAILED. Call this before threads share the tokenizer. */
void xfp_tokenizer_watch(struct xfp_tokenizer *tokenizer, bool (*should_continue)(void *context), void *context);

/* One more than the largest id. */
uint32_t xfp_tokenizer_ids(const struct xfp_tokenizer *tokenizer);
/* The id of a token by its text in the file, such as "</s>". False if there is none. */
bool xfp_tokenizer_find(const struct xfp_tokenizer *tokenizer, const char *token, uint32_t *id);

/* Append the ids of a text. Invalid UTF-8 becomes U+FFFD, one for each truncated character, as with Python's
 * errors='replace'. `whole`: with the tokens that the tokenizer adds around a text. A failure leaves `ids`
 * unchanged. */
enum xfp_status xfp_tokenizer_encode(const struct xfp_tokenizer *tokenizer, const char *text, size_t size, bool whole,
				     struct xfp_token_ids *ids, struct xfp_error *err);

/* Decode ids to text; ids without a token decode to nothing. `plain`: without special tokens. The text is
 * NUL-terminated, and the caller frees it. */
enum xfp_status xfp_tokenizer_decode(const struct xfp_tokenizer *tokenizer, const uint32_t *ids, size_t count,
				     bool plain, char **text, size_t *size, struct xfp_error *err);

/* Streaming decoding: the pieces together are the text of decoding at once, and none of them ends within a character.
 * Text that later tokens may change is held back. */
struct xfp_decoding;

enum xfp_status xfp_decoding_begin(const struct xfp_tokenizer *tokenizer, bool plain, struct xfp_decoding **decoding,
				   struct xfp_error *err);
/* The text that became certain, valid until the next call. Call xfp_decoding_end once, at the end. */
enum xfp_status xfp_decoding_add(struct xfp_decoding *decoding, uint32_t id, const char **text, size_t *size,
				 struct xfp_error *err);
enum xfp_status xfp_decoding_end(struct xfp_decoding *decoding, const char **text, size_t *size, struct xfp_error *err);
void xfp_decoding_free(struct xfp_decoding *decoding);

#endif
