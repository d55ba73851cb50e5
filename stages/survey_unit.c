/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey_unit.c - xfp-survey: estimate the candidates of a unit from some of its rows.
 *
 * input    the checkpoint's rows; with calibration, the inputs of the unit's layer if they exist
 * output   a survey artifact (schemas/surveyed.h), and u000012-fits.mk in the work folder: the fits worth making;
 *          with inputs, scales (schemas/surveyed.h), which have the keys of the survey and of the inputs as key
 * key      dtype, shape and digest of every matrix; the threshold if it is given; cap, balance, modes, bits, and
 *          the parameters of fits
 *
 * This is the first stage of a unit whose threshold is automatic (--outlier-sigma auto), and of every unit with a size
 * goal. Every candidate is fitted and measured on a sample of rows for every threshold (survey.h), or for the given
 * one. Neither floor nor goal is in the key: the target (target.h) and the solution of a goal follow from the
 * measurements and from the current floor or goal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "schemas/surveyed.h"
#include "stages/feedback/second_moments.h"
#include "stages/layer_inputs.h"
#include "stages/quantize/scan.h"
#include "stages/quantize/survey.h"
#include "stages/quantize/target.h"
#include "stages/quantize/threads.h"
#include "stages/quantize/variants.h"
#include "stages/stage.h"
#include "stages/work/assigned.h"
#include "stages/work/fits.h"

static enum xfp_status measure(const struct xfp_job *job, const struct xfp_peaks *peaks, struct xfp_surveyed *surveyed,
			       struct xfp_error *err)
{
	const struct xfp_thresholds thresholds = xfp_survey_thresholds(&job->parameters);
	struct xfp_survey survey = { 0 };
	enum xfp_status status = XFP_OK;

	if (!(surveyed->known.sigma[0] < 0))
		status = xfp_survey_load(job->ledger, job->unit, &surveyed->known, peaks, xfp_survey_rows(job->unit),
					 &survey, err);
	if (!status && survey.rows)
		status = xfp_survey_measure(&survey, &job->parameters, job->parameters.bits, &thresholds,
					    surveyed->list, &surveyed->count, err);
	xfp_survey_free(&survey);
	return status;
}

/* The input of an artifact, and whether it was made. */
struct survey_making {
	struct xfp_job *job;
	const struct xfp_peaks *peaks;
	struct xfp_surveyed *surveyed;
	bool measured;
};

static enum xfp_status fill(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct survey_making *making = own;
	enum xfp_status status = measure(making->job, making->peaks, making->surveyed, err);

	making->measured = true;
	return status ? status : xfp_surveyed_write(artifact, making->surveyed, err);
}

/* Read the candidates of an existing artifact. It may come from another machine; balance and exponents are those that
 * this run computed. */
static enum xfp_status read_again(struct xfp_job *job, struct xfp_surveyed *surveyed, const struct xfp_key *key,
				  struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = xfp_job_open_key(job, XFP_STAMP_SURVEY, key->hex, &artifact, err);

	if (!status)
		status = xfp_candidates_read(&artifact, XFP_MAX_SURVEYED, surveyed->list, &surveyed->count, err);
	xfp_artifact_close(&artifact);
	return status;
}

/* For --check: measure again what the cache has. */
static enum xfp_status check(const struct survey_making *making, const struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_job *job = making->job;
	struct xfp_surveyed *stored = calloc(1, sizeof *stored);
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = stored ? XFP_OK : xfp_no_memory(err);

	if (!status)
		status = xfp_job_open_key(job, XFP_STAMP_SURVEY, key->hex, &artifact, err);
	if (!status)
		status = xfp_surveyed_read(&artifact, stored, err);
	if (!status)
		status = measure(job, making->peaks, making->surveyed, err);
	if (!status && !xfp_surveyed_equal(stored, making->surveyed))
		status = xfp_fail(err, XFP_UNMET,
				  "its survey %s in the cache has other numbers than a new one; trust no survey from "
				  "there, and convert with another --cache",
				  key->hex);
	xfp_artifact_close(&artifact);
	if (stored)
		xfp_surveyed_free(stored);
	free(stored);
	return status;
}

/* ---- scales ------------------------------------------------------------------------------------ */

struct scales_making {
	struct xfp_job *job;
	const struct xfp_peaks *peaks;
	const struct xfp_outliers *known;
	struct xfp_layer_inputs layer;
};

/* Columns of a group: they affect only the order of columns, and that hardly affects the scales. */
static unsigned group_of(const struct xfp_parameters *parameters)
{
	return parameters->group_size ? parameters->group_size : 32;
}

static enum xfp_status fill_scales(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct scales_making *making = own;
	struct xfp_job *job = making->job;
	struct xfp_artifact source = { 0 };
	struct xfp_inputs inputs = { 0 };
	struct xfp_second_moments moments = { 0 };
	struct xfp_output_scale scale = xfp_output_scale_none;
	struct xfp_survey survey = { 0 };
	bool found = false;
	enum xfp_status status = xfp_layer_inputs_open(job, &making->layer, &source, &inputs, err);

	if (!status)
		status = xfp_second_moments_init(&moments, &source, &inputs, job->ledger, making->known->balance,
						 xfp_threads(), &found, err);
	if (!status && found)
		status = xfp_survey_load(job->ledger, job->unit, making->known, making->peaks,
					 xfp_survey_rows(job->unit), &survey, err);
	if (!status && found)
		status = xfp_survey_scale(&survey, &moments, group_of(&job->parameters), &scale, err);
	xfp_survey_free(&survey);
	xfp_second_moments_free(&moments);
	xfp_inputs_free(&inputs);
	xfp_artifact_close(&source);
	return status ? status : xfp_scales_write(artifact, &scale, err);
}

/* Make the scales of a unit if the inputs of its layer exist; the event remains that of the survey. */
static enum xfp_status make_scales(struct xfp_job *job, const struct xfp_peaks *peaks,
				   const struct xfp_surveyed *surveyed, const char *survey, bool *made,
				   struct xfp_error *err)
{
	struct scales_making making = { .job = job, .peaks = peaks, .known = &surveyed->known };
	const struct xfp_event event = job->event;
	struct xfp_key key = { 0 };
	bool found = false;
	enum xfp_status status = XFP_OK;

	if (xfp_fit_wanted(&job->parameters, XFP_FIT_LIBRARY) && surveyed->count)
		status = xfp_layer_inputs_find(job, &making.layer, &found, err);
	if (status || !found || !*making.layer.key)
		return status;
	status = xfp_key_scales(survey, making.layer.key, &key, err);
	if (!status)
		status = xfp_job_make(job, XFP_STAMP_SCALES, &key, fill_scales, &making, err);
	if (!status)
		status = xfp_job_stamp(job, XFP_STAMP_SCALES, key.hex, err);
	*made = !status;
	xfp_key_free(&key);
	strcpy(job->event.key, event.key);
	if (!strcmp(event.outcome, "made"))
		strcpy(job->event.outcome, event.outcome);
	return status;
}

/* ------------------------------------------------------------------------------------------------ */

static enum xfp_status survey(struct xfp_job *job, struct xfp_surveyed *surveyed, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = job->unit;
	struct xfp_parameters narrowed = job->parameters;
	struct xfp_policy policy = job->policy;
	struct xfp_key_source source;
	struct xfp_key key = { 0 };
	uint64_t samples = xfp_survey_rows(unit);
	struct xfp_peaks peaks = { .samples = samples, .sample = malloc(samples * sizeof *peaks.sample) };
	struct survey_making making = { .job = job, .peaks = &peaks, .surveyed = surveyed };
	const struct xfp_thresholds thresholds = xfp_survey_thresholds(&job->parameters);
	enum xfp_status status = peaks.sample ? XFP_OK : xfp_no_memory(err);
	const bool *checks = job->own;
	bool assigned = false, scaled = false;

	xfp_watch_more(job->ledger->watcher,
		       xfp_survey_work(unit, &job->parameters, job->parameters.bits, &thresholds));
	if (!status)
		status = xfp_scan_unit(job->ledger, unit, &job->parameters, &surveyed->known, &peaks, err);
	source = xfp_key_source_of(unit, surveyed->known.source);
	if (!status)
		status = xfp_key_survey(&source, &job->parameters, &key, err);
	if (!status)
		status = xfp_job_make(job, XFP_STAMP_SURVEY, &key, fill, &making, err);
	if (!status && !making.measured)
		status = *checks ? check(&making, &key, err) : read_again(job, surveyed, &key, err);
	if (!status && *checks)
		fprintf(stderr, "xfp-survey: unit %s: %s\n", xfp_printable(unit->name).text,
			making.measured ? "not checked, since the cache has no survey of it" : "the survey is right");
	if (!status)
		status = xfp_assigned_read(job->work, job->number, &job->assignment, &assigned, err);
	if (!status)
		status = xfp_job_stamp(job, XFP_STAMP_SURVEY, key.hex, err);
	if (!status)
		status = make_scales(job, &peaks, surveyed, key.hex, &scaled, err);
	if (!status && scaled)
		status = xfp_layer_inputs_predict(job, surveyed->list, surveyed->count, err);
	if (!status && assigned && xfp_is_assigned(&job->assignment))
		xfp_assignment_narrow(&job->assignment, &policy, &narrowed);
	else if (!status && narrowed.outlier_sigma == XFP_SIGMA_AUTO)
		xfp_narrow_to_survey(surveyed->list, surveyed->count, unit, &policy, &narrowed);
	if (!status)
		status = xfp_fits_write(job->work, job->number, &narrowed, err);
	xfp_key_free(&key);
	free(peaks.sample);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	struct xfp_surveyed *surveyed = calloc(1, sizeof *surveyed);
	enum xfp_status status;

	if (!surveyed)
		return xfp_no_memory(err);
	if (job->unit->plan != XFP_PLAN_FIT)
		status = xfp_fail(err, XFP_USAGE, "is not fitted, so there is nothing to survey");
	else
		status = survey(job, surveyed, err);
	xfp_surveyed_free(surveyed);
	free(surveyed);
	return status;
}

int main(int argc, char **argv)
{
	bool checks = false;
	const struct xfp_option options[] = {
		{ .name = "check",
		  .text = "if the cache has the survey, measure it again; status 4 if it differs",
		  .set = &checks },
		{ 0 },
	};
	const struct xfp_stage stage = {
		.step = XFP_STAMP_SURVEY,
		.options = options,
		.usage = "[--check]",
		.own = &checks,
		.summary = "Measures every candidate with every outlier threshold on some of a unit's rows.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
