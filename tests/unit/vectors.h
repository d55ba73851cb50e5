/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vectors.h - activations to multiply by.
 */
#ifndef XFP_TEST_VECTORS_H
#define XFP_TEST_VECTORS_H

#include <stdlib.h>

#include "tests/unit/unit.h"

/* The same ones every time, in new memory. */
static inline float *test_vectors(size_t elements)
{
	uint64_t seed = 5;
	float *x = malloc(elements * sizeof *x + 1);

	for (size_t i = 0; i < elements; i++)
		x[i] = test_gaussian(&seed) * (i / 300 % 3 ? 0.015625f : 0.0003f); /* results fit f16 */
	return x;
}

#endif
