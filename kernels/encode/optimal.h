/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimal.h - a row's codebooks with minimal squared error: exact one-dimensional k-means, on the histogram of lloyd.h.
 *
 * An optimal codebook's cells are runs of the n nonempty histogram cells. With N and S the prefix counts and sums, the
 * error of a run (a, b] is its sum of squares minus (S[b] - S[a])^2 / (N[b] - N[a]). So the fit computes
 *
 *     F[1][b] = S[b]^2 / N[b]
 *     F[m][b] = max over m - 1 <= a < b of  F[m - 1][a] + (S[b] - S[a])^2 / (N[b] - N[a])
 *
 * with the smallest a among equals; then, from F[2^k][n] back, the start of each run. The smallest best a never
 * decreases with b, so each layer is computed by divide and conquer: the middle b first, which bounds a on either side.
 * One pass through 2^k layers, for the largest requested k, serves every smaller k.
 *
 * Counts and sums are integers, exact in doubles; each operation on them is rounded once, in an order that does not
 * depend on the machine. Entry j is the mean of run j, rounded to fp16. If there are fewer numbers than entries, each
 * number is an entry and the last one is repeated.
 */
#ifndef XFP_OPTIMAL_H
#define XFP_OPTIMAL_H

#include <stdint.h>

#include "kernels/encode/lloyd.h"

struct xfp_optimal_buffers {
	double count[XFP_CELLS + 1], sum[XFP_CELLS + 1]; /* prefix sums of nonempty cells */
	double best[2][XFP_CELLS + 1];
	uint16_t from[1 << XFP_MAX_K][XFP_CELLS + 1];
};

/* Fit a loaded row; parameters as xfp_lloyd_fit. */
void xfp_optimal_fit(const struct xfp_lloyd_row *row, const unsigned *k, unsigned count,
		     struct xfp_optimal_buffers *buffers, uint16_t *const *codebook);

#endif
