/* SPDX-License-Identifier: Apache-2.0 */
/*
 * equal.h - compare two tensors of a checkpoint, to find a head that is tied to an embedding.
 */
#ifndef XFP_EQUAL_H
#define XFP_EQUAL_H

#include <stdbool.h>

#include "base/xfp_error.h"
#include "checkpoints/checkpoint.h"

/* Compare two tensors of the same size, in blocks, up to the first difference. */
enum xfp_status xfp_source_tensors_equal(const struct xfp_checkpoint *checkpoint, const struct xfp_source_tensor *a,
					 const struct xfp_source_tensor *b, bool *equal, struct xfp_error *err);

#endif
