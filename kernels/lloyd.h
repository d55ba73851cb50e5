/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lloyd.h - one row's codebook of 2^k entries by Lloyd's iteration, in integers.
 *
 * The row's unmarked scaled weights are sorted once and rounded once to q = RNE(x * 2^(39 - e)), e the
 * exponent of the largest |x|; prefix sums of q are exact in 64 bits. (A row of more than 2^22 weights
 * gets a bit less for each doubling, 38 and so on.) Then for every k and round:
 *
 *   cell j    holds the q that are <= floor((c[j] + c[j+1]) / 2) and in no lower cell: a midpoint
 *             goes to the lower entry
 *   c[j]      becomes floor((2 sum + n) / (2 n)), the mean of its cell; an empty cell keeps its entry
 *
 * until no cell changes or the rounds are used up: O(2^k log K) a round. Entries are c * 2^(e - 39)
 * rounded to fp16.
 *
 * Starts: `companded`, c[j] = the q of rank floor(p_j n), p_j = Phi(sqrt(3) Phi^-1((j + 1/2) / 2^k)) (an optimal
 * quantizer's density goes with the cube root of the data's); `quantile`, p_j = (j + 1/2) / 2^k;
 * `minmax`, c[j] = min + (max - min) j / (2^k - 1), rounded down.
 */
#ifndef XFP_LLOYD_H
#define XFP_LLOYD_H

#include <stddef.h>
#include <stdint.h>

#define XFP_MIN_K 2
#define XFP_MAX_K 6

/* The numbers are those of enum xfp_start of schemas/parameters.h. */
enum { XFP_LLOYD_COMPANDED, XFP_LLOYD_QUANTILE, XFP_LLOYD_MINMAX };

struct xfp_lloyd_row {
	size_t count;     /* unmarked weights */
	int shift;        /* q = RNE(x * 2^shift) */
	int64_t *q;       /* [cols] ascending */
	int64_t *prefix;  /* [cols + 1], prefix[i]: sum of the first i */
	uint32_t *key[2]; /* [cols] each, for sorting */
};

/* Bytes to hand to xfp_lloyd_init as `memory` (8-aligned) for rows of up to `cols` weights. */
size_t xfp_lloyd_bytes(size_t cols);
void xfp_lloyd_init(struct xfp_lloyd_row *row, size_t cols, void *memory);

/* Take in a row; `marked` (NULL: none) is non-zero at outliers, which the fit ignores. */
void xfp_lloyd_load(struct xfp_lloyd_row *row, const float *x, const uint8_t *marked, size_t cols);

/* The codebook of the loaded row: 2^k fp16 entries, ascending; zeros when the row is empty. */
void xfp_lloyd_fit(const struct xfp_lloyd_row *row, unsigned k, int start, unsigned rounds, uint16_t *codebook);

#endif
