/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/run_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/steps.h"
#include "conversion/progress.h"
#include "schemas/calibration.h"
#include "stages/work/fit_note.h"
#include "stages/work/stage_progress.h"
#include "stages/work/verified.h"

/* ---- the folder -------------------------------------------------------------------------------- */

static bool identity_of(const char *folder, const char *name, struct xfp_identity *identity)
{
	char *path = xfp_path(folder, name);
	struct stat st;
	bool there = path && !stat(path, &st);

	*identity = there ? xfp_identity_of(&st) : (struct xfp_identity){ 0 };
	free(path);
	return there;
}

bool xfp_is_work_folder(const char *folder)
{
	struct xfp_identity ignored;

	return identity_of(folder, XFP_LOCK_FILE, &ignored) &&
	       (identity_of(folder, XFP_RUN_FILE, &ignored) || identity_of(folder, XFP_LEDGER_FILE, &ignored) ||
		identity_of(folder, XFP_LOG_FILE, &ignored));
}

enum xfp_status xfp_work_folder_of(const char *out, const char *remedy, char **work, struct xfp_error *err)
{
	int length = (int)strlen(out);
	char *path;

	while (length > 1 && out[length - 1] == '/')
		length--;
	path = xfp_formatted("%.*s%s", length, out, xfp_is_work_folder(out) ? "" : ".work");
	if (!path)
		return xfp_no_memory(err);
	if (!xfp_is_work_folder(path)) {
		xfp_fail(err, XFP_BAD_INPUT,
			 "%s: no conversion found: work folder %s does not exist; if it is elsewhere, %s", out, path,
			 remedy);
		free(path);
		return XFP_BAD_INPUT;
	}
	*work = path;
	return XFP_OK;
}

/* Test with a shared lock, released immediately, since a starting conversion waits for it. */
static bool is_locked(const char *work)
{
	char *path = xfp_path(work, XFP_LOCK_FILE);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	free(path);
	return locked;
}

static void judge(struct xfp_run_state *s)
{
	s->state = s->locked                             ? "running"
		   : !strcmp(s->record.state, "running") ? "interrupted" /* killed before it could record its end */
		   : *s->record.state                    ? s->record.state
		   : s->ledger                           ? "prepared"
							 : "interrupted";
}

/* ---- units ------------------------------------------------------------------------------------- */

static void reset_units(struct xfp_run_state *s)
{
	for (uint32_t i = 0; s->units && i < s->ledger->unit_count; i++)
		free(s->units[i].failure);
	free(s->units);
	s->units = NULL;
	s->layers_done = s->layer = s->unreached = s->zero = 0;
}

static enum xfp_status read_ledger(struct xfp_run_state *s, struct xfp_error *err)
{
	struct xfp_identity identity;
	enum xfp_status status = XFP_OK;
	char *path;
	bool refused = !s->locked && !strcmp(s->record.state, XFP_RUN_REFUSED);
	bool there = identity_of(s->work, XFP_LEDGER_FILE, &identity) && !refused;

	if (there && s->ledger && xfp_identity_equal(&identity, &s->ledger_identity))
		return XFP_OK;
	reset_units(s);
	xfp_events_reader_free(&s->events);
	xfp_ledger_free(s->ledger);
	s->ledger = NULL;
	s->layers = 0;
	free(s->layer_of);
	s->layer_of = NULL;
	s->ledger_identity = identity;
	if (!there || !identity.size)
		return XFP_OK;
	if (!(path = xfp_path(s->work, XFP_LEDGER_FILE)))
		return xfp_no_memory(err);
	status = xfp_ledger_read(path, &s->ledger, err);
	free(path);
	if (!status && !(s->units = calloc(s->ledger->unit_count + (size_t)1, sizeof *s->units)))
		status = xfp_no_memory(err);
	return status;
}

/* "u000012-packed" or "l000003-inputs": the number. */
static bool parse_stamp(const char *name, char of, const char *stamp, uint32_t *number)
{
	const char *dash = *name == of ? strchr(name, '-') : NULL;
	char *end;
	unsigned long value;

	if (!dash || strcmp(dash + 1, stamp) != 0)
		return false;
	value = strtoul(name + 1, &end, 10);
	*number = (uint32_t)value;
	return end == dash && value < XFP_LAYER;
}

static void reach_layer(struct xfp_run_state *s, uint32_t layer)
{
	if (layer < s->layers && layer >= s->layers_done)
		s->layers_done = layer + 1;
}

/* Read only the names of stamps: listing thousands is faster than opening a few. */
static void read_stamps(struct xfp_run_state *s)
{
	DIR *folder = opendir(s->work);
	struct dirent *entry;
	uint32_t number;

	for (uint32_t i = 0; i < s->ledger->unit_count; i++)
		s->units[i].packed = false;
	while (folder && (entry = readdir(folder))) {
		if (parse_stamp(entry->d_name, 'u', xfp_steps[XFP_STAMP_PACKED].stamp, &number) &&
		    number < s->ledger->unit_count)
			s->units[number].packed = true;
		else if (parse_stamp(entry->d_name, 'l', xfp_steps[XFP_STAMP_INPUTS].stamp, &number))
			reach_layer(s, number);
	}
	if (folder)
		closedir(folder);
	/* Inputs are removed once their units are packed. */
	for (uint32_t i = 0; s->layer_of && i < s->ledger->unit_count; i++)
		if (s->units[i].packed && s->layer_of[i] < s->layers)
			reach_layer(s, s->layer_of[i]);
}

/* Read the number of layers, and the layer of each unit, once. */
static void read_layers(struct xfp_run_state *s)
{
	struct xfp_calibration calibration = { 0 };
	bool found;

	if (!s->layers && !xfp_calibration_read(s->work, &calibration, &found, NULL) && found &&
	    (s->layer_of = calloc(s->ledger->unit_count + (size_t)1, sizeof *s->layer_of))) {
		s->layers = calibration.layers + 1;
		for (uint32_t u = 0; u < s->ledger->unit_count; u++)
			if (!xfp_calibration_unit(&calibration, s->ledger, u, &s->layer_of[u]))
				s->layer_of[u] = UINT32_MAX;
	}
	xfp_calibration_free(&calibration);
}

/* ---- events ------------------------------------------------------------------------------------ */

static void note(struct xfp_event **place, const struct xfp_event *event)
{
	if (!*place && !(*place = malloc(sizeof **place)))
		return;
	**place = *event;
}

static void apply_layer_event(struct xfp_run_state *s, const struct xfp_event *event)
{
	uint32_t layer = event->unit & ~XFP_LAYER;
	bool started = !strcmp(event->outcome, "started");

	s->layer = started ? layer + 1 : 0;
	if (event->status && event->status != XFP_DAMAGED && event->status != XFP_CHANGED)
		note(&s->failure, event);
	else if (!event->status && !started)
		reach_layer(s, layer);
}

static void apply_event(struct xfp_run_state *s, const struct xfp_event *event)
{
	bool whole = event->unit == XFP_NO_UNIT, made = !strcmp(event->outcome, "made");
	struct xfp_unit_progress *unit;
	struct xfp_fit_note fitted;
	double share;

	if (xfp_is_layer(event->unit))
		apply_layer_event(s, event);
	if (!whole && event->unit >= s->ledger->unit_count)
		return;
	if (xfp_event_is_verify(event)) {
		note(&s->verified, event); /* not a step of the run, nor a failure of it */
		return;
	}
	unit = whole ? NULL : &s->units[event->unit];
	if (made && unit && !unit->noted && xfp_fit_note_read(event, &fitted)) {
		unit->noted = true; /* counted once, even if it has several fits */
		s->unreached += fitted.unreached;
		s->zero += fitted.zero;
	}
	if (event->status && event->status != XFP_DAMAGED && event->status != XFP_WANT_EXTENDED &&
	    event->status != XFP_CHANGED)
		note(unit ? &unit->failure : &s->failure, event);
	if (!unit)
		return;
	unit->running[0] = '\0';
	if (!strcmp(event->outcome, "started"))
		memcpy(unit->running, event->stage, sizeof unit->running);
	else if (!event->status) {
		share = xfp_stage_share(s->modes, event->stage) - unit->fresh - unit->cached;
		if (share > 0)
			*(made ? &unit->fresh : &unit->cached) += share;
		free(unit->failure);
		unit->failure = NULL;
	}
}

/* Read the modes, which determine the shares of a unit's work and exist before the first event. */
static void read_modes(struct xfp_run_state *s)
{
	struct xfp_parameters parameters;

	if (xfp_work_parameters(s->work, &parameters, NULL))
		return;
	s->modes = parameters.modes;
	xfp_parameters_free(&parameters);
}

/* The events of a new run, which starts new files. */
static enum xfp_status restart_events(struct xfp_run_state *s, struct xfp_error *err)
{
	reset_units(s);
	free(s->failure);
	free(s->verified);
	s->failure = s->verified = NULL;
	s->units = calloc(s->ledger->unit_count + (size_t)1, sizeof *s->units);
	return s->units ? XFP_OK : xfp_no_memory(err);
}

/* Read appended events. */
static enum xfp_status read_events(struct xfp_run_state *s, struct xfp_error *err)
{
	char *text, *rest, *line;
	enum xfp_status status;

	s->events.final = !s->locked;
	status = xfp_events_read(s->work, &s->events, &text, err);
	if (!status && s->events.restarted)
		status = restart_events(s, err);
	if (!status && text)
		read_modes(s);
	rest = text;
	while (!status && (line = strsep(&rest, "\n"))) {
		struct xfp_event event;

		if (xfp_event_parse(line, &event))
			apply_event(s, &event);
	}
	free(text);
	return status;
}

/* Read the progress of running stages and of the bundle. */
static void read_pulses(struct xfp_run_state *s)
{
	struct xfp_stage_slots slots = xfp_stage_progress_open(s->work);

	for (uint32_t i = 0; i < s->ledger->unit_count; i++) {
		struct xfp_unit_progress *unit = &s->units[i];

		unit->inside = *unit->running && s->locked ? xfp_stage_progress_read(&slots, i, unit->running) : 0;
	}
	s->layer_share = s->layer && s->locked
				 ? xfp_stage_progress_read(&slots, xfp_layer_slot(s->ledger, s->layer - 1),
							   xfp_steps[XFP_STAMP_INPUTS].stage)
				 : 0;
	s->bundled = s->locked && !strcmp(s->record.phase, "bundling")
			     ? xfp_stage_progress_read(&slots, s->ledger->unit_count, XFP_BUNDLE_STAGE)
			     : 0;
	xfp_stage_progress_close(&slots);
}

/* ---- sums -------------------------------------------------------------------------------------- */

static void count_unit(struct xfp_run_state *s, uint32_t number, bool over)
{
	const struct xfp_ledger_unit *ledger = &s->ledger->units[number];
	const struct xfp_unit_progress *unit = &s->units[number];
	bool done = unit->packed || over;
	double weights = (double)xfp_unit_weights(ledger), fresh = unit->fresh;

	if (!done && *unit->running)
		fresh += unit->inside * xfp_stage_more(s->modes, unit->running, unit->fresh + unit->cached);
	s->weights += weights;
	s->fresh += fresh * weights;
	s->guessed += done ? 0 : fresh * weights;
	s->cached += (done ? 1 - unit->fresh : unit->cached) * weights;
	s->done += done;
	s->done_fresh += done && unit->fresh > 0;
	s->class_units[ledger->class_]++;
	s->class_weights[ledger->class_] += xfp_unit_weights(ledger);
	s->class_done[ledger->class_] += done;
	s->class_weights_done[ledger->class_] += done ? xfp_unit_weights(ledger) : 0;
	s->in_flight += s->locked && *unit->running;
	s->failures += unit->failure && !done;
}

static void count(struct xfp_run_state *s)
{
	/* A finished run whose cache was dropped has no stamps left. */
	bool over = !strcmp(s->state, "finished");

	s->done = s->done_fresh = s->in_flight = s->failures = 0;
	s->weights = s->cached = s->fresh = s->guessed = 0;
	memset(s->class_units, 0, sizeof s->class_units);
	memset(s->class_done, 0, sizeof s->class_done);
	memset(s->class_weights, 0, sizeof s->class_weights);
	memset(s->class_weights_done, 0, sizeof s->class_weights_done);
	for (uint32_t i = 0; s->ledger && i < s->ledger->unit_count; i++)
		count_unit(s, i, over);
	s->failures += !over && s->failure;
	if (over)
		s->layers_done = s->layers;
}

/* A killed run ended at its last write. The events files show that time, unless verify has appended to one since. */
static void measure(struct xfp_run_state *s)
{
	struct xfp_identity run = { 0 }, last = { .mtime_ns = s->events.written_ns };
	int64_t end = xfp_wall_ms();

	if (!s->locked && s->record.ended) {
		end = s->record.ended;
	} else if (!s->locked) {
		identity_of(s->work, XFP_RUN_FILE, &run);
		if (s->verified)
			identity_of(s->work, XFP_LOG_FILE, &last);
		end = (run.mtime_ns > last.mtime_ns ? run.mtime_ns : last.mtime_ns) / 1000000;
	}
	s->seconds = s->record.started && end > s->record.started ? (double)(end - s->record.started) / 1000 : 0;
	s->working = s->record.working && end > s->record.working ? (double)(end - s->record.working) / 1000 : 0;
}

enum xfp_status xfp_run_state_read(const char *work, struct xfp_run_state *s, struct xfp_error *err)
{
	enum xfp_status status;

	if (!xfp_is_work_folder(work))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: not the work folder of a conversion", work);
	if (!s->work && !(s->work = realpath(work, NULL)))
		return xfp_no_memory(err);
	/* Read twice if the run starts or ends between the two calls. */
	for (int look = 0; look < 2; look++) {
		bool running;

		s->locked = is_locked(work);
		xfp_run_record_read(work, &s->record, NULL);
		running = !strcmp(s->record.state, "running");
		/* A killed run is not over while one of its stages works on another host. */
		s->locked = s->locked || (running && xfp_steps_are_running(work));
		if (s->locked == running)
			break;
	}
	if ((status = read_ledger(s, err)))
		return status;
	if (s->ledger) {
		/* Until stages run, the events are those of the previous run. */
		bool old = s->locked && !s->record.working;

		read_layers(s);
		if (!old && (status = read_events(s, err)))
			return status;
		read_stamps(s);
		read_pulses(s);
	}
	judge(s);
	count(s);
	measure(s);
	return XFP_OK;
}

void xfp_run_state_free(struct xfp_run_state *s)
{
	reset_units(s);
	xfp_events_reader_free(&s->events);
	free(s->failure);
	free(s->verified);
	free(s->layer_of);
	free(s->work);
	xfp_ledger_free(s->ledger);
	xfp_run_record_free(&s->record);
	*s = (struct xfp_run_state){ 0 };
}
