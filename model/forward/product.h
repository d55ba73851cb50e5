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

/* The most rows and vectors that are multiplied at a time, the columns of them that are converted to double at a time,
 * and the doubles of scratch memory. */
#define XFP_PRODUCT_ROWS 64
#define XFP_PRODUCT_VECTORS 128
#define XFP_PRODUCT_COLS 128
#define XFP_PRODUCT_SCRATCH ((XFP_PRODUCT_ROWS + XFP_PANEL) * XFP_PRODUCT_COLS + XFP_PRODUCT_ROWS * XFP_PRODUCT_VECTORS)

/* Floats in the panels of `count` vectors. */
size_t xfp_panels_size(size_t count, size_t cols);

/* Interleave vectors, `stride` elements from one to the next, into panels. The last panel is padded with zeros. */
void xfp_panels(const float *x, size_t stride, size_t count, size_t cols, float *panels);

/* Multiply up to XFP_PRODUCT_ROWS consecutive rows by up to XFP_PRODUCT_VECTORS vectors: y[t * stride + r]. */
void xfp_product_rows(const float *w, size_t rows, size_t cols, const float *panels, size_t count, double *scratch,
		      float *y, size_t stride);

#endif
