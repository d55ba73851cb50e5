/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.h - whether the tensors of a model are those that its config speaks of.
 */
#ifndef XFP_TENSORS_H
#define XFP_TENSORS_H

#include "model/forward/description.h"
#include "model/forward/weights.h"

/* XFP_BAD_INPUT when one is missing, has another shape, or is a bias or a norm that the description has not. */
enum xfp_status xfp_check_tensors(const struct xfp_description *description, const struct xfp_weights *weights,
				  struct xfp_error *err);

#endif
