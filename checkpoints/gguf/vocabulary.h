/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.h - the tokens of a GGUF file by number and by text, and the merges that make them. Private to
 * checkpoints/gguf/.
 *
 * What can be wrong with them is told by a static text, as the model is good without them.
 */
#ifndef XFP_GGUF_VOCABULARY_H
#define XFP_GGUF_VOCABULARY_H

#include "base/xfp_error.h"
#include "checkpoints/gguf/metadata.h"

/* The numbers are the format's. */
enum xfp_gguf_token_type {
	XFP_GGUF_TOKEN_NORMAL = 1,
	XFP_GGUF_TOKEN_UNKNOWN,
	XFP_GGUF_TOKEN_CONTROL,
	XFP_GGUF_TOKEN_USER,   /* taken whole wherever it stands in a text */
	XFP_GGUF_TOKEN_UNUSED, /* a row that no text leads to */
	XFP_GGUF_TOKEN_BYTE,
};

struct xfp_gguf_vocabulary {
	struct xfp_gguf_text *tokens; /* [count], borrowed from the metadata, but for spaces that are spelled anew */
	uint8_t *types;               /* [count] enum xfp_gguf_token_type; 0: the file does not say */
	uint32_t count;
	uint32_t *slots; /* [mask + 1] numbers by the hashes of texts, UINT32_MAX where there is none */
	uint64_t mask;
	uint64_t *powers; /* [longest + 1] of the hash's base */
	uint64_t longest; /* token, in bytes */
	char *spelled;
};

/* `spaces`: tokens of several spaces alone are spelled as U+2581, as they were before a converter spelled them so.
 * *wrong is NULL where all is well. Freed whatever comes of it. */
enum xfp_status xfp_gguf_vocabulary_read(struct xfp_gguf_vocabulary *vocabulary,
					 const struct xfp_gguf_metadata *metadata, bool spaces, const char **wrong);
void xfp_gguf_vocabulary_free(struct xfp_gguf_vocabulary *vocabulary);

/* Its number; UINT32_MAX: there is none. */
uint32_t xfp_gguf_vocabulary_find(const struct xfp_gguf_vocabulary *vocabulary, const char *bytes, uint64_t length);

/* What converters add where a model has more rows than tokens: "[PAD32001]" of row 32001. It is no token. */
bool xfp_gguf_vocabulary_pads(const struct xfp_gguf_vocabulary *vocabulary, uint32_t token);

/* Two tokens that become one; earlier merges come first. */
struct xfp_gguf_merge {
	uint32_t left, right;
};
struct xfp_gguf_merges {
	struct xfp_gguf_merge *merges;
	uint32_t count;
	bool spaced; /* some token of theirs has a space in it */
};

/* Those that the file lists. */
enum xfp_status xfp_gguf_merges_read(struct xfp_gguf_merges *merges, const struct xfp_gguf_vocabulary *vocabulary,
				     const struct xfp_gguf_value *listed, const char **wrong);
/* Those that the vocabulary implies: of every two tokens that make a third, those of the third with the highest score
 * first, or of the first number where `scores` is NULL; of the same, the longer left ones first. */
enum xfp_status xfp_gguf_merges_derive(struct xfp_gguf_merges *merges, const struct xfp_gguf_vocabulary *vocabulary,
				       const struct xfp_gguf_value *scores, const char **wrong);

#endif
