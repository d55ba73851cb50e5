/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - the next tokens of some sequences, through the whole model.
 */
#ifndef XFP_STEP_H
#define XFP_STEP_H

#include "model/forward/forward.h"

/* Takes segments[count], ids one after the other, through all layers and into the past. logits[count][vocabulary] are
 * those behind the last token of each segment. XFP_BAD_INPUT as of xfp_forward_begin and xfp_forward_embed, and where
 * activations stop being finite numbers, with the number of the layer. */
enum xfp_status xfp_forward_step(struct xfp_forward *forward, const struct xfp_segment *segments, size_t count,
				 const uint32_t *ids, float *logits, struct xfp_error *err);

#endif
