/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.h - the tokens of a GGUF file by number and by text, and their merges. Private to checkpoints/gguf/.
 *
 * Errors are returned as static text, because the model can be used without a tokenizer.
 */
#ifndef XFP_GGUF_VOCABULARY_H
#define XFP_GGUF_VOCABULARY_H

#include "base/xfp_error.h"
#include "checkpoints/gguf/metadata.h"

/* The values are the format's. */
enum xfp_gguf_token_type {
	XFP_GGUF_TOKEN_NORMAL = 1,
	XFP_GGUF_TOKEN_UNKNOWN,
	XFP_GGUF_TOKEN_CONTROL,
	XFP_GGUF_TOKEN_USER,   /* found as a whole anywhere in a text */
	XFP_GGUF_TOKEN_UNUSED, /* a row that no text produces */
	XFP_GGUF_TOKEN_BYTE,
};

struct xfp_gguf_vocabulary {
	struct xfp_gguf_text *tokens; /* [count], borrowed from the metadata, except respelled spaces */
	uint8_t *types;               /* [count] enum xfp_gguf_token_type; 0 if unspecified */
	uint32_t count;
	uint32_t *slots; /* [mask + 1] numbers by the hashes of texts, or UINT32_MAX */
	uint64_t mask;
	uint64_t *powers; /* [longest + 1] powers of the hash's base */
	uint64_t longest; /* length of the longest token, in bytes */
	char *spelled;
};

/* Read the tokens. `spaces`: respell tokens of several spaces with U+2581, which a converter had replaced. *wrong is
 * NULL or an error. The caller frees the vocabulary in any case. */
enum xfp_status xfp_gguf_vocabulary_read(struct xfp_gguf_vocabulary *vocabulary,
					 const struct xfp_gguf_metadata *metadata, bool spaces, const char **wrong);
void xfp_gguf_vocabulary_free(struct xfp_gguf_vocabulary *vocabulary);

/* Return the number of a token, or UINT32_MAX. */
uint32_t xfp_gguf_vocabulary_find(const struct xfp_gguf_vocabulary *vocabulary, const char *bytes, uint64_t length);

/* Return whether a token is converter padding, such as "[PAD32001]" for row 32001, if a model has more rows than
 * tokens. */
bool xfp_gguf_vocabulary_pads(const struct xfp_gguf_vocabulary *vocabulary, uint32_t token);

/* Two tokens that merge to one; earlier merges have priority. */
struct xfp_gguf_merge {
	uint32_t left, right;
};
struct xfp_gguf_merges {
	struct xfp_gguf_merge *merges;
	uint32_t count;
	bool spaced; /* a token contains a space */
};

/* Read the merges that the file lists. */
enum xfp_status xfp_gguf_merges_read(struct xfp_gguf_merges *merges, const struct xfp_gguf_vocabulary *vocabulary,
				     const struct xfp_gguf_value *listed, const char **wrong);
/* Derive merges from the vocabulary: all pairs of tokens that join to a third, by descending score of the third (by its
 * number if `scores` is NULL), then by descending length of the left token. */
enum xfp_status xfp_gguf_merges_derive(struct xfp_gguf_merges *merges, const struct xfp_gguf_vocabulary *vocabulary,
				       const struct xfp_gguf_value *scores, const char **wrong);

#endif
