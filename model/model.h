/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a model to compute with: its weights, what its config describes, and its tokenizer.
 *
 *     struct xfp_model model;
 *     xfp_model_open("model.xfp", &model, err)
 *     xfp_model_tokenizer(&model, &tokenizer, err)
 *     xfp_forward_open(model.description, model.weights, ...)   (model/forward/forward.h)
 *     xfp_model_close(&model)
 *
 * xfp_forward_bytes (model/forward/memory.h) predicts the memory of a forward pass before anything is allocated.
 */
#ifndef XFP_MODEL_H
#define XFP_MODEL_H

#include "model/forward/description.h"
#include "model/tokenizer/tokenizer.h"
#include "model/weights/weights.h"

struct xfp_model {
	const char *name; /* as the caller gave it */
	char *path;       /* of the bundle, file or folder that was found */
	struct xfp_weights *weights;
	struct xfp_description *description;
};

/* Open a bundle, a checkpoint, or a model in the local Hugging Face cache. `name` is borrowed. XFP_BAD_INPUT if it is
 * not found, is damaged, or has an unsupported config. After a failure `model` may still be closed. */
enum xfp_status xfp_model_open(const char *name, struct xfp_model *model, struct xfp_error *err);
void xfp_model_close(struct xfp_model *model); /* no-op if zeroed */
/* XFP_BAD_INPUT if the model is an encoder, which cannot predict tokens. */
enum xfp_status xfp_model_check_decoder(const struct xfp_model *model, struct xfp_error *err);

/* Read the model's tokenizer.json, for the caller to free. *out is NULL if the model has none. */
enum xfp_status xfp_model_tokenizer(const struct xfp_model *model, struct xfp_tokenizer **out, struct xfp_error *err);

#endif
