/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_PROMPTS_H
#define XFP_PROMPTS_H

#include "model/generate/generation.h"

/* Read g->request.prompt or g->request.batch into g->texts. */
enum xfp_status xfp_prompts_read(struct xfp_generation *g, struct xfp_error *err);

#endif
