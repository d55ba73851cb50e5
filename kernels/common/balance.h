/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.h - one byte a column that evens out the columns of a unit (scale.h says how it is used).
 *
 * d[c] = min(255, E - e[c]),  e[c] = floor(2 A log2(mean square of column c) + 1/2),  E the largest e.
 * The mean square is over all rows of all matrices of the unit. With A = 1/2 a column is divided by
 * the square root of its rms; steps are quarter octaves. A column of zeros gets 255.
 *
 * Sums of squares run in double: rows in their order within chunks of 64 rows, chunks added in their
 * order, matrices in theirs. The logarithm is taken by repeated squaring with 16 fraction bits, so
 * that no library function decides.
 */
#ifndef XFP_BALANCE_H
#define XFP_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#define XFP_BALANCE_CHUNK 64 /* rows to hand to column_scan of encode.h at a time */

/* Column sums of squares over `rows` rows in all -> d; they are used up: e takes their place. `exponent` is A in
 * billionths; 0 gives all 0. */
void xfp_balance(double *square, uint64_t rows, size_t cols, uint32_t exponent, uint8_t *d);

/* s for a matrix with these largest |w|: see scale.h. 0 for a matrix of zeros. */
int xfp_matrix_exponent(const float *largest, const uint8_t *d, size_t cols);

#endif
