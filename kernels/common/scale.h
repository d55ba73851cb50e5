/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale.h - convert source weights w to the scaled weights x that all methods fit, and back.
 *
 *   x(r, c) = RN32( w(r, c) * 2^(d[c]/4) * 2^s )        RN32: rounded once to f32
 *   w'(r, c) = RN32( RN32( x'(r, c) * 2^(-d[c]/4) ) * 2^-s )
 *
 * d, one byte per column of a unit, is the balance; 2^(d/4) and 2^(-d/4) are the f32 numbers that xfp_balance_up and
 * xfp_balance_down return. s, one exponent per matrix, puts the largest |x| of the matrix in [2^13, 2^14).
 */
#ifndef XFP_SCALE_H
#define XFP_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

float xfp_balance_up(uint8_t d);   /* 2^(d/4) */
float xfp_balance_down(uint8_t d); /* 2^(-d/4) */
float xfp_exp2i(int exponent);     /* 2^exponent as f32, also subnormal; 0 or infinity outside the range */

/* Compute every column's factor 2^(d/4) * 2^s, as f32 and as double. Returns true if the f32 factors are exact and well
 * within the range, so that multiplying by them rounds once; otherwise use xfp_scale_row_wide. */
bool xfp_scale_factors(const uint8_t *balance, int exponent, size_t cols, float *narrow, double *wide);

/* Scale a row of w to x; in place is allowed. (With the f32 factors it is a plain product, see encode.h.) */
void xfp_scale_row_wide(const float *w, const double *wide, size_t cols, float *x);

/* Convert a row of reconstructed x' to w'. `down` is xfp_balance_down of every column, or NULL if the unit is not
 * balanced. In place is allowed. */
void xfp_unscale_row(const float *x, const float *down, int exponent, size_t cols, float *w);

#endif
