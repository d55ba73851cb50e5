/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - synthesize config.json from a GGUF's metadata and tensors. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_CONFIG_H
#define XFP_GGUF_CONFIG_H

#include "base/text/text.h"
#include "checkpoints/gguf/arrange.h"

/* Synthesize config.json, which becomes the checkpoint's config; nothing for an unknown architecture. Marks tensors
 * that config.json replaces as used. */
enum xfp_status xfp_gguf_make_config(struct xfp_gguf_model *model);

/* ---- rope.c -------------------------------------------------------------------------------------- */

/* If frequency factors are stored, write the parameters that generate them: ", rope_scaling". If no known parameters
 * do, add a note and keep the tensor. */
enum xfp_status xfp_gguf_rope_scaling(struct xfp_gguf_model *model, double theta, FILE *out);

/* ---- json.c -------------------------------------------------------------------------------------- */

/* Print a number as JSON, with the fewest digits that reproduce the same f32. */
void xfp_gguf_print_real(FILE *out, double number);

#endif
