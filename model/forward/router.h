/* SPDX-License-Identifier: Apache-2.0 */
/*
 * router.h - the experts of each token. Private to model/forward/.
 */
#ifndef XFP_ROUTER_H
#define XFP_ROUTER_H

#include "model/forward/forward.h"

/* Select experts for every token by the router of a layer. x is [token][hidden].
 *
 * weights: [token][experts]: the factor of each selected expert, 0 for the others. experts_per_token of them are
 *     selected for each token, never more, even if scores are NaN; a factor is 0 if its score is.
 *
 * The scores of a token are the softmax of its logits, or their sigmoids. The largest are selected, of equal ones the
 * lower number: with correction, the largest sums of score and correction; with groups, only in the groups with the
 * largest group scores. Factors are the scores, which sum to 1 if they are normalized, times the router's scale.
 *
 * XFP_BAD_INPUT if a tensor is damaged, or if scores are not finite, except those of a softmax without a correction,
 * XFP_FAILED if memory ran out. */
enum xfp_status xfp_forward_route(const struct xfp_forward *forward, uint32_t layer, const float *x, float *weights,
				  struct xfp_error *err);

#endif
