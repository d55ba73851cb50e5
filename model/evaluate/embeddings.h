/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVALUATE_EMBEDDINGS_H
#define XFP_EVALUATE_EMBEDDINGS_H

#include "model/evaluate/evaluation.h"

/* Compute e->embeddings of an encoder, and e->layers if there is a source, and write --embeddings. As many texts as
 * memory allows pass through all layers together, before the next ones do. XFP_FAILED if it does not allow the longest
 * one, and when stopped. */
enum xfp_status xfp_embed_texts(struct xfp_evaluation *e, struct xfp_error *err);

#endif
