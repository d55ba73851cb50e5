/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.h - perplexity of a model on given tokens, and its distance from the source that it was quantized from.
 *
 *     struct xfp_evaluation e = { .request = ..., .callbacks = ... };
 *     xfp_evaluation_open(&e, err), then xfp_evaluation_run(&e, err)
 *     ... results: e.loss, e.layers
 *     xfp_evaluation_close(&e)
 */
#ifndef XFP_EVALUATE_H
#define XFP_EVALUATE_H

#include "model/evaluate/evaluation.h"

/* Open the models and read the tokens. XFP_BAD_INPUT if a file is unusable, or the source does not match the model. */
enum xfp_status xfp_evaluation_open(struct xfp_evaluation *e, struct xfp_error *err);
/* Compute the results, from the saved state on if there is one. XFP_FAILED if the memory limit does not allow one
 * sequence, and when stopped: finished layers are saved then. */
enum xfp_status xfp_evaluation_run(struct xfp_evaluation *e, struct xfp_error *err);
void xfp_evaluation_close(struct xfp_evaluation *e);

#endif
