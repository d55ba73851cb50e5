/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.h - generate texts from prompts.
 *
 *     struct xfp_generation g = { .request = ..., .callbacks = ... };
 *     xfp_prompts_read(&g, err), then xfp_generate(&g, err)
 *     ... results: g.texts[0 ... g.count)
 *     xfp_generation_close(&g)
 */
#ifndef XFP_GENERATE_H
#define XFP_GENERATE_H

#include "model/generate/generation.h"

/* Open the model and generate the texts of all prompts. XFP_BAD_INPUT if the model or a prompt is unusable; XFP_FAILED
 * if the memory limit is too low. XFP_OK also if callbacks stop it: unfinished texts then have an end of their own. */
enum xfp_status xfp_generate(struct xfp_generation *g, struct xfp_error *err);
void xfp_generation_close(struct xfp_generation *g);

#endif
