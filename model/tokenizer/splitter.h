/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splitter.h - pre-tokenization: split a text into pieces before they are encoded.
 */
#ifndef XFP_TOKENIZER_SPLITTER_H
#define XFP_TOKENIZER_SPLITTER_H

#include "model/tokenizer/member.h"
#include "model/tokenizer/unicode/growable.h"

struct xfp_splitter; /* NULL is a splitter that does not split */

/* Parse "pre_tokenizer" of the file, which may be null. */
struct xfp_splitter *xfp_splitter_open(struct xfp_part_reader *r, const json_t *value);
void xfp_splitter_free(struct xfp_splitter *splitter);

/* Split the pieces that are not tokens yet. */
enum xfp_status xfp_split(const struct xfp_splitter *splitter, const struct xfp_tokenizer_watch *watch,
			  struct xfp_pattern_budget *budget, struct xfp_pieces *pieces, struct xfp_error *err);

/* The prefix scheme of a Metaspace; for its decoder, too. */
enum xfp_metaspace { XFP_METASPACE_ALWAYS, XFP_METASPACE_FIRST, XFP_METASPACE_NEVER };
enum xfp_metaspace xfp_metaspace_scheme(struct xfp_part_reader *r, const char *where, const json_t *value);
/* The replacement of a Metaspace: one character. "" after a failure. */
const char *xfp_metaspace_replacement(struct xfp_part_reader *r, const char *where, const json_t *value);

#endif
