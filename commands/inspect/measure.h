/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - the distribution of the weights of many tensors.
 */
#ifndef XFP_INSPECT_MEASURE_H
#define XFP_INSPECT_MEASURE_H

#include "base/system/signals.h"
#include "checkpoints/checkpoint.h"
#include "stages/quantize/distribution.h"

/* Into found[t] for each of the `count` tensors t, which are sorted anew. Each is one thread's, from front to back in
 * blocks of a MiB, so that memory depends on the number of threads alone and no figure on it. On a terminal, standard
 * error tells how far it is. A signal ends it with XFP_FAILED and no message. */
enum xfp_status xfp_measure(const struct xfp_checkpoint *checkpoint, uint32_t *tensors, uint32_t count,
			    struct xfp_signals *signals, struct xfp_distribution *found, struct xfp_error *err);

#endif
