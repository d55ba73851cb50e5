/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.h - checkpoints that are quantized already.
 */
#ifndef XFP_REFUSE_H
#define XFP_REFUSE_H

#include "base/xfp_error.h"
#include "checkpoints/checkpoint.h"
#include "stages/inspect/model_config.h"

/* XFP_BAD_INPUT naming the method and a tensor, as far as there is either; XFP_OK when it is not quantized. */
enum xfp_status xfp_refuse_quantized(const struct xfp_checkpoint *checkpoint, const struct xfp_model_config *config,
				     struct xfp_error *err);

#endif
