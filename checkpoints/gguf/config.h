/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - config.json, made of a GGUF's metadata and of which tensors it has. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_CONFIG_H
#define XFP_GGUF_CONFIG_H

#include "base/text/text.h"
#include "checkpoints/gguf/arrange.h"

/* Makes config.json, which becomes the checkpoint's config. Of an architecture that is not known: nothing. Tensors that
 * it says otherwise are used then. */
enum xfp_status xfp_gguf_make_config(struct xfp_gguf_model *model);

/* ---- rope.c -------------------------------------------------------------------------------------- */

/* Where factors of frequencies are stored, the parameters that they follow from: writes "rope_scaling" and the comma
 * before it. Where none is known that give them, a note, and the tensor is kept. */
enum xfp_status xfp_gguf_rope_scaling(struct xfp_gguf_model *model, double theta, FILE *out);

/* ---- json.c -------------------------------------------------------------------------------------- */

/* A number as JSON has it, with as few digits as give the same f32. */
void xfp_gguf_print_real(FILE *out, double number);

#endif
