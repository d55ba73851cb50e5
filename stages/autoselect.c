/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autoselect.c - xfp-autoselect: which candidate a unit is stored as.
 *
 * input    the unit's fit artifacts: of lloyd-fit, of libfit or of both, as the modes ask for; of each the base set,
 *          and the extended one when that was asked for
 * output   a choice artifact (schemas/choice.h)
 * key      keys of the fits, with the seals of their candidates; floor, mode, bits,
 *          on-miss or that the bits are fixed, on-nonfinite; dtype; the sample
 *
 * It only decides; everything was measured before. Where a sample of a stack's experts decides, medians are taken
 * over their rows, from the cosines that the fit holds. When no candidate meets the floor and the
 * extended set is allowed but not measured, it ends with the reserved status 76 and the pipeline
 * runs xfp-lloyd-fit --extended, xfp-libfit --extended or both and comes back.
 */
#include <stdio.h>
#include <string.h>

#include "schemas/fit.h"
#include "stages/quantize/sample.h"
#include "stages/quantize/select.h"
#include "stages/stage.h"

/* What a stamp's fit artifact measured. */
struct measured {
	struct xfp_fit fit;
	struct xfp_sampled sampled[XFP_MOST_CANDIDATES];
	char key[33];
};

static enum xfp_status load(struct xfp_job *job, enum xfp_stamp stamp, struct measured *measured,
			    struct xfp_select_set *set, struct xfp_error *err)
{
	bool sampled = xfp_sample_decides(&job->parameters, &job->policy, job->unit);
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = xfp_job_open(job, stamp, &artifact, measured->key, err);

	if (!status)
		status = xfp_fit_read(&artifact, &measured->fit, err);
	if (!status && sampled)
		status = xfp_sample_fit(&artifact, &measured->fit, &job->parameters.moe_sample, measured->sampled, err);
	xfp_artifact_close(&artifact);
	*set = (struct xfp_select_set){ measured->key, measured->fit.candidates, sampled ? measured->sampled : NULL,
					measured->fit.candidate_count };
	return status;
}

static enum xfp_status fill(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	return xfp_choice_write(artifact, own, err);
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	struct measured measured[XFP_FIT_KINDS] = { 0 };
	struct xfp_select_input input = { .unit = job->unit, .parameters = &job->parameters, .policy = &job->policy };
	struct xfp_key_fit fits[XFP_FIT_KINDS];
	struct xfp_choice choice;
	struct xfp_key key = { 0 };
	enum xfp_status status = XFP_OK;
	char outliers[33], survey[33] = "", extended[33];

	if (job->aimed)
		status = xfp_stamp_find(job->work, job->number, XFP_STAMP_SURVEY, survey, err);
	if (!status)
		status = xfp_stamp_find(job->work, job->number, XFP_STAMP_OUTLIERS, outliers, err);
	input.outliers = outliers;
	for (int i = 0; !status && i < XFP_FIT_KINDS; i++) {
		enum xfp_stamp stamp = xfp_fit_stamp((enum xfp_fit_kind)i);

		fits[i] = (struct xfp_key_fit){ 0 };
		if (!xfp_fit_wanted(&job->parameters, (enum xfp_fit_kind)i))
			continue;
		/* The extended ones are there once they were asked for. */
		if (i >= XFP_FIT_EXTENDED) {
			status = xfp_stamp_find(job->work, job->number, stamp, extended, err);
			if (status || !*extended)
				continue;
		}
		status = load(job, stamp, &measured[i], &input.fits[i], err);
		fits[i] = (struct xfp_key_fit){ input.fits[i].key, input.fits[i].candidates, input.fits[i].count };
		if (fits[i].key)
			input.outliers = measured[i].fit.outliers;
	}
	if (!status)
		status = xfp_select(&input, &choice, err);
	if (!status)
		status = xfp_key_choice(fits, survey, &job->policy, job->unit->dtype, job->unit->experts,
					&job->parameters, &key, err);
	if (!status)
		status = xfp_job_make(job, XFP_STAMP_CHOICE, &key, fill, &choice, err);
	if (!status)
		status = xfp_job_stamp(job, XFP_STAMP_CHOICE, key.hex, err);
	xfp_key_free(&key);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.step = XFP_STAMP_CHOICE,
		.summary = "Chooses the candidate of fewest stored bytes that meets the unit's floor.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
