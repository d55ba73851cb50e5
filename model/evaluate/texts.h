/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVALUATE_TEXTS_H
#define XFP_EVALUATE_TEXTS_H

#include "model/evaluate/evaluation.h"

/* Set e->tokens, e->texts and e->embeddings.pooling of an encoder: each line of --text, or sequence of --tokens, is a
 * text. Lines are encoded one by one, and truncated as sentence-transformers does. Truncated and empty lines are
 * reported as a warning. XFP_BAD_INPUT: as of xfp_pooling_read; there is no tokenizer; or a text has no tokens, or more
 * than the model's context. */
enum xfp_status xfp_texts_read(struct xfp_evaluation *e, struct xfp_error *err);

#endif
