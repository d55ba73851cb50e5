/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_CALIBRATE_LAYER_H
#define XFP_CALIBRATE_LAYER_H

#include "stages/stage.h"

/* The step of a layer; job->own is a struct xfp_calibrate_options. */
enum xfp_status xfp_calibrate_layer(struct xfp_job *job, struct xfp_error *err);

#endif
