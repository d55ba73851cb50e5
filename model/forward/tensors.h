/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.h - the tensors that a description requires.
 */
#ifndef XFP_TENSORS_H
#define XFP_TENSORS_H

#include "model/forward/forward.h"

/* Find the prefix of the model's tensor names: that of a text model ("model."), of a multimodal one, or of one without
 * an output head; with experts in separate tensors or stacked. */
const struct xfp_tensor_names *xfp_find_names(const struct xfp_description *description,
					      const struct xfp_weights *weights);

/* Call `each` for every required tensor with its shape, and with rank 0 for those that must not exist, because they
 * would change what the model computes. Stop when it returns false. */
void xfp_each_tensor(const struct xfp_description *description, const struct xfp_tensor_names *names,
		     bool (*each)(void *context, const char *tensor, uint32_t rank, const uint64_t *shape),
		     void *context);

/* XFP_BAD_INPUT if a tensor is missing, has another shape, or must not exist. */
enum xfp_status xfp_check_tensors(const struct xfp_description *description, const struct xfp_weights *weights,
				  const struct xfp_tensor_names *names, struct xfp_error *err);

#endif
