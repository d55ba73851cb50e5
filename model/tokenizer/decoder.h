/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.h - tokens as text.
 *
 * A decoder is a chain of links that tokens go through, each a row of bytes with an end. A link gives on what it can as
 * soon as nothing that may still come would change it, so that text appears as tokens do.
 */
#ifndef XFP_TOKENIZER_DECODER_H
#define XFP_TOKENIZER_DECODER_H

#include "model/tokenizer/growable.h"
#include "model/tokenizer/member.h"

struct xfp_decoder_chain;

/* Of the file's "decoder"; null puts a blank between tokens. NULL after a failure. */
struct xfp_decoder_chain *xfp_decoder_chain_open(struct xfp_part_reader *r, const json_t *value);
void xfp_decoder_chain_free(struct xfp_decoder_chain *chain);

/* A text that is being decoded. */
struct xfp_decoder_run;

struct xfp_decoder_run *xfp_decoder_run_begin(const struct xfp_decoder_chain *chain); /* NULL: out of memory */
void xfp_decoder_run_free(struct xfp_decoder_run *run);
/* One more token; or, once, the end of all. What they make certain is appended. False: out of memory. */
bool xfp_decoder_run_add(struct xfp_decoder_run *run, const char *token, size_t size, struct xfp_growable *out);
bool xfp_decoder_run_end(struct xfp_decoder_run *run, struct xfp_growable *out);

#endif
