/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autoselect.c - xfp-autoselect: which candidate a unit is stored as.
 *
 * input    the unit's fit artifacts (the base set, and the extended one when it was asked for)
 * output   a choice artifact (schemas/choice.h)
 * key      keys of the fits; floor, bits, on-miss; dtype
 *
 * It only decides; everything was measured before. When no candidate meets the floor and the
 * extended set is allowed but not measured, it ends with the reserved status 76 and the pipeline
 * runs xfp-lloyd-fit --extended and comes back.
 */
#include <stdio.h>
#include <string.h>

#include "fit.h"
#include "select.h"
#include "work.h"

/* The candidates that a stamp's fit artifact measured. */
static enum xfp_status load(struct xfp_job *job, enum xfp_stamp stamp, struct xfp_fit *fit, char key[33],
			    struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = xfp_job_open(job, stamp, XFP_FIT_KIND, XFP_FIT_VERSION, &artifact, key, err);

	if (!status)
		status = xfp_fit_read(&artifact, fit, err);
	xfp_artifact_close(&artifact);
	return status;
}

static enum xfp_status produce(struct xfp_job *job, const struct xfp_key *key, const struct xfp_choice *choice,
			       struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status = xfp_job_create(job, key, &pending, &artifact, err);

	if (!status)
		status = xfp_choice_write(&artifact, choice, err);
	if (!status)
		status = xfp_job_publish(job, key, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, &pending, &artifact, err);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	char base[33], extended[33];
	struct xfp_fit fit = { 0 }, more = { 0 };
	struct xfp_choice choice;
	struct xfp_key key = { 0 };
	enum xfp_status status;
	bool has_more = xfp_stamp_read(job->work, job->number, XFP_STAMP_MORE, extended);

	status = load(job, XFP_STAMP_FIT, &fit, base, err);
	if (!status && has_more)
		status = load(job, XFP_STAMP_MORE, &more, extended, err);
	if (!status)
		status = xfp_select(&(struct xfp_select_input){ .unit = job->unit,
								.parameters = &job->parameters,
								.outliers = fit.outliers,
								.base = base,
								.extended = has_more ? extended : NULL,
								.base_candidates = fit.candidates,
								.extended_candidates = more.candidates,
								.base_count = fit.candidate_count,
								.extended_count = more.candidate_count },
				    &choice, err);
	if (!status)
		status = xfp_key_choice(base, has_more ? extended : NULL, job->parameters.floor[job->unit->class_],
					job->unit->dtype, &job->parameters, &key, err);
	if (!status && !xfp_job_hit(job, XFP_STAMP_CHOICE, key.hex, XFP_CHOICE_KIND, XFP_CHOICE_VERSION))
		status = produce(job, &key, &choice, err);
	if (!status)
		status = xfp_stamp_write(job->work, job->number, XFP_STAMP_CHOICE, key.hex, err);
	xfp_key_free(&key);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.program = "xfp-autoselect",
		.name = "autoselect",
		.summary = "Chooses the candidate of fewest stored bytes that meets the unit's floor.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
