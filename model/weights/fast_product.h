/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_product.h - products of rows in their stored type, by the kernels of libxfp: in f32, in any order.
 */
#ifndef XFP_FAST_PRODUCT_H
#define XFP_FAST_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "runtime/xfp.h"

/* Whether there are kernels for the type: f32, f16 and bf16. */
bool xfp_fast_dtype(enum xfp_dtype dtype);

/* y[t * stride + r] = w[r] x[t], for `rows` rows and `count` vectors of `cols`. */
enum xfp_status xfp_fast_product(struct xfp_team *team, enum xfp_dtype dtype, const void *w, size_t rows, size_t cols,
				 const float *x, size_t count, float *y, size_t stride, struct xfp_error *err);

#endif
