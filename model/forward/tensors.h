/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.h - which tensors a description speaks of, and whether a model has them.
 */
#ifndef XFP_TENSORS_H
#define XFP_TENSORS_H

#include "model/forward/forward.h"

/* As published for text alone ("model."), for models that see or hear, too, and for what has no output head; with
 * experts one by one, or stacked. */
const struct xfp_tensor_names *xfp_find_names(const struct xfp_description *description,
					      const struct xfp_weights *weights);

/* Calls `each` with every tensor that there must be, and its shape; and with rank 0 for those that there must not be,
 * for they would change what the model computes. It ends where `each` returns false. */
void xfp_each_tensor(const struct xfp_description *description, const struct xfp_tensor_names *names,
		     bool (*each)(void *context, const char *tensor, uint32_t rank, const uint64_t *shape),
		     void *context);

/* XFP_BAD_INPUT when one is missing, has another shape, or must not be there. */
enum xfp_status xfp_check_tensors(const struct xfp_description *description, const struct xfp_weights *weights,
				  const struct xfp_tensor_names *names, struct xfp_error *err);

#endif
