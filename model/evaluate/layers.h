/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVALUATE_LAYERS_H
#define XFP_EVALUATE_LAYERS_H

#include "model/evaluate/evaluation.h"

/* XFP_BAD_INPUT if an activation after the layer is not finite; layer -1 is the word embedding. */
enum xfp_status xfp_check_finite(const struct xfp_evaluated *model, const float *x, size_t count, int64_t layer,
				 struct xfp_error *err);
/* Add |x - source|^2 / |source|^2 of each token to a sum, in the order of elements. Tokens whose source is all zeros do
 * not count. */
void xfp_add_errors(const float *x, const float *source, size_t tokens, size_t width, double *sum);

/* Compute all layers after those of the saved state, then losses[tokens]. */
enum xfp_status xfp_evaluate_layers(struct xfp_evaluation *e, struct xfp_token_loss *losses, struct xfp_error *err);

#endif
