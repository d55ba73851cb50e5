/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - the distribution of the weights of many tensors.
 */
#ifndef XFP_INSPECT_MEASURE_H
#define XFP_INSPECT_MEASURE_H

#include "base/system/signals.h"
#include "checkpoints/checkpoint.h"
#include "stages/quantize/distribution.h"

/* Measure `count` tensors t into found[t]; sorts `tensors`. Each tensor is read by one thread, from front to back in
 * blocks of 1 MiB, so memory depends only on the number of threads, and no result depends on it. Progress is shown on
 * standard error if that is a terminal. A signal results in XFP_FAILED without a message. */
enum xfp_status xfp_measure(const struct xfp_checkpoint *checkpoint, uint32_t *tensors, uint32_t count,
			    struct xfp_signals *signals, struct xfp_distribution *found, struct xfp_error *err);

#endif
