/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_GENERATED_TEXT_H
#define XFP_GENERATED_TEXT_H

#include "model/generate/generation.h"

enum xfp_status xfp_generated_text_begin(const struct xfp_generation *g, struct xfp_generated_text *w,
					 struct xfp_error *err);
/* Append a token, and set w->end if it ends the text. */
enum xfp_status xfp_generated_text_add(const struct xfp_generation *g, struct xfp_generated_text *w, uint32_t id,
				       struct xfp_error *err);
/* No token follows. */
enum xfp_status xfp_generated_text_end(const struct xfp_generation *g, struct xfp_generated_text *w,
				       struct xfp_error *err);
void xfp_generated_text_free(struct xfp_generated_text *w);

#endif
