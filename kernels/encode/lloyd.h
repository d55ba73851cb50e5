/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lloyd.h - one row's codebook of 2^k entries by Lloyd's iteration, on counts.
 *
 * The row's unmarked scaled weights are rounded to eight significant bits (to nearest, ties away from
 * zero) and counted: one cell for every number of eight bits, of either sign, within 15 octaves below
 * the row's largest magnitude, and one for what is smaller, which counts as zero. A row of bf16 weights
 * that is not balanced is its counts, exactly. Running counts and sums over the cells are integers,
 * exact in any order; with them each boundary of each round costs one look-up, whatever the length of
 * the row:
 *
 *   cell j    of the quantizer holds the numbers that are <= (c[j] + c[j+1]) / 2 and in no lower cell
 *   c[j]      becomes their sum divided by their count; an empty cell keeps its entry
 *
 * in doubles, each operation rounded once, until no number changes its cell or the rounds are used
 * up. Entries are rounded to fp16. A row whose largest magnitude is at most 2^-25 gets zeros.
 *
 * Starts: `companded`, c[j] = the number of rank floor(p_j n), p_j = Phi(sqrt(3) Phi^-1((j + 1/2) / 2^k)) (an
 * optimal quantizer's density goes with the cube root of the data's); `quantile`, p_j = (j + 1/2) / 2^k;
 * `minmax`, c[j] = min + (max - min) (j / (2^k - 1)).
 */
#ifndef XFP_LLOYD_H
#define XFP_LLOYD_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/encode/encode.h"

#define XFP_MIN_K 2
#define XFP_MAX_K 6

/* The numbers are those of enum xfp_start of schemas/parameters.h. */
enum { XFP_LLOYD_COMPANDED, XFP_LLOYD_QUANTILE, XFP_LLOYD_MINMAX };

struct xfp_lloyd_row {
	size_t count; /* unmarked weights; 0 too where all are too small for fp16 */
	double unit;  /* what a value of 1 in the cells is worth, a power of two */
	struct xfp_cells cells;
};

/* Once before rows are loaded. */
void xfp_lloyd_init(struct xfp_lloyd_row *row);

/* Take in a padded row, in which `marked` weights, which the fit ignores, are set to zero, and the largest |x| of
 * the others. */
void xfp_lloyd_load(struct xfp_lloyd_row *row, const float *x, float largest, size_t marked, size_t cols);

/* The codebooks of the loaded row for each of `count` different k: 2^k fp16 entries, ascending; zeros when the row
 * is empty. */
void xfp_lloyd_fit(const struct xfp_lloyd_row *row, const unsigned *k, unsigned count, int start, unsigned rounds,
		   uint16_t *const *codebook);

#endif
