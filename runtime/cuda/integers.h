/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integers.h - codebooks as integers, for the integer path. kernels/cuda/abi.h documents the format.
 */
#ifndef XFP_CUDA_INTEGERS_H
#define XFP_CUDA_INTEGERS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/cuda/abi.h"

/* Compute the scale pair of the integers for some entries, k up to 4. Returns false if an entry is not finite. */
bool xfp_cuda_pair_of(unsigned k, const float *entry, size_t count, struct xfp_cuda_pair *pair);

/* Convert entries to integers, one byte per entry and plane. */
void xfp_cuda_integers(unsigned k, const struct xfp_cuda_pair *pair, const float *entry, size_t count, uint8_t *high,
		       uint8_t *low);

#endif
