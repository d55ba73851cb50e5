/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.c - how long a conversion takes, from how long the stages take over a little generated matrix.
 *
 * The stages themselves are run, by the rules of the pipeline, on one unit that is large enough to be timed and a
 * few that are nearly nothing: those tell what processes and files cost. So what is measured is what will run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/filesystem.h"
#include "base/system/processors.h"
#include "base/system/temporary.h"
#include "commands/convert/prepare.h"
#include "commands/convert/run_make.h"
#include "commands/plan/plan.h"
#include "kernels/common/number.h"
#include "stages/quantize/survey.h"
#include "stages/work/fits.h"

#define PROBE_WEIGHTS ((uint64_t)1 << 23) /* of the large unit */
#define LEAST_ROWS 64                     /* a stage works on blocks of rows */
#define MOST_ROWS 32768                   /* short rows cost much a weight */
#define TINY_ROWS 16
#define TINY_COLS 64
#define TINY_UNITS 2
#define BUNDLE_BYTES_A_SECOND 400e6 /* read, SHA-256 without instructions for it, write */

struct probe {
	char *folder, *data;
	struct xfp_conversion c; /* work folder and cache in it */
	bool extended, fp8;
	enum xfp_dtype dtype;
	uint64_t rows, cols;
	uint32_t units;
};

/* The units of the probe: large, tiny ones, fp8. */
enum { LARGE, TINY, FP8 = TINY + TINY_UNITS, MOST_UNITS };

/* ---- what is measured ---------------------------------------------------------------------------- */

/* The shape that most weights to be converted have, and the steps that any of them goes through. */
static void look(const struct xfp_conversion *c, struct probe *probe)
{
	const struct xfp_extent extent = xfp_conversion_extent(c);
	uint64_t most = 0;

	for (uint32_t i = 0; i < c->ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &c->ledger->units[i];
		uint64_t weights = xfp_unit_weights(unit);

		if (c->units[i].done)
			continue;
		if (unit->plan != XFP_PLAN_FIT) /* what is kept is read and written likewise */
			probe->fp8 = true;
		else if (xfp_estimate(&extent, i, XFP_EXPECTED).extended)
			probe->extended = true;
		if (weights >= most) {
			most = weights;
			probe->cols = unit->cols;
			probe->dtype = unit->dtype;
		}
	}
	probe->rows = PROBE_WEIGHTS / (probe->cols ? probe->cols : 1);
	if (probe->rows < LEAST_ROWS)
		probe->rows = LEAST_ROWS;
	if (probe->rows > MOST_ROWS)
		probe->rows = MOST_ROWS;
	probe->units = probe->fp8 ? FP8 + 1 : FP8;
}

/* About normal, as trained weights are: the sum of four 16-bit uniforms. */
static float next_weight(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	x = (x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48);
	return ((float)x - 131070) * 0x1p-21f;
}

static enum xfp_status write_weights(const struct probe *probe, struct xfp_error *err)
{
	uint64_t count = probe->rows * probe->cols, state = 1;
	size_t element = xfp_dtype_bits(probe->dtype) / 8;
	char *bytes = malloc(count * element);
	enum xfp_status status;

	if (!bytes)
		return xfp_no_memory(err);
	for (uint64_t i = 0; i < count; i++) {
		float weight = next_weight(&state);
		uint16_t half = probe->dtype == XFP_F16 ? xfp_float_to_half(weight) : xfp_float_to_bf16(weight);
		double wide = weight;

		memcpy(bytes + i * element,
		       element == sizeof half     ? (void *)&half
		       : element == sizeof weight ? (void *)&weight
						  : (void *)&wide,
		       element);
	}
	status = xfp_write_file(probe->data, bytes, count * element, false, err);
	free(bytes);
	return status;
}

/* Units over the beginning of one file of weights. */
static enum xfp_status write_ledger(const struct probe *probe, struct xfp_error *err)
{
	static char tensor[] = "weights", role[] = "probe", none[] = "";
	struct xfp_ledger_file file = { .name = tensor, .path = probe->data };
	struct xfp_ledger_tensor weights = { .name = tensor,
					     .reason = none,
					     .dtype = probe->dtype,
					     .rank = 2,
					     .shape = { probe->rows, probe->cols },
					     .bytes = probe->rows * probe->cols * (xfp_dtype_bits(probe->dtype) / 8),
					     .tied = UINT32_MAX };
	struct xfp_ledger_unit units[MOST_UNITS];
	struct xfp_ledger_matrix matrices[MOST_UNITS];
	struct xfp_ledger ledger = { .model = probe->folder,
				     .family = none,
				     .format = none,
				     .files = &file,
				     .tensors = &weights,
				     .units = units,
				     .matrices = matrices,
				     .file_count = 1,
				     .tensor_count = 1,
				     .unit_count = probe->units,
				     .matrix_count = probe->units };
	char *path = xfp_path(probe->c.options.work, XFP_LEDGER_FILE);
	enum xfp_status status;
	struct stat st;

	if (!path || stat(probe->data, &st)) {
		free(path);
		return xfp_fail_errno(err, errno, "%s", probe->data);
	}
	file.identity = xfp_identity_at(probe->data, &st);
	for (uint32_t i = 0; i < probe->units; i++) {
		bool tiny = i >= TINY && i < TINY + TINY_UNITS;
		uint64_t rows = tiny ? TINY_ROWS : probe->rows, cols = probe->cols;

		/* Each another matrix, or it would be found in the cache. */
		if (tiny)
			cols = cols > TINY_COLS + i ? TINY_COLS + i : cols;
		units[i] = (struct xfp_ledger_unit){ .name = tensor,
						     .role = role,
						     .plan = i == FP8 ? XFP_PLAN_FP8 : XFP_PLAN_FIT,
						     .dtype = probe->dtype,
						     .experts = 1,
						     .rows = rows,
						     .cols = cols,
						     .first_matrix = i };
		matrices[i] =
			(struct xfp_ledger_matrix){ .rows = rows, .cols = cols, .row_stride = cols, .col_stride = 1 };
	}
	status = xfp_ledger_write(path, &ledger, err);
	free(path);
	return status;
}

static enum xfp_status write_text(const char *folder, const char *name, const char *text, struct xfp_error *err)
{
	char *path = xfp_path(folder, name);
	enum xfp_status status =
		path && text ? xfp_write_file(path, text, strlen(text), false, err) : xfp_no_memory(err);

	free(path);
	return status;
}

/* The probe's floor decides whether the extended set is measured. */
static enum xfp_status write_settings(const struct xfp_conversion *c, const struct probe *probe, struct xfp_error *err)
{
	struct xfp_parameters parameters = c->options.parameters;
	enum xfp_status status;

	for (int i = 0; i < XFP_CLASSES; i++) {
		parameters.floor[i] = probe->extended ? XFP_NANO : 0;
		parameters.format[i] = (struct xfp_format){ .form = XFP_FORM_AUTO };
	}
	parameters.overrides = NULL;
	parameters.override_count = 0;
	parameters.on_miss = XFP_MISS_BEST;
	status = xfp_work_write_parameters(probe->c.options.work, &parameters, err);
	if (!status)
		status = xfp_fits_write(probe->c.options.work, XFP_NO_UNIT, &parameters, err);
	if (!status)
		status = write_text(probe->c.options.work, XFP_TODO_FILE,
				    probe->fp8 ? "FIT_UNITS = u000000 u000001 u000002\nPACK_UNITS = u000003\n"
					       : "FIT_UNITS = u000000 u000001 u000002\n",
				    err);
	return status;
}

static enum xfp_status make_probe(const struct xfp_conversion *c, struct probe *probe, struct xfp_error *err)
{
	enum xfp_status status;

	if (!(probe->folder = xfp_temporary_folder(err)))
		return XFP_FAILED;
	probe->c = (struct xfp_conversion){ .lock = -1, .log = c->log, .cache_lock = -1 };
	probe->data = xfp_path(probe->folder, "weights");
	probe->c.options.work = xfp_path(probe->folder, "work");
	probe->c.options.cache = xfp_path(probe->folder, "cache");
	if (!probe->data || !probe->c.options.work || !probe->c.options.cache)
		return xfp_no_memory(err);
	(void)((status = xfp_mkdirs(probe->c.options.work, err)) || (status = write_weights(probe, err)) ||
	       (status = write_ledger(probe, err)) || (status = write_settings(c, probe, err)));
	return status;
}

static void remove_probe(struct probe *probe)
{
	xfp_temporary_remove(probe->folder);
	free(probe->data);
	free(probe->c.options.work);
	free(probe->c.options.cache);
}

/* ---- measuring ----------------------------------------------------------------------------------- */

/* One unit after the other, with one thread. */
static int run_probe(struct probe *probe, struct xfp_signals *signals, double *seconds, struct xfp_error *err)
{
	static const char *const above[] = { "MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS" };
	const char *pipelines = getenv("XFP_PIPELINES"); /* of xfp_run_environment */
	char *rules = pipelines ? xfp_path(pipelines, "graph.mk") : NULL;
	const char *argv[] = { "make", "--no-print-directory", "-j1", "-f", rules, NULL };
	int status = rules ? (int)xfp_run_environment(&probe->c, err) : (int)XFP_FAILED;
	double began = xfp_now();

	for (size_t i = 0; i < sizeof above / sizeof above[0]; i++)
		unsetenv(above[i]);
	setenv("OMP_NUM_THREADS", "1", 1);
	if (!status)
		status = xfp_run(&probe->c, signals, argv, probe->c.options.work, NULL, NULL, err);
	*seconds = xfp_now() - began;
	free(rules);
	return status;
}

/* Where an event's seconds belong. The second fit of a kind is the extended one. */
static enum xfp_stamp step_of(const struct xfp_event *event, const double spent[XFP_STAMPS])
{
	enum xfp_stamp step = xfp_step_named(event->stage);

	if (step == XFP_STAMPS || !xfp_steps[step].weights)
		return XFP_STAMPS;
	return xfp_steps[step].fit && spent[step] > 0 ? xfp_step_extended(step) : step;
}

/* outlier-extract, the fits, or the survey and one fit, autoselect, pack. */
static double stages_of_a_unit(const struct xfp_parameters *parameters)
{
	if (parameters->outlier_sigma == XFP_SIGMA_AUTO)
		return 5;
	return 3 + xfp_fit_wanted(parameters, XFP_FIT_BASE) + xfp_fit_wanted(parameters, XFP_FIT_LIBRARY);
}

/* What a step's time grows with. */
static double step_weights(const struct xfp_ledger_unit *unit, enum xfp_stamp step)
{
	uint64_t rows = unit->experts * unit->rows;

	return (double)(step == XFP_STAMP_SURVEY ? xfp_survey_rows(unit) : rows) * (double)unit->cols;
}

static double above_zero(double value)
{
	return value > 0 ? value : 0;
}

/* From the stages' own account of their time, and what is left of the whole. */
static void take_pace(const struct probe *probe, char *events, double seconds, double stages,
		      struct xfp_plan_pace *pace)
{
	const struct xfp_ledger_unit large = {
		.dtype = probe->dtype, .experts = 1, .rows = probe->rows, .cols = probe->cols
	};
	double spent[MOST_UNITS][XFP_STAMPS] = { { 0 } };
	char *line, *rest = events;

	while ((line = strsep(&rest, "\n"))) {
		struct xfp_event event;
		enum xfp_stamp step;

		if (!xfp_event_parse(line, &event) || event.unit >= MOST_UNITS)
			continue;
		step = step_of(&event, spent[event.unit]);
		if (step < XFP_STAMPS)
			spent[event.unit][step] = event.seconds;
	}
	for (int s = 0; s < XFP_STAMPS; s++) {
		double work = above_zero(spent[LARGE][s] - spent[TINY][s]);

		pace->weight[s] = work / step_weights(&large, (enum xfp_stamp)s);
		seconds -= work;
	}
	if (probe->fp8) {
		double work = above_zero(spent[FP8][XFP_STAMP_PACKED] - spent[TINY][XFP_STAMP_PACKED]);

		pace->fp8 = work / step_weights(&large, XFP_STAMP_PACKED);
		seconds -= work;
	}
	pace->unit = above_zero(seconds) / (TINY + TINY_UNITS + (probe->fp8 ? 1 / stages : 0));
	pace->known = true;
}

enum xfp_status xfp_plan_pace_measure(const struct xfp_conversion *c, struct xfp_signals *signals,
				      struct xfp_plan_pace *pace, struct xfp_error *err)
{
	struct xfp_error ignored = { 0 };
	char *path = NULL, *events = NULL;
	struct probe probe = { 0 };
	double seconds;

	*pace = (struct xfp_plan_pace){ 0 };
	look(c, &probe);
	if (!make_probe(c, &probe, &ignored) && !run_probe(&probe, signals, &seconds, &ignored) &&
	    (path = xfp_path(probe.c.options.work, XFP_EVENTS_FILE)) &&
	    !xfp_slurp(path, 1 << 20, &events, NULL, &ignored))
		take_pace(&probe, events, seconds, stages_of_a_unit(&c->options.parameters), pace);
	free(events);
	free(path);
	remove_probe(&probe);
	return signals->interrupted ? xfp_fail(err, XFP_FAILED, "interrupted") : XFP_OK;
}

/* ---- reckoning ----------------------------------------------------------------------------------- */

static double unit_seconds(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, uint32_t number)
{
	const struct xfp_extent extent = xfp_conversion_extent(c);
	const struct xfp_parameters *parameters = &c->options.parameters;
	const struct xfp_ledger_unit *unit = &c->ledger->units[number];
	const struct xfp_unit_state *state = &c->units[number];
	double weights = (double)xfp_unit_weights(unit), seconds = 0;
	bool extended = xfp_estimate(&extent, number, XFP_EXPECTED).extended;

	if (unit->plan != XFP_PLAN_FIT)
		return weights * pace->fp8 + pace->unit / stages_of_a_unit(parameters);
	for (int s = state->decided ? XFP_STAMP_PACKED : 0; s < XFP_STAMPS; s++)
		if (xfp_steps[s].weights && !(state->there >> s & 1) &&
		    xfp_step_wanted(parameters, (enum xfp_stamp)s, extended))
			seconds += step_weights(unit, (enum xfp_stamp)s) * pace->weight[s];
	return seconds + pace->unit * (state->decided ? 1 / stages_of_a_unit(parameters) : 1);
}

double xfp_plan_pace_units(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, unsigned jobs)
{
	unsigned processors = xfp_processors(), threads = xfp_stage_threads(jobs, c->todo);
	double sum = 0, longest = 0;

	for (uint32_t i = 0; i < c->ledger->unit_count; i++) {
		double seconds = c->units[i].done ? 0 : unit_seconds(c, pace, i);

		sum += seconds;
		longest = seconds > longest ? seconds : longest;
	}
	sum /= jobs < processors ? jobs : processors;
	/* No unit is faster than its own threads make it. */
	longest /= threads < processors ? threads : processors;
	return sum > longest ? sum : longest;
}

double xfp_plan_pace_bundle(uint64_t bytes)
{
	return (double)bytes / BUNDLE_BYTES_A_SECOND;
}
