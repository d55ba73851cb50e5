/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale.h - from source weights w to the scaled weights x that everything is fitted on, and back.
 *
 *   x(r, c) = RN32( w(r, c) * 2^(d[c]/4) * 2^s )        RN32: rounded once to f32
 *   w'(r, c) = RN32( RN32( x'(r, c) * 2^(-d[c]/4) ) * 2^-s )
 *
 * d, one byte a column and unit, is the balance; 2^(d/4) and 2^(-d/4) mean the f32 numbers that
 * xfp_balance_up and xfp_balance_down return. s, one exponent a matrix, puts the largest |x| of
 * the matrix in [2^13, 2^14).
 */
#ifndef XFP_SCALE_H
#define XFP_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

float xfp_balance_up(uint8_t d);   /* 2^(d/4) */
float xfp_balance_down(uint8_t d); /* 2^(-d/4) */
float xfp_exp2i(int exponent);     /* 2^exponent as f32, also subnormal; 0 or infinity beyond */

/* Every column's 2^(d/4) * 2^s, as f32 and as double. True when the f32 ones are exact and far from
 * the ends of the range, so that multiplying by them rounds once; otherwise xfp_scale_row_wide does it. */
bool xfp_scale_factors(const uint8_t *balance, int exponent, size_t cols, float *narrow, double *wide);

/* Row of w -> row of x. In place is fine. (With the f32 factors it is a plain product, see encode.h.) */
void xfp_scale_row_wide(const float *w, const double *wide, size_t cols, float *x);

/* Row of reconstructed x' -> row of w'. `down` is xfp_balance_down of every column, or NULL when the
 * unit is not balanced. In place is fine. */
void xfp_unscale_row(const float *x, const float *down, int exponent, size_t cols, float *w);

#endif
