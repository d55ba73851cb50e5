/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_CALIBRATE_LAYER_H
#define XFP_CALIBRATE_LAYER_H

#include "model/forward/description.h"
#include "stages/stage.h"

/* The step of a layer; job->own is a struct xfp_calibrate_options. */
enum xfp_status xfp_calibrate_layer(struct xfp_job *job, struct xfp_error *err);

/* Memory that the step of any layer needs for windows of `length` tokens, with the default limit; its program and the
 * ledger come on top. */
uint64_t xfp_calibrate_layer_bytes(const struct xfp_description *description, uint64_t windows, uint64_t length,
				   unsigned threads);
/* Portions of windows that the step of a layer computes one after the other, with the default limit. */
uint64_t xfp_calibrate_portions(const struct xfp_description *description, uint32_t layer, uint64_t windows,
				uint64_t length);

#endif
