/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfit.c - xfp-libfit: libraries and measurements of a unit's v2a and v2c candidates.
 *
 * input    the checkpoint's rows, the unit's outliers artifact; with calibration, the inputs of the unit's layer
 * output   a fit artifact (schemas/fit.h) for the base set of k, or the extended one
 * key      key of the outliers, and of the inputs; modes, bits, group and library sizes, libfit
 *
 * A library is trained on a sample of the unit's groups and measured on all of them, on the reconstruction as stored:
 * fp16 library, scales, midpoints and ratios, fp16 residuals, balance and exponent undone in f32. The artifact has the
 * bytes of v2c's groups and rows if the unit has few such candidates (xfp_fit_keeps_bytes). xfp-pack computes all other
 * codes again, which are the same.
 *
 * With the inputs of the unit's layer, v2c is fitted with error feedback (kernels/feedback/feedback.h), and its codes,
 * which depend on the inputs, are stored. Outputs are measured, too.
 */
#include <inttypes.h>

#include "stages/fit_unit.h"

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	enum xfp_fit_kind kind = job->extended ? XFP_FIT_EXTENDED_LIBRARY : XFP_FIT_LIBRARY;
	struct xfp_layer_inputs inputs = { .key = "" };
	enum xfp_status status;
	bool found;

	if (!xfp_fit_wanted(&job->parameters, kind))
		return xfp_fail(err, XFP_USAGE, "--mode %s has no library", xfp_modes_name(job->parameters.modes));
	status = xfp_layer_inputs_find(job, &inputs, &found, err);
	if (!status && found && !*inputs.key)
		status = xfp_fail(err, XFP_DAMAGED, "no inputs of layer %" PRIu32 " yet: run xfp-calibrate first",
				  inputs.layer);
	if (!status && found && job->parameters.modes >> XFP_MODE_V2A & 1)
		status = xfp_fail(err, XFP_USAGE, "mode v2a cannot be calibrated");
	return status ? status : xfp_fit_unit(job, kind, &xfp_fit_libraries, found ? &inputs : NULL, err);
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.step = XFP_STAMP_LIBRARY,
		.summary = "Fits a unit's libraries for every candidate k and measures what would be stored.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
