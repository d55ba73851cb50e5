/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVALUATE_LAYERS_H
#define XFP_EVALUATE_LAYERS_H

#include "model/evaluate/evaluation.h"

/* Compute all layers after those of the saved state, then losses[tokens]. */
enum xfp_status xfp_evaluate_layers(struct xfp_evaluation *e, struct xfp_token_loss *losses, struct xfp_error *err);

#endif
