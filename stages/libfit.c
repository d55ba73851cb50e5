/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfit.c - xfp-libfit: libraries and measurements of a unit's v2a and v2c candidates.
 *
 * input    the checkpoint's rows, the unit's outliers artifact
 * output   a fit artifact (schemas/fit.h) for the base set of k, or the extended one
 * key      key of the outliers; modes, bits, group and library sizes, libfit
 *
 * A library is trained on a sample of the unit's groups and measured on all of them, on the reconstruction as stored:
 * fp16 library, scales, midpoints and ratios, fp16 residuals, balance and exponent undone in f32. The codes of groups
 * are not stored in the artifact: xfp-pack computes the same codes again.
 */
#include "stages/fit_unit.h"

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	enum xfp_fit_kind kind = job->extended ? XFP_FIT_EXTENDED_LIBRARY : XFP_FIT_LIBRARY;

	if (!xfp_fit_wanted(&job->parameters, kind))
		return xfp_fail(err, XFP_USAGE, "--mode %s has no library", xfp_modes_name(job->parameters.modes));
	return xfp_fit_unit(job, kind, &xfp_fit_libraries, err);
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
