/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lloyd.h - fit one row's codebook of 2^k entries by Lloyd's iteration, on a histogram.
 *
 * The row's unmarked scaled weights are rounded to eight significant bits (to nearest, ties away from zero) and
 * counted: one cell for every eight-bit number of either sign within 15 octaves below the row's largest magnitude, and
 * one for smaller ones, which count as zero. For a row of bf16 weights without balance the histogram is exact. Prefix
 * counts and sums over the cells are integers, exact in any order. With them, each boundary of each round costs one
 * look-up, whatever the length of the row:
 *
 *   cell j    of the quantizer contains the numbers that are <= (c[j] + c[j+1]) / 2 and in no lower cell
 *   c[j]      becomes their sum divided by their count; an empty cell keeps its entry
 *
 * in doubles, each operation rounded once, until no number changes its cell or the rounds are used up. Entries are
 * rounded to fp16. If the largest magnitude is at most 2^-25, all entries are zero.
 *
 * Starts: `companded`, c[j] = the number of rank floor(p_j n), p_j = Phi(sqrt(3) Phi^-1((j + 1/2) / 2^k)) (the density
 * of an optimal quantizer is proportional to the cube root of the data's density); `quantile`, p_j = (j + 1/2) / 2^k;
 * `minmax`, c[j] = min + (max - min) (j / (2^k - 1)).
 */
#ifndef XFP_LLOYD_H
#define XFP_LLOYD_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/encode/encode.h"

#define XFP_MIN_K 2
#define XFP_MAX_K 6

/* The values of enum xfp_start of schemas/parameters.h. */
enum { XFP_LLOYD_COMPANDED, XFP_LLOYD_QUANTILE, XFP_LLOYD_MINMAX };

struct xfp_lloyd_row {
	struct xfp_cells cells; /* first, for the alignment of its vectors: that of the row, 64 bytes for speed */
	size_t count;           /* unmarked weights; 0 also if all are too small for fp16 */
	double unit;            /* unit of the cells' values, a power of two */
};

/* Initialize a row buffer; call once before rows are loaded. */
void xfp_lloyd_init(struct xfp_lloyd_row *row);

/* Load a padded row in which `marked` weights, which the fit ignores, are zero. `largest` is the largest |x| of the
 * others. */
void xfp_lloyd_load(struct xfp_lloyd_row *row, const float *x, float largest, size_t marked, size_t cols);

/* Fit the loaded row for each of `count` different k: 2^k fp16 entries each, ascending; zeros if the row is empty. */
void xfp_lloyd_fit(const struct xfp_lloyd_row *row, const unsigned *k, unsigned count, int start, unsigned rounds,
		   uint16_t *const *codebook);

#endif
