/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.h - reject checkpoints that are already quantized in an unsupported form.
 */
#ifndef XFP_REFUSE_H
#define XFP_REFUSE_H

#include "base/xfp_error.h"
#include "checkpoints/checkpoint.h"
#include "stages/inspect/model_config.h"

/* XFP_BAD_INPUT: quantized; the message names the method and a tensor, as far as known. XFP_OK: not quantized. */
enum xfp_status xfp_refuse_quantized(const struct xfp_checkpoint *checkpoint, const struct xfp_model_config *config,
				     struct xfp_error *err);

#endif
