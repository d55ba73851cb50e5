/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splitter.h - how a text is cut into pieces before these become tokens.
 */
#ifndef XFP_TOKENIZER_SPLITTER_H
#define XFP_TOKENIZER_SPLITTER_H

#include "model/tokenizer/growable.h"
#include "model/tokenizer/member.h"

struct xfp_splitter; /* NULL is one that leaves a text whole */

/* Of the file's "pre_tokenizer", which may be null. */
struct xfp_splitter *xfp_splitter_open(struct xfp_part_reader *r, const json_t *value);
void xfp_splitter_free(struct xfp_splitter *splitter);

/* Cut the pieces that are no tokens yet. */
enum xfp_status xfp_split(const struct xfp_splitter *splitter, const struct xfp_tokenizer_watch *watch,
			  struct xfp_pattern_budget *budget, struct xfp_pieces *pieces, struct xfp_error *err);

/* What members of a Metaspace say of its prefix; for its decoder, too. */
enum xfp_metaspace { XFP_METASPACE_ALWAYS, XFP_METASPACE_FIRST, XFP_METASPACE_NEVER };
enum xfp_metaspace xfp_metaspace_scheme(struct xfp_part_reader *r, const char *where, const json_t *value);
/* Its replacement: one character. "" after a failure. */
const char *xfp_metaspace_replacement(struct xfp_part_reader *r, const char *where, const json_t *value);

#endif
