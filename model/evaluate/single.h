/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single.h - evaluate a model one token at a time with a KV cache, as xfp generate computes it: products with one
 * vector have kernels of their own, whose rounding differs.
 */
#ifndef XFP_EVALUATE_SINGLE_H
#define XFP_EVALUATE_SINGLE_H

#include "model/evaluate/evaluation.h"

/* Bytes that xfp_single_open allocates. */
uint64_t xfp_single_bytes(const struct xfp_evaluation *e);
/* Open a KV cache of one sequence for the evaluated model. xfp_single_close also works if it was not opened. */
enum xfp_status xfp_single_open(struct xfp_evaluation *e, struct xfp_error *err);
void xfp_single_close(struct xfp_evaluation *e);

/* Compute a layer for x[sequences][length][hidden]. */
enum xfp_status xfp_single_layer(const struct xfp_evaluation *e, uint32_t layer, size_t sequences, float *x,
				 struct xfp_error *err);

#endif
