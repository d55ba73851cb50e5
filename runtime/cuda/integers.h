/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integers.h - codebooks as the integer path has them; kernels/cuda/abi.h says what they are.
 */
#ifndef XFP_CUDA_INTEGERS_H
#define XFP_CUDA_INTEGERS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/cuda/abi.h"

/* What the integers of some entries mean, for k up to 4. False when one is not finite: then there are none. */
bool xfp_cuda_pair_of(unsigned k, const float *entry, size_t count, struct xfp_cuda_pair *pair);

/* One byte for each entry. */
void xfp_cuda_integers(unsigned k, const struct xfp_cuda_pair *pair, const float *entry, size_t count, uint8_t *high,
		       uint8_t *low);

#endif
