/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.h - the tokens of a model, by text and by id.
 */
#ifndef XFP_TOKENIZER_VOCABULARY_H
#define XFP_TOKENIZER_VOCABULARY_H

#include "model/tokenizer/member.h"
#include "model/tokenizer/unicode/growable.h"

struct xfp_vocabulary;

/* Parse the "vocab" of a model: an object of ids. NULL after a failure. */
struct xfp_vocabulary *xfp_vocabulary_open(struct xfp_part_reader *r, const json_t *object);
void xfp_vocabulary_free(struct xfp_vocabulary *vocabulary);

/* -1 if no token has this text. */
int64_t xfp_vocabulary_find(const struct xfp_vocabulary *vocabulary, const char *text, size_t size);
/* Return the token that consists of two tokens; -1 if no token does. */
int64_t xfp_vocabulary_joined(const struct xfp_vocabulary *vocabulary, uint32_t first, uint32_t second);
/* Find the longest token that consists of `prefix` and a start of the text of at least one character. Returns its size
 * without the prefix; 0 if no token does. */
size_t xfp_vocabulary_longest(const struct xfp_vocabulary *vocabulary, const char *prefix, const char *text,
			      size_t size, uint32_t *id);
/* NULL if no token has this id. */
const char *xfp_vocabulary_text(const struct xfp_vocabulary *vocabulary, uint32_t id, size_t *size);
/* One more than the largest id. */
uint32_t xfp_vocabulary_ids(const struct xfp_vocabulary *vocabulary);

/* A hash table has at least twice as many slots as entries, minus one. */
size_t xfp_hash_mask(size_t entries);
/* Limit of all probes of a hash table while it is filled: on average 64 per entry. Texts of tokens need two; without a
 * limit, a file with colliding hashes would need quadratic time. */
uint64_t xfp_probe_limit(size_t entries);

#endif
