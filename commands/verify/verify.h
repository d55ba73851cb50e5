/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - what a bundle is held against: a checkpoint, and what it states of itself.
 */
#ifndef XFP_VERIFY_H
#define XFP_VERIFY_H

#include <stdbool.h>

#include "checkpoints/checkpoint.h"
#include "commands/ui/faults.h"
#include "runtime/xfp.h"

#define XFP_VERIFY_SLACK 1e-9 /* on cosines and errors, which are sums of rounded numbers */

/* Every tensor of either side has its like on the other; those stored whole, and tied ones, hold the
 * same bytes. `same[t]`: tensor t of the bundle is in the checkpoint with the same dtype and shape. */
enum xfp_status xfp_verify_tensors(const struct xfp_bundle *bundle, const struct xfp_checkpoint *source, bool *same,
				   struct xfp_faults *faults, struct xfp_error *err);

/* Cosines and error of a unit. */
struct xfp_quality {
	double median, p5, error;
	bool stranger; /* its weights are not those that were converted: stated, not measured */
};

/* Decode a unit: quantized weights must be finite. With a source, its weights must be those that were
 * converted, source precision must be the same bytes, and the qualities that the bundle states must be
 * the true ones. `quality` receives the true ones, or without a source those stated. */
enum xfp_status xfp_verify_unit(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_checkpoint *source,
				struct xfp_quality *quality, struct xfp_faults *faults, struct xfp_error *err);

#endif
