/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - the tokens that a tokenizer puts around a text.
 */
#ifndef XFP_TOKENIZER_TEMPLATE_H
#define XFP_TOKENIZER_TEMPLATE_H

#include "model/tokenizer/bpe.h"

/* Zeroed, nothing is put around it; its owner frees both. */
struct xfp_template {
	struct xfp_token_ids before, behind;
};

/* Of the file's "post_processor", which may be null. Afterwards r tells whether it failed, and then both are empty. */
void xfp_template_read(struct xfp_part_reader *r, const json_t *value, struct xfp_template *around);

#endif
