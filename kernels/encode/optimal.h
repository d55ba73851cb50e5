/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimal.h - one row's codebooks of least squared error: exact k-means in one dimension, on the counts of lloyd.h.
 *
 * An optimal codebook's cells are runs of the n counted cells that are not empty. With N and S the running counts
 * and sums over them, the error of a run (a, b] is its sum of squares less (S[b] - S[a])^2 / (N[b] - N[a]), so what is
 * looked for is
 *
 *     F[1][b] = S[b]^2 / N[b]
 *     F[m][b] = max over m - 1 <= a < b of  F[m - 1][a] + (S[b] - S[a])^2 / (N[b] - N[a])
 *
 * of equal ones the least a; then, from F[2^k][n] back, where each run began. The least best a never falls as b
 * rises, so each layer is found by divide and conquer: the middle b first, which bounds a for those to either side.
 * One run through 2^k layers, k the largest asked for, serves every smaller k.
 *
 * Counts and sums are integers, exact in doubles; each operation on them is rounded once, in an order that does not
 * depend on the machine. Entry j is the mean of run j, rounded to fp16. With fewer numbers than entries, each is an
 * entry and the last is repeated.
 */
#ifndef XFP_OPTIMAL_H
#define XFP_OPTIMAL_H

#include <stdint.h>

#include "kernels/encode/lloyd.h"

struct xfp_optimal_buffers {
	double count[XFP_CELLS + 1], sum[XFP_CELLS + 1]; /* running, of nonempty cells */
	double best[2][XFP_CELLS + 1];
	uint16_t from[1 << XFP_MAX_K][XFP_CELLS + 1];
};

/* The codebooks of a loaded row, as xfp_lloyd_fit. */
void xfp_optimal_fit(const struct xfp_lloyd_row *row, const unsigned *k, unsigned count,
		     struct xfp_optimal_buffers *buffers, uint16_t *const *codebook);

#endif
