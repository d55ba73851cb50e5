/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast.h - how long an evaluation takes, from the time of a layer.
 */
#ifndef XFP_FORECAST_H
#define XFP_FORECAST_H

#include "model/evaluate/evaluation.h"

/* Seconds of the remaining layers and the output head, from those of the last finished layer and the work of each. */
double xfp_evaluation_remaining(const struct xfp_evaluation *evaluation);

#endif
