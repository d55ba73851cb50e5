/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_EVALUATE_BATCHING_H
#define XFP_EVALUATE_BATCHING_H

#include "model/evaluate/evaluation.h"

/* Set e->batching to what the memory limit allows. XFP_FAILED if it does not allow one sequence. */
enum xfp_status xfp_evaluation_batching(struct xfp_evaluation *e, struct xfp_error *err);

#endif
