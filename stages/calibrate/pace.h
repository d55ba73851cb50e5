/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - predicts how long layers and generated text take, from a short measurement of reproducible products.
 */
#ifndef XFP_CALIBRATE_PACE_H
#define XFP_CALIBRATE_PACE_H

#include "model/model.h"

/* Predict seconds of one thread for windows of `length` tokens: of each layer's step, the last of which is the head's,
 * in seconds[layers + 1], and of generating the windows. */
enum xfp_status xfp_calibrate_seconds(const struct xfp_model *model, uint64_t windows, uint64_t length, double *seconds,
				      double *generating, struct xfp_error *err);

#endif
