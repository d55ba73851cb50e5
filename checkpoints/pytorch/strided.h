/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strided.h - locate a tensor's elements in a storage, by sizes and strides. Private to checkpoints/pytorch/.
 */
#ifndef XFP_STRIDED_H
#define XFP_STRIDED_H

#include "checkpoints/checkpoint.h"

/* A storage that exists, rounded down to whole elements. */
struct xfp_storage {
	uint64_t offset, bytes; /* range in the file */
};

/* Complete a tensor with name, dtype, rank and shape: set its location, and a recipe if its elements are not contiguous
 * in row-major order, because it is transposed or a slice of longer rows. `first` and `stride` are in elements; `parts`
 * is the remaining limit of recipe parts. Returns NULL or an error as static text; *failed is true if memory ran
 * out. */
const char *xfp_strided_place(struct xfp_source_tensor *tensor, const struct xfp_storage *storage, uint64_t first,
			      const uint64_t stride[XFP_MAX_RANK], uint64_t *parts, bool *failed);

#endif
