/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autoselect.c - xfp-autoselect: select the candidate that a unit is stored as.
 *
 * input    the unit's fit artifacts, of lloyd-fit, libfit or both, depending on the modes: the base set of each,
 *          and the extended one if it was requested
 * output   a choice artifact (schemas/choice.h)
 * key      keys of the fits, with the seals of their candidates; floor, mode, bits, on-miss or that the bits are
 *          fixed, on-nonfinite; dtype; the sample
 *
 * This stage only decides; all measurements exist. If a sample of a stack's experts decides, medians are taken over
 * their rows, from the cosines in the fit. If no candidate meets the floor, and the extended set is allowed but not
 * completely measured, the stage ends with the reserved status 76; the pipeline then runs xfp-lloyd-fit --extended,
 * xfp-libfit --extended or both, and retries.
 */
#include <stdlib.h>

#include "schemas/fit.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/sample.h"
#include "stages/stage.h"

/* The measurements of the fits' artifacts. */
struct fit_reading {
	struct xfp_job *job;
	struct measured {
		struct xfp_fit fit;
		struct xfp_sampled sampled[XFP_MAX_CANDIDATES];
		char key[33];
	} of[XFP_FIT_KINDS];
};

static enum xfp_status find(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input, struct xfp_error *err)
{
	struct fit_reading *reading = own;
	struct xfp_job *job = reading->job;
	struct measured *m = &reading->of[kind];
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = XFP_OK;

	/* The extended fits exist if they were requested. */
	if (kind >= XFP_FIT_EXTENDED) {
		status = xfp_stamp_find(job->work, job->number, xfp_fit_stamp(kind), m->key, err);
		if (!status && !*m->key)
			return xfp_fail(err, XFP_WANT_EXTENDED, "the extended set is not measured yet");
	}
	if (!status)
		status = xfp_job_open(job, xfp_fit_stamp(kind), &artifact, m->key, err);
	if (!status)
		status = xfp_fit_read(&artifact, &m->fit, err);
	if (!status && xfp_sample_decides(&job->parameters, &job->policy, job->unit)) {
		status = xfp_sample_fit(&artifact, &m->fit, &job->parameters.moe_sample, m->sampled, err);
		input->sampled[kind] = m->sampled;
	}
	xfp_artifact_close(&artifact);
	input->fits[kind] = xfp_fit_set_of(&m->fit, m->key);
	input->outliers = m->fit.outliers;
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	static const struct xfp_decide_callbacks means = { .find = find };
	struct xfp_select_input input = { .unit = job->unit, .parameters = &job->parameters, .policy = &job->policy };
	struct fit_reading *reading = calloc(1, sizeof *reading);
	struct xfp_choice choice;
	struct xfp_key key = { 0 };
	enum xfp_status status = XFP_OK;
	char survey[33] = "", scales[33] = "";

	if (!reading)
		return xfp_no_memory(err);
	reading->job = job;
	if (job->narrowed)
		status = xfp_stamp_find(job->work, job->number, XFP_STAMP_SURVEY, survey, err);
	if (!status && job->narrowed)
		status = xfp_stamp_find(job->work, job->number, XFP_STAMP_SCALES, scales, err);
	if (!status)
		status = xfp_decide(&input, &means, reading, &choice, err);
	if (!status)
		status = xfp_key_choice(input.fits, survey, scales, &job->policy, job->unit->dtype, job->unit->experts,
					&job->parameters, &key, err);
	if (!status)
		status = xfp_job_make(job, XFP_STAMP_CHOICE, &key, xfp_fill_choice, &choice, err);
	if (!status)
		status = xfp_job_stamp(job, XFP_STAMP_CHOICE, key.hex, err);
	xfp_key_free(&key);
	free(reading);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.step = XFP_STAMP_CHOICE,
		.summary = "Chooses the smallest candidate that meets the unit's floor.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
