/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.c - predicts the duration of a conversion by timing the stages on a small generated matrix.
 *
 * The actual stages run on the probe (probe.h) under the rules of the pipeline.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/processors.h"
#include "conversion/plan/probe.h"
#include "conversion/run_make.h"
#include "conversion/state/prepare_unit.h"
#include "schemas/policy.h"
#include "stages/feedback/outputs.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/survey.h"
#include "stages/quantize/target.h"

#define BUNDLE_BYTES_A_SECOND 400e6 /* read, SHA-256 without SHA instructions, write */

/* ---- measuring ----------------------------------------------------------------------------------- */

/* One unit after the other, with one thread. */
static int run_probe(struct xfp_probe *probe, struct xfp_signals *signals, double *seconds, struct xfp_error *err)
{
	const char *pipelines = getenv("XFP_PIPELINES"); /* set by xfp_run_environment */
	char *rules = pipelines ? xfp_path(pipelines, "graph.mk") : NULL;
	const char *argv[] = { "make", "--no-print-directory", "-j1", "-f", rules, NULL };
	int status = rules ? (int)xfp_run_environment(probe->work, probe->cache, err) : (int)XFP_FAILED;
	const struct xfp_conversion_place place = { .log = probe->log };
	double began = xfp_now();

	xfp_leave_make();
	setenv("OMP_NUM_THREADS", "1", 1);
	if (!status)
		status = xfp_run(&place, signals, argv, probe->work, NULL, NULL, err);
	*seconds = xfp_now() - began;
	free(rules);
	return status;
}

/* Stamp that an event's seconds count for. The second fit of a kind is the extended one. */
static enum xfp_stamp step_of(const struct xfp_event *event, const double spent[XFP_STAMPS])
{
	enum xfp_stamp step = xfp_step_named(event->stage);

	if (step == XFP_STAMPS || !xfp_steps[step].weights)
		return XFP_STAMPS;
	return xfp_steps[step].fit && spent[step] > 0 ? xfp_step_extended(step) : step;
}

/* Number of stages per unit: outlier-extract, the fits (or the survey and one fit), autoselect, pack. */
static double stages_of_a_unit(const struct xfp_parameters *parameters)
{
	if (parameters->outlier_sigma == XFP_SIGMA_AUTO)
		return 5;
	return 3 + xfp_fit_wanted(parameters, XFP_FIT_BASE) + xfp_fit_wanted(parameters, XFP_FIT_LIBRARY);
}

static double all_weights(const struct xfp_ledger_unit *unit)
{
	return (double)(unit->experts * unit->rows) * (double)unit->cols;
}

/* Number of weights that a step's time is proportional to. */
static double step_weights(const struct xfp_ledger_unit *unit, enum xfp_stamp step)
{
	return step == XFP_STAMP_SURVEY ? (double)xfp_survey_rows(unit) * (double)unit->cols : all_weights(unit);
}

static double above_zero(double value)
{
	return value > 0 ? value : 0;
}

static void read_events(char *events, double spent[XFP_PROBE_UNITS][XFP_STAMPS])
{
	char *line, *rest = events;

	while ((line = strsep(&rest, "\n"))) {
		struct xfp_event event;
		enum xfp_stamp step;

		if (!xfp_event_parse(line, &event) || event.unit >= XFP_PROBE_UNITS)
			continue;
		step = step_of(&event, spent[event.unit]);
		if (step < XFP_STAMPS)
			spent[event.unit][step] = event.seconds;
	}
}

/* Compute the pace from the times that the stages report, and the overhead from the remaining total. */
static void compute_pace(const struct xfp_probe *probe, char *events, double seconds, double stages,
			 struct xfp_plan_pace *pace)
{
	double spent[XFP_PROBE_UNITS][XFP_STAMPS] = { { 0 } };
	struct xfp_ledger_unit units[XFP_PROBE_UNITS];
	struct xfp_ledger_matrix ignored[XFP_PROBE_UNITS];
	uint32_t fp8 = XFP_PROBE_LARGE + probe->kinds;

	xfp_probe_units(probe, units, ignored);
	read_events(events, spent);
	pace->scan = probe->scan_seconds / all_weights(&units[XFP_PROBE_LARGE]);
	for (pace->kinds = 0; pace->kinds < probe->kinds; pace->kinds++) {
		const struct xfp_ledger_unit *large = &units[XFP_PROBE_LARGE + pace->kinds];
		struct xfp_plan_kind *kind = &pace->kind[pace->kinds];

		kind->class_ = large->class_;
		for (int s = 0; s < XFP_STAMPS; s++) {
			double work = above_zero(spent[XFP_PROBE_LARGE + pace->kinds][s] - spent[0][s]);

			seconds -= work;
			if (s == XFP_STAMP_SURVEY)
				work = above_zero(work - pace->scan * all_weights(large));
			kind->weight[s] = work / step_weights(large, (enum xfp_stamp)s);
		}
	}
	if (probe->fp8) {
		double work = above_zero(spent[fp8][XFP_STAMP_PACKED] - spent[0][XFP_STAMP_PACKED]);

		pace->fp8 = work / all_weights(&units[fp8]);
		seconds -= work;
	}
	pace->unit = above_zero(seconds) / (XFP_PROBE_LARGE + probe->kinds + (probe->fp8 ? 1 / stages : 0));
	pace->known = true;
}

/* The kernels of error feedback are measured in this process. */
static void measure_feedback(const struct xfp_conversion *c, struct xfp_plan_pace *pace)
{
	struct xfp_candidate list[XFP_MAX_CANDIDATES];
	struct xfp_error ignored = { 0 };
	uint32_t count = xfp_candidates_with(true, &c->parameters, c->parameters.bits, list);

	if (c->layers.count && xfp_feedback_pace_measure(list, count, &pace->feedback, &ignored))
		pace->known = false;
}

enum xfp_status xfp_plan_pace_measure(const struct xfp_conversion *c, struct xfp_plan_pace *pace, struct xfp_error *err)
{
	struct xfp_error ignored = { 0 };
	char *path = NULL, *events = NULL;
	struct xfp_probe probe = { 0 };
	double seconds;

	*pace = (struct xfp_plan_pace){ 0 };
	if (!xfp_probe_make(c, &probe, &ignored) && !run_probe(&probe, c->signals, &seconds, &ignored) &&
	    (path = xfp_path(probe.work, XFP_EVENTS_FILE)) && !xfp_slurp(path, 1 << 20, &events, NULL, &ignored))
		compute_pace(&probe, events, seconds, stages_of_a_unit(&c->parameters), pace);
	if (pace->known)
		measure_feedback(c, pace);
	free(events);
	free(path);
	xfp_probe_remove(&probe);
	return c->signals->interrupted ? xfp_fail(err, XFP_FAILED, "interrupted") : XFP_OK;
}

/* ---- predictions --------------------------------------------------------------------------------- */

static const struct xfp_plan_kind *sort_of(const struct xfp_plan_pace *pace, enum xfp_class class_)
{
	for (unsigned i = 1; i < pace->kinds; i++)
		if (pace->kind[i].class_ == class_)
			return &pace->kind[i];
	return &pace->kind[0];
}

/* The parameters of a unit's fits. A survey is expected to find the estimated candidate. */
static struct xfp_parameters fit_parameters(const struct xfp_conversion *c, uint32_t number)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	const struct xfp_estimate estimate = xfp_estimate(&input, number, XFP_EXPECTED);
	struct xfp_policy policy;
	struct xfp_parameters parameters = xfp_prepare_parameters(c, number, &policy);
	struct xfp_candidate target = { .mode = XFP_MODE_V2C, .k = XFP_MAX_K, .group = estimate.group };

	if (parameters.outlier_sigma != XFP_SIGMA_AUTO)
		return parameters;
	if (estimate.mode == XFP_MODE_FP8)
		target = (struct xfp_candidate){ .mode = XFP_MODE_FP8, .k = XFP_FP8_BITS };
	else if (estimate.k)
		target.k = estimate.k;
	else /* at source precision, if the most bits miss the floor */
		while (target.k > 1 && !(policy.format.bits >> target.k & 1))
			target.k--;
	xfp_narrow_to_survey(&target, 1, &c->units.ledger->units[number], &policy, &parameters);
	return parameters;
}

/* Seconds of the scales of a calibrated unit's survey, or of its libraries of a kind. */
static double feedback_seconds(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, uint32_t number,
			       enum xfp_stamp step)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	const struct xfp_calibration *calibration = &c->layers.calibration;
	const double training = (double)(calibration->windows * calibration->length) * 7 / 8;
	const double reached = training * calibration->experts_per_token; /* rows of all experts */
	const bool is_stack = unit->experts > 1, down = !strcmp(unit->role, "down");
	const double inputs = is_stack ? reached / unit->experts : training;
	const double stack = is_stack ? down ? reached : training : 0;
	const struct xfp_parameters parameters = fit_parameters(c, number);
	struct xfp_candidate list[XFP_MAX_CANDIDATES];

	if (step == XFP_STAMP_SCALES)
		return xfp_feedback_scales_seconds(&pace->feedback, unit, (double)xfp_survey_rows(unit), inputs, stack);
	return xfp_feedback_seconds(&pace->feedback, unit, list,
				    xfp_candidates_of(xfp_step_fit(step), &parameters, list), inputs, stack,
				    XFP_MAX_HELD_OUT);
}

static bool has_feedback(enum xfp_stamp step)
{
	return step == XFP_STAMP_SCALES || step == XFP_STAMP_LIBRARY || step == XFP_STAMP_EXTENDED_LIBRARY;
}

double xfp_plan_pace_unit(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, uint32_t number)
{
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	const struct xfp_parameters *parameters = &c->parameters;
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	const struct xfp_unit_state *state = &c->units.state[number];
	const struct xfp_plan_kind *kind = sort_of(pace, unit->class_);
	const bool feedback = xfp_estimate_feedback(&input, number);
	const bool surveyed = parameters->outlier_sigma == XFP_SIGMA_AUTO;
	/* With surveys, the fits are those of the measured unit of the same sort, or with error feedback those of the
	 * expected candidate. */
	const bool extended = surveyed ? !feedback : xfp_estimate(&input, number, XFP_EXPECTED).extended;
	double seconds = 0;

	if (unit->plan != XFP_PLAN_FIT)
		return all_weights(unit) * pace->fp8 + pace->unit / stages_of_a_unit(parameters);
	for (int s = state->decided ? XFP_STAMP_PACKED : 0; s < XFP_STAMPS; s++) {
		const enum xfp_stamp step = (enum xfp_stamp)s;

		if (!xfp_steps[s].weights || state->in_store >> s & 1 ||
		    !(s == XFP_STAMP_SCALES ? surveyed && feedback : xfp_step_wanted(parameters, step, extended)))
			continue;
		if (feedback && has_feedback(step))
			seconds += feedback_seconds(c, pace, number, step);
		else
			seconds += step_weights(unit, step) * kind->weight[s] +
				   (s == XFP_STAMP_SURVEY ? pace->scan * all_weights(unit) : 0);
	}
	return seconds + pace->unit * (state->decided ? 1 / stages_of_a_unit(parameters) : 1);
}

double xfp_plan_pace_layers(const struct xfp_conversion *c)
{
	const struct xfp_calibration *calibration = &c->layers.calibration;
	double sum = calibration->generating;

	for (uint32_t i = 0; calibration->seconds && i < c->layers.count; i++)
		sum += xfp_layer_is_missing(&c->layers.state[i]) ? calibration->seconds[i] : 0;
	return sum;
}

double xfp_plan_pace_units(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, unsigned jobs,
			   unsigned processors)
{
	unsigned threads = xfp_stage_threads(jobs, c->units.todo);
	double sum = xfp_plan_pace_layers(c), longest = 0;

	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		double seconds = c->units.state[i].done ? 0 : xfp_plan_pace_unit(c, pace, i);

		sum += seconds;
		longest = seconds > longest ? seconds : longest;
	}
	sum /= jobs < processors ? jobs : processors;
	/* A single unit is limited by its own threads. */
	longest /= threads < processors ? threads : processors;
	return sum > longest ? sum : longest;
}

double xfp_plan_pace_bundle(uint64_t bytes)
{
	return (double)bytes / BUNDLE_BYTES_A_SECOND;
}
