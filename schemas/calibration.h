/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibration.h - what a conversion is calibrated with: token ids, and the model's layers. The file calibration.h5 of
 * the work folder.
 *
 * It has the form of an artifact (artifact.h) of kind "calibration", version 2, whose key is empty:
 *   attributes  sha256       SHA-256 of the length of a window and the ids, all little-endian uint32, in hex
 *               source       where they come from: "calibration-1", "text:SHA-256 of the file", "tokens", "self"
 *               description  XXH3-128 of the model description as text (model/forward/description_text.h), in hex
 *               model        path of the checkpoint
 *               identity     SHA-256 of the identities of its files and its config, in hex; of text that the model
 *                            generates, also of everything else that the tokens depend on
 *               body, head   prefix of the names of the model's tensors, "model."; name of the output head, which is
 *                            empty if that is the word embedding
 *               notes        for people, each followed by a newline
 *               layers, hidden, experts_per_token (0: no experts), windows, length
 *               memory       bytes that the step of a layer needs, for estimates
 *               generating   if /seconds exists: seconds of generating the tokens, with one thread; 0: they are here
 *   /ids        uint32 [windows * length]
 *   /seconds    float64 [layers + 1], only for estimates: of the step of each layer and of the head, with one thread
 */
#ifndef XFP_CALIBRATION_H
#define XFP_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/inputs.h"
#include "schemas/ledger.h"

#define XFP_CALIBRATION_FILE "calibration.h5"
#define XFP_CALIBRATION_KIND "calibration"
#define XFP_CALIBRATION_VERSION 2

/* `source`: xfp's own text, text of the model, token ids, or the prefix of the SHA-256 of a file of text. */
#define XFP_CALIBRATION_DEFAULT "calibration-1"
#define XFP_CALIBRATION_SELF "self"
#define XFP_CALIBRATION_TOKENS "tokens"
#define XFP_CALIBRATION_TEXT "text:"

struct xfp_calibration {
	char sha256[65], description[33], identity[65];
	char *source, *model, *body, *head, *notes;
	uint32_t layers, hidden, experts_per_token;
	uint64_t windows, length, memory;
	uint32_t *ids;   /* [windows][length] */
	double *seconds; /* [layers + 1]; NULL: not measured */
	double generating;
};

/* Read WORK/calibration.h5; *found is false if it does not exist. XFP_DAMAGED: xfp-calibrate --begin must write it
 * again. The caller frees it. */
enum xfp_status xfp_calibration_read(const char *work, struct xfp_calibration *calibration, bool *found,
				     struct xfp_error *err);
/* Write WORK/calibration.h5; sha256 is computed. */
enum xfp_status xfp_calibration_write(const char *work, struct xfp_calibration *calibration, struct xfp_error *err);
void xfp_calibration_free(struct xfp_calibration *calibration); /* frees all members; may be called twice */

/* Find the layer whose inputs a tensor multiplies; the output head is layer `layers`. False: none (embeddings, a vision
 * tower, layers beyond the model's). */
bool xfp_calibration_layer(const struct xfp_calibration *calibration, const char *tensor, uint32_t *layer);
/* The same for a unit's tensor. */
bool xfp_calibration_unit(const struct xfp_calibration *calibration, const struct xfp_ledger *ledger, uint32_t unit,
			  uint32_t *layer);

/* List the ledger's tensors that determine the inputs of a layer, besides those of the layer before, in order of name:
 * all tensors of the layer, in the first one the word embedding, or all embeddings of an encoder, too; after the last,
 * the final norm, which encoders do not have. Returns their count; `list` may be NULL. */
uint32_t xfp_calibration_tensors(const struct xfp_calibration *calibration, const struct xfp_ledger *ledger,
				 uint32_t layer, uint32_t *list);

/* These tensors with room for their digests. Names are the ledger's. After a failure there is nothing to
 * free. */
struct xfp_layer_sources {
	uint32_t *tensor; /* [count] */
	struct xfp_input_source *source;
	uint32_t count;
};
enum xfp_status xfp_layer_sources_list(struct xfp_layer_sources *sources, const struct xfp_calibration *calibration,
				       const struct xfp_ledger *ledger, uint32_t layer, struct xfp_error *err);
void xfp_layer_sources_free(struct xfp_layer_sources *sources);

#endif
