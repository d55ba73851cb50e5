/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.h - products of rows of f32 weights and many f32 vectors, with the same bits on every machine.
 *
 *     y[t][r] = RN32(sum over c of w[r][c] x[t][c])
 *
 * The sum is in double, in the order of columns. The product of two f32 numbers is exact in double, so fused
 * multiply-add gives the same sum. Vectors and rows are computed in parallel, but never columns of one sum, so the
 * number of lanes does not matter either.
 */
#ifndef XFP_PRODUCT_H
#define XFP_PRODUCT_H

#include <stddef.h>

#define XFP_PANEL 8 /* vectors that are interleaved: element c of all of them, then element c + 1 */
#define XFP_QUAD 4  /* rows that are interleaved the same way */

/* Floats in the panels of `count` vectors. */
size_t xfp_panels_size(size_t count, size_t cols);

/* Interleave vectors, `stride` elements from one to the next, into panels. The last panel is padded with zeros. */
void xfp_panels(const float *x, size_t stride, size_t count, size_t cols, float *panels);

/* Multiply up to XFP_QUAD consecutive rows by all vectors: y[t * stride + r]. `quad` is scratch memory for XFP_QUAD *
 * cols numbers. */
void xfp_product_rows(const float *w, size_t rows, size_t cols, const float *panels, size_t count, double *quad,
		      float *y, size_t stride);

#endif
