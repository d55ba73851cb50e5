/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled_published.h - groups with scale and midpoint by the published recipe, for comparison and old profiles.
 *
 * Each group is fitted separately: Lloyd's iteration from 2^k equal steps between its smallest and its largest unmarked
 * weight. Midpoint and scale are half the sum and half the difference of the outer entries; the rest of the codebook is
 * in [-1, 1]. The library is k-means of these codebooks: centres are chosen one by one with probability proportional to
 * the squared distance from those before, then 30 rounds. A group gets the entry nearest to its own codebook. After
 * that the weights are used only for their indices. The recipe computes them with unrounded scale, midpoint and
 * library; xfp_scaled_assign_row uses the stored ones.
 */
#ifndef XFP_SCALED_PUBLISHED_H
#define XFP_SCALED_PUBLISHED_H

#include <stddef.h>
#include <stdint.h>

#define XFP_PUBLISHED_CENTRE_ROUNDS 30

/* Fit the groups of a row: codebooks [groups][2^k]; scales and midpoints, fp16. */
void xfp_scaled_published_row(unsigned k, unsigned rounds, const float *x, size_t cols, unsigned length,
			      const uint32_t *marked, size_t marks, float *codebook, uint16_t *scale,
			      uint16_t *midpoint);

/* Compute the library of `count` codebooks, in f32 and as stored. `buffer` has count + size * (2^k + 1) doubles. */
void xfp_scaled_published_library(unsigned k, unsigned size, unsigned rounds, const float *codebook, size_t count,
				  double *buffer, float *library, uint16_t *entries);

/* Find the nearest entry of each codebook; the first among equals. */
void xfp_scaled_published_choose(unsigned k, unsigned size, const float *library, const float *codebook, size_t count,
				 uint8_t *entry);

#endif
