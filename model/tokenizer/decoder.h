/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.h - tokens to text.
 *
 * A decoder is a chain of links that tokens pass through, each a string of bytes. A link passes text on as soon as no
 * later token can change it, so that text appears token by token.
 */
#ifndef XFP_TOKENIZER_DECODER_H
#define XFP_TOKENIZER_DECODER_H

#include "model/tokenizer/member.h"
#include "model/tokenizer/unicode/growable.h"

struct xfp_decoder_chain;

/* Parse "decoder" of the file; null puts a blank between tokens. NULL after a failure. */
struct xfp_decoder_chain *xfp_decoder_chain_open(struct xfp_part_reader *r, const json_t *value);
void xfp_decoder_chain_free(struct xfp_decoder_chain *chain);

/* A text that is being decoded. */
struct xfp_decoder_run;

struct xfp_decoder_run *xfp_decoder_run_begin(const struct xfp_decoder_chain *chain); /* NULL if out of memory */
void xfp_decoder_run_free(struct xfp_decoder_run *run);
/* Add a token or, once, the end of the text, and append the text that became certain. False if out of memory. */
bool xfp_decoder_run_add(struct xfp_decoder_run *run, const char *token, size_t size, struct xfp_growable *out);
bool xfp_decoder_run_end(struct xfp_decoder_run *run, struct xfp_growable *out);

#endif
