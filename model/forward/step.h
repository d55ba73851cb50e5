/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - run the next tokens of some sequences through the whole model.
 */
#ifndef XFP_STEP_H
#define XFP_STEP_H

#include "model/forward/forward.h"

/* Run segments[count], whose ids are consecutive, through all layers, and commit them to the KV cache.
 * logits[count][vocabulary] are those after the last token of each segment. XFP_BAD_INPUT as from xfp_forward_begin and
 * xfp_forward_embed, and if activations are not finite: the message names the layer. */
enum xfp_status xfp_forward_step(struct xfp_forward *forward, const struct xfp_segment *segments, size_t count,
				 const uint32_t *ids, float *logits, struct xfp_error *err);

#endif
