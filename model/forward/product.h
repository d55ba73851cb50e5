/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.h - products of rows of f32 weights and many f32 vectors, with the same bits on every machine.
 *
 *     y[t][r] = RN32(sum over c of w[r][c] x[t][c])
 *
 * The sum is in double and in the order of columns, one after the other. A product of two f32 numbers is exact in
 * double, so it does not matter whether the multiplication is fused with the addition; and what goes on at the same
 * time are vectors and rows, never columns of one sum, so it does not matter how many.
 */
#ifndef XFP_PRODUCT_H
#define XFP_PRODUCT_H

#include <stddef.h>

#define XFP_PANEL 8 /* vectors that lie together: element c of all of them, then element c + 1 */
#define XFP_QUAD 4  /* rows, likewise */

/* Floats that the panels of `count` vectors take. */
size_t xfp_panels_size(size_t count, size_t cols);

/* Vectors, `stride` elements from one to the next, as panels; those that fill up the last are 0. */
void xfp_panels(const float *x, size_t stride, size_t count, size_t cols, float *panels);

/* Up to XFP_QUAD rows, which lie one after the other, by all vectors: y[t * stride + r]. `quad` has room for
 * XFP_QUAD * cols numbers. */
void xfp_product_rows(const float *w, size_t rows, size_t cols, const float *panels, size_t count, double *quad,
		      float *y, size_t stride);

#endif
