/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfit.c - xfp-libfit: libraries and measurements of a unit's v2a and v2c candidates.
 *
 * input    the checkpoint's rows, the unit's outliers artifact; with calibration, the inputs of the unit's layer
 * output   a fit artifact (schemas/fit.h) for the base set of k, or the extended one
 * key      key of the outliers, and of the inputs; modes, bits, group and library sizes, libfit
 *
 * A library is trained on a sample of the unit's groups and measured on all of them, on the reconstruction as stored:
 * fp16 library, scales, midpoints and ratios, fp16 residuals, balance and exponent undone in f32. The codes of groups
 * are not stored in the artifact: xfp-pack computes the same codes again.
 *
 * With the inputs of the unit's layer, v2c is fitted with error feedback (kernels/feedback/feedback.h), and its codes,
 * which depend on the inputs, are stored. Outputs are measured, too.
 */
#include <inttypes.h>
#include <string.h>

#include "schemas/calibration.h"
#include "stages/fit_unit.h"

/* Find the inputs of the unit's layer. *found is false if the conversion is not calibrated, or the unit in no layer. */
static enum xfp_status find_inputs(const struct xfp_job *job, struct xfp_layer_inputs *inputs, bool *found,
				   struct xfp_error *err)
{
	const struct xfp_ledger *ledger = job->ledger;
	const char *tensor = ledger->tensors[ledger->matrices[job->unit->first_matrix].tensor].name;
	struct xfp_calibration calibration = { 0 };
	enum xfp_status status;

	*found = false;
	if (!*job->parameters.calibration.sha256)
		return XFP_OK;
	status = xfp_calibration_read(job->work, &calibration, found, err);
	if (!status && (!*found || strcmp(calibration.sha256, job->parameters.calibration.sha256)))
		status = xfp_fail(err, XFP_DAMAGED, "%s is missing, or has other tokens; run xfp convert again",
				  XFP_CALIBRATION_FILE);
	if (!status && (*found = xfp_calibration_layer(&calibration, tensor, &inputs->layer)))
		status = xfp_stamp_find(job->work, XFP_LAYER | inputs->layer, XFP_STAMP_INPUTS, inputs->key, err);
	if (!status && *found && !*inputs->key)
		status = xfp_fail(err, XFP_DAMAGED, "no inputs of layer %" PRIu32 " yet: run xfp-calibrate first",
				  inputs->layer);
	xfp_calibration_free(&calibration);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	enum xfp_fit_kind kind = job->extended ? XFP_FIT_EXTENDED_LIBRARY : XFP_FIT_LIBRARY;
	struct xfp_layer_inputs inputs = { .key = "" };
	enum xfp_status status;
	bool found;

	if (!xfp_fit_wanted(&job->parameters, kind))
		return xfp_fail(err, XFP_USAGE, "--mode %s has no library", xfp_modes_name(job->parameters.modes));
	status = find_inputs(job, &inputs, &found, err);
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
