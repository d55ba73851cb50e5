/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled_published.h - groups with scale and midpoint by the published recipe, for comparison and old profiles.
 *
 * Each group is fitted by itself: Lloyd's iteration from 2^k equal steps between its least and its largest unmarked
 * weight. Midpoint and scale are half the sum and half the difference of the outer entries; what is left of the
 * codebook lies in [-1, 1]. The library is k-means of these codebooks: centres chosen one by one with a chance that
 * goes with the squared distance from those before, then 30 rounds. A group gets the entry nearest to its own
 * codebook. There is no look at the weights after that but for their indices, for which the recipe uses scale,
 * midpoint and library before they are rounded; here xfp_scaled_assign_row takes them as stored.
 */
#ifndef XFP_SCALED_PUBLISHED_H
#define XFP_SCALED_PUBLISHED_H

#include <stddef.h>
#include <stdint.h>

#define XFP_PUBLISHED_CENTRE_ROUNDS 30

/* The groups of a row: codebooks [groups][2^k]; scales and midpoints, fp16. */
void xfp_scaled_published_row(unsigned k, unsigned rounds, const float *x, size_t cols, unsigned length,
			      const uint32_t *marked, size_t marks, float *codebook, uint16_t *scale,
			      uint16_t *midpoint);

/* The library of `count` codebooks, f32 and as it is stored. `buffer` holds count + size * (2^k + 1)
 * doubles. */
void xfp_scaled_published_library(unsigned k, unsigned size, unsigned rounds, const float *codebook, size_t count,
				  double *buffer, float *library, uint16_t *entries);

/* The nearest entry of each codebook; of equally near ones the first. */
void xfp_scaled_published_choose(unsigned k, unsigned size, const float *library, const float *codebook, size_t count,
				 uint8_t *entry);

#endif
