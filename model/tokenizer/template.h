/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - the tokens that a tokenizer adds around a text.
 */
#ifndef XFP_TOKENIZER_TEMPLATE_H
#define XFP_TOKENIZER_TEMPLATE_H

#include "model/tokenizer/member.h"
#include "model/tokenizer/token_ids.h"

/* Zeroed, it adds nothing; its owner frees both. */
struct xfp_template {
	struct xfp_token_ids before, after;
};

/* Parse "post_processor" of the file, which may be null. If r has failed afterwards, both are empty. */
void xfp_template_read(struct xfp_part_reader *r, const json_t *value, struct xfp_template *around);

#endif
