/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strided.h - where a tensor's elements are in a storage, by its sizes and strides. Private to checkpoints/pytorch/.
 */
#ifndef XFP_STRIDED_H
#define XFP_STRIDED_H

#include "checkpoints/checkpoint.h"

/* A storage that is there, as far as it is known to hold whole elements. */
struct xfp_storage {
	uint64_t offset, bytes; /* in the file */
};

/* Complete a tensor that has its name, dtype, rank and shape: its place, and a recipe where its elements are not one
 * after the other in the order of its own: transposed, or a slice of rows that are longer. `first` and `stride` are in
 * elements, `parts` is what recipes may still take. Returns NULL, or what is wrong, static; *failed where that is want
 * of memory. */
const char *xfp_strided_place(struct xfp_source_tensor *tensor, const struct xfp_storage *storage, uint64_t first,
			      const uint64_t stride[XFP_MAX_RANK], uint64_t *parts, bool *failed);

#endif
