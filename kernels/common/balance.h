/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.h - the balance: one byte per column that equalizes the columns of a unit. scale.h documents its use.
 *
 * d[c] = min(255, E - e[c]),  e[c] = floor(2 A log2(mean square of column c) + 1/2),  E the largest e.
 * The mean square is over all rows of all matrices of the unit. With A = 1/2 a column is divided by
 * the square root of its rms; steps are quarter octaves. A column of zeros gets 255.
 *
 * Sums of squares are doubles: rows are added in order within chunks of 64 rows, chunks in order, and matrices in
 * order. The logarithm is computed by repeated squaring with 16 fraction bits, so that the result does not depend on
 * the math library.
 */
#ifndef XFP_BALANCE_H
#define XFP_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#define XFP_BALANCE_CHUNK 64 /* rows per call of column_scan (encode.h) */

/* Compute d [cols] from the column sums of squares over all `rows` rows. Overwrites `square` with e. `exponent` is A in
 * billionths; 0 makes all d 0. */
void xfp_balance(double *square, uint64_t rows, size_t cols, uint32_t exponent, uint8_t *d);

/* Compute the exponent s of a matrix (see scale.h) from the largest |w| of each column; 0 for a matrix of zeros. */
int xfp_matrix_exponent(const float *largest, const uint8_t *d, size_t cols);

#endif
