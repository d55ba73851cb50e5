/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splits.h - how texts are split before BPE merges, by llama.cpp's names (tokenizer.ggml.pre). Private to
 * checkpoints/gguf/.
 */
#ifndef XFP_GGUF_SPLITS_H
#define XFP_GGUF_SPLITS_H

#include <stdbool.h>

#include "checkpoints/gguf/metadata.h"

#define XFP_GGUF_MAX_SPLITS 6

struct xfp_gguf_splits {
	const char *normalizer;                  /* "NFC"; NULL: no normalization */
	const char *splits[XFP_GGUF_MAX_SPLITS]; /* expressions, one after the other, ending with NULL */
	bool digits;                             /* then isolate each digit */
	bool words;                              /* then split words like GPT-2 */
	bool whole;                              /* a word that is a token is not merged ("ignore_merges") */
	bool begins;                             /* default: add a token before a text */
};

/* Find the settings of a name; NULL if it is unknown. */
const struct xfp_gguf_splits *xfp_gguf_splits_find(const struct xfp_gguf_text *name);

#endif
