/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - the tokenizer among the files of a model.
 */
#ifndef XFP_TOKENIZER_FILES_H
#define XFP_TOKENIZER_FILES_H

#include "model/tokenizer/tokenizer.h"

/* The small files of a model. */
struct xfp_tokenizer_files {
	/* Read a file; *bytes is NULL if the model has none of this name. The caller frees it. */
	enum xfp_status (*read)(void *context, const char *name, char **bytes, size_t *size, struct xfp_error *err);
	void *context;
	const char *shown; /* name of the model in messages */
};

/* Open tokenizer.json, or else tiktoken.model or BERT's vocab.txt, as tokenizer_config.json describes it. *tokenizer is
 * NULL if the model has none of them. */
enum xfp_status xfp_tokenizer_open_files(const struct xfp_tokenizer_files *files, struct xfp_tokenizer **tokenizer,
					 struct xfp_error *err);

#endif
