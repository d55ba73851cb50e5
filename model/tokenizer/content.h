/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.h - the content of a tokenizer.json, which files of other formats are converted to.
 */
#ifndef XFP_TOKENIZER_CONTENT_H
#define XFP_TOKENIZER_CONTENT_H

#include "model/tokenizer/member.h"
#include "model/tokenizer/tokenizer.h"

/* Convert a file. `config` is the content of tokenizer_config.json, or NULL if that file does not exist. Returns NULL
 * after a failure; the caller owns the result. */
typedef json_t *xfp_content_reader(struct xfp_part_reader *r, const char *bytes, size_t size, const json_t *config);

xfp_content_reader xfp_json_content;     /* JSON, unchanged */
xfp_content_reader xfp_tiktoken_content; /* a line "BASE64 RANK" per token */
xfp_content_reader xfp_bert_content;     /* vocab.txt: a line per token */

/* The tokens of added_tokens_decoder in tokenizer_config.json, as the list "added_tokens". NULL after a failure. */
json_t *xfp_content_added(struct xfp_part_reader *r, const json_t *config);

/* The lines of a text: the next one, without its end, in `line`, with a NUL. False at the end, or out of memory. */
struct xfp_content_lines {
	const char *at, *end;
	size_t number; /* of the line, from 0 */
	struct xfp_growable line;
};
bool xfp_content_line(struct xfp_part_reader *r, struct xfp_content_lines *lines);

/* The size of the first part of a text, as Kimi's tokenizer divides texts before anything else. `done` begins as 0. */
size_t xfp_tiktoken_part(const char *text, size_t size, uint32_t *done);

/* Open a tokenizer from content. */
enum xfp_status xfp_tokenizer_open_content(xfp_content_reader *read, const char *bytes, size_t size, const char *shown,
					   const json_t *config, struct xfp_tokenizer **tokenizer,
					   struct xfp_error *err);

#endif
