/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - checks of a bundle against its checkpoint and against the qualities it states.
 */
#ifndef XFP_VERIFY_H
#define XFP_VERIFY_H

#include <stdbool.h>

#include "checkpoints/checkpoint.h"
#include "commands/ui/faults.h"
#include "runtime/xfp.h"

#define XFP_VERIFY_SLACK 1e-9        /* tolerance for cosines and errors, sums of rounded numbers */
#define XFP_VERIFY_OUTPUT_SLACK 1e-6 /* for outputs, which xfp.json records with six decimals */

/* Check that bundle and checkpoint have the same tensors, and that kept and tied ones have the same bytes. `same[t]`:
 * the checkpoint has tensor t with the same dtype and shape. */
enum xfp_status xfp_verify_tensors(const struct xfp_bundle *bundle, const struct xfp_checkpoint *source, bool *same,
				   struct xfp_faults *faults, struct xfp_error *err);

/* Cosines and error of a unit. */
struct xfp_quality {
	double median, p5, error;
	bool foreign; /* not the weights that were converted: stated, not measured */
};

/* Decode a unit: quantized weights must be finite. With a source, its weights must be those that were converted, bytes
 * at source precision must be identical, and the stated qualities must be correct. `quality` receives the measured
 * qualities, or the stated ones without a source. */
enum xfp_status xfp_verify_unit(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_checkpoint *source,
				struct xfp_quality *quality, struct xfp_faults *faults, struct xfp_error *err);

#endif
