/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splits.h - how texts are split before tokens are merged, by the names that llama.cpp has for it (tokenizer.ggml.pre).
 * Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_SPLITS_H
#define XFP_GGUF_SPLITS_H

#include <stdbool.h>

#include "checkpoints/gguf/metadata.h"

#define XFP_GGUF_MOST_SPLITS 6

struct xfp_gguf_splits {
	const char *normalizer;                   /* "NFC"; NULL: texts are left as they are */
	const char *splits[XFP_GGUF_MOST_SPLITS]; /* expressions, one after the other, ending with NULL */
	bool digits;                              /* each apart, after all of these */
	bool words;                               /* as GPT-2 splits them, after all else */
	bool whole;                               /* what is a token as a whole is not merged ("ignore_merges") */
	bool begins;                              /* a text begins with a token where the file does not say */
};

/* NULL: nothing is known of that name. */
const struct xfp_gguf_splits *xfp_gguf_splits_find(const struct xfp_gguf_text *name);

#endif
