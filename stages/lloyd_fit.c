/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lloyd_fit.c - xfp-lloyd-fit: codebooks and measurements of a unit's v2 candidates.
 *
 * input    the checkpoint's rows, the unit's outliers artifact
 * output   a fit artifact (schemas/fit.h) for the base set of k, or the extended one
 * key      key of the outliers; bits, start, rounds
 *
 * Every candidate is measured on the reconstruction as stored: fp16 entries, indices nearest to them, fp16 residuals,
 * balance and exponent undone in f32, exactly as the runtime decodes. Floors have no effect here, so they can change
 * without a new fit.
 */
#include "stages/fit_unit.h"

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	return xfp_fit_unit(job, job->extended ? XFP_FIT_EXTENDED : XFP_FIT_BASE, &xfp_fit_codebooks, NULL, err);
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.step = XFP_STAMP_FIT,
		.summary = "Fits a codebook per row for every candidate k and measures what would be stored.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
