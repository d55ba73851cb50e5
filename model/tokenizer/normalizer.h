/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalizer.h - normalization of a text before it is split.
 */
#ifndef XFP_TOKENIZER_NORMALIZER_H
#define XFP_TOKENIZER_NORMALIZER_H

#include "model/tokenizer/member.h"
#include "model/tokenizer/unicode/growable.h"

struct xfp_normalizer; /* NULL is a normalizer that changes nothing */

/* Parse "normalizer" of the file, which may be null. */
struct xfp_normalizer *xfp_normalizer_open(struct xfp_part_reader *r, const json_t *value);
void xfp_normalizer_free(struct xfp_normalizer *normalizer);

/* Normalize a text in place: well-formed UTF-8, before and after. */
enum xfp_status xfp_normalize(const struct xfp_normalizer *normalizer, struct xfp_pattern_budget *budget,
			      struct xfp_growable *text, struct xfp_error *err);

#endif
