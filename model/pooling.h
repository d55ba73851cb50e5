/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling.h - the embedding of a text from an encoder's activations, as sentence-transformers computes it.
 */
#ifndef XFP_POOLING_H
#define XFP_POOLING_H

#include "model/model.h"

enum xfp_pooling_mode { XFP_POOL_MEAN, XFP_POOL_CLS, XFP_POOL_MAX };

struct xfp_pooling {
	enum xfp_pooling_mode mode;
	bool named;        /* modules.json names it; otherwise it is the mean, as in sentence-transformers */
	bool normalize;    /* embeddings have length 1 */
	uint32_t longest;  /* texts of more tokens are truncated; 0: no limit but the context */
	const char *title; /* "mean", "cls" or "max" */
};

/* Read modules.json, the config of its Pooling module, and sentence_bert_config.json, as far as the model has them.
 * XFP_BAD_INPUT: a module or a setting is not supported, or a file is missing or damaged. */
enum xfp_status xfp_pooling_read(const struct xfp_model *model, struct xfp_pooling *pooling, struct xfp_error *err);

/* embedding[width] of x[tokens][width], in double and rounded once; again after the normalization. */
void xfp_pool(const struct xfp_pooling *pooling, const float *x, size_t tokens, size_t width, float *embedding);

#endif
