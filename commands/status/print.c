/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/status/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/utc.h"
#include "commands/ui/pace.h"
#include "commands/ui/when.h"
#include "conversion/resume.h"
#include "schemas/json_print.h"
#include "stages/work/verified.h"

#define MAX_SHOWN 10 /* units in flight, failures; --json has them all */

/* ---- text -------------------------------------------------------------------------------------- */

static struct xfp_pace pace_of(const struct xfp_run_state *s)
{
	return (struct xfp_pace){ s->weights, s->cached, s->fresh, s->working, s->guessed };
}

/* The command that resumes a run, for a run that is neither running nor finished. */
static char *resume_of(const struct xfp_run_state *s)
{
	char here[4096];
	bool other_folder = !getcwd(here, sizeof here) || !s->record.folder || strcmp(here, s->record.folder);

	return s->record.command ? xfp_resume_text(s->record.command, s->record.folder, other_folder) : NULL;
}

static void print_phase(FILE *out, const struct xfp_run_state *s)
{
	if (s->locked && *s->record.phase)
		fprintf(out, ", %s", s->record.phase);
	if (s->bundled > 0)
		fprintf(out, " %.1f%%", 100 * s->bundled);
}

static void print_state(FILE *out, const struct xfp_run_state *s)
{
	char clock[32], when[32];

	fprintf(out, "state    %s", s->state);
	if (s->locked && s->record.pid)
		fprintf(out, ", pid %" PRId64, s->record.pid);
	print_phase(out, s);
	if (s->record.started)
		fprintf(out, "%s%s", s->locked ? ", for " : " after ", xfp_clock_text(s->seconds, clock));
	if (!s->locked && s->record.ended / 1000)
		fprintf(out, ", %s", xfp_utc(s->record.ended / 1000, when));
	if (!s->locked && s->record.status > 0)
		fprintf(out, ", status %" PRId64, s->record.status);
	if (!s->locked && !strcmp(s->record.state, "running"))
		fputs(", killed", out);
	fputc('\n', out);
	if (!s->locked && s->record.message)
		xfp_screen_printf(out, "         %s\n", s->record.message);
}

static void print_progress(FILE *out, const struct xfp_run_state *s)
{
	struct xfp_pace pace = pace_of(s);
	char text[200];

	if (!s->locked)
		pace.elapsed = 0; /* no remaining time to predict */
	xfp_pace_text(&pace, text, sizeof text);
	fprintf(out, "units    %" PRIu32 " of %" PRIu32 " done, %" PRIu32 " of them from the cache\n", s->done,
		s->ledger->unit_count, s->done - s->done_fresh);
	if (s->layers)
		fprintf(out, "layers   %" PRIu32 " of %" PRIu32 " calibrated\n", s->layers_done, s->layers);
	if (s->unreached || s->zero)
		fprintf(out,
			"         %" PRIu32 " matrices of experts without tokens, %" PRIu32
			" whose inputs are always zero\n",
			s->unreached, s->zero);
	fprintf(out, "weights  %d%%, %s\n",
		s->weights > 0 ? (int)((s->cached + s->fresh) / s->weights * 100 + 1e-6) : 100, text);
}

static void print_classes(FILE *out, const struct xfp_run_state *s)
{
	fprintf(out, "\n%-16s %15s %21s\n", "class", "units", "weights");
	for (int i = 0; i < XFP_CLASSES; i++) {
		char units[32], weights[80], a[32], b[32];

		if (!s->class_units[i])
			continue;
		snprintf(units, sizeof units, "%" PRIu32 " of %" PRIu32, s->class_done[i], s->class_units[i]);
		snprintf(weights, sizeof weights, "%s of %s", xfp_human((double)s->class_weights_done[i], "", a),
			 xfp_human((double)s->class_weights[i], "", b));
		fprintf(out, "%-16s %15s %21s\n", xfp_class_name((enum xfp_class)i), units, weights);
	}
}

static void print_flight(FILE *out, const struct xfp_run_state *s)
{
	uint32_t shown = 0;

	if (!s->in_flight && !(s->layer && s->locked))
		return;
	fputs("\nin flight\n", out);
	if (s->layer && s->locked)
		fprintf(out, "  l%06" PRIu32 " %-16s %5.1f%%\n", s->layer - 1, xfp_steps[XFP_STAMP_INPUTS].stage,
			100 * s->layer_share);
	for (uint32_t i = 0; i < s->ledger->unit_count && shown < MAX_SHOWN; i++)
		if (*s->units[i].running) {
			fprintf(out, "  u%06" PRIu32 " %-16s %5.1f%%  %s\n", i, s->units[i].running,
				100 * s->units[i].inside, xfp_printable(s->ledger->units[i].name).text);
			shown++;
		}
	if (shown < s->in_flight)
		fprintf(out, "  and %" PRIu32 " more\n", s->in_flight - shown);
}

static bool failed(const struct xfp_run_state *s, uint32_t unit)
{
	return s->units[unit].failure && !s->units[unit].packed;
}

static void print_failures(FILE *out, const struct xfp_run_state *s)
{
	uint32_t shown = 0;

	if (!s->failures)
		return;
	fputs("\nfailures\n", out);
	if (s->failure && ++shown)
		fprintf(out, "  %s: %s\n", s->failure->stage, s->failure->message);
	for (uint32_t i = 0; i < s->ledger->unit_count && shown < MAX_SHOWN; i++)
		if (failed(s, i) && ++shown)
			fprintf(out, "  u%06" PRIu32 " %s: %s\n", i, s->units[i].failure->stage,
				s->units[i].failure->message);
	if (shown < s->failures)
		fprintf(out, "  and %" PRIu32 " more, in the log\n", s->failures - shown);
}

static void print_verified(FILE *out, const struct xfp_run_state *s)
{
	struct xfp_verified verified;

	if (!s->verified || !xfp_verified_parse(s->verified, &verified))
		return;
	if (verified.status)
		fprintf(out, "verify failed: %s (%s, status %d)\n", xfp_printable(verified.text).text, verified.when,
			verified.status);
	else
		fprintf(out, "verified %s\n", verified.when);
}

void xfp_status_text(FILE *out, const struct xfp_run_state *s)
{
	/* A run refused for its request would be refused again. */
	bool refused = !strcmp(s->state, XFP_RUN_REFUSED) && s->record.status != XFP_BAD_INPUT;
	bool wanted = !s->locked && strcmp(s->state, "finished") && !refused;
	char *resume = wanted ? resume_of(s) : NULL;

	print_state(out, s);
	if (s->record.model)
		xfp_screen_printf(out, "model    %s\n", s->record.model);
	if (s->record.model && s->record.out)
		xfp_screen_printf(out, "output   %s\n", s->record.out);
	print_verified(out, s);
	xfp_screen_printf(out, "log      %s/%s\n", s->work, XFP_LOG_FILE);
	if (s->ledger) {
		print_progress(out, s);
		print_classes(out, s);
		print_flight(out, s);
		print_failures(out, s);
	}
	if (resume)
		xfp_screen_printf(out, "\nto resume\n  %s\n", resume);
	free(resume);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static json_t *failure_json(const struct xfp_run_state *s, const struct xfp_event *event)
{
	bool composition = event->unit == XFP_NO_UNIT || xfp_is_layer(event->unit);

	return XFP_JSON({ "number", composition ? json_null() : xfp_json_count(event->unit) },
			{ "unit", xfp_json_text_or_null(composition ? NULL : s->ledger->units[event->unit].name) },
			{ "stage", xfp_json_text(event->stage) }, { "status", json_integer(event->status) },
			{ "message", xfp_json_text(event->message) });
}

static json_t *units_json(const struct xfp_run_state *s, json_t **flight, json_t **failures)
{
	json_t *classes = json_array();

	for (int i = 0; i < XFP_CLASSES; i++)
		if (s->class_units[i])
			xfp_json_add(&classes, XFP_JSON({ "class", xfp_json_text(xfp_class_name((enum xfp_class)i)) },
							{ "units", xfp_json_count(s->class_units[i]) },
							{ "units_done", xfp_json_count(s->class_done[i]) },
							{ "weights", xfp_json_count(s->class_weights[i]) },
							{ "weights_done", xfp_json_count(s->class_weights_done[i]) }));
	if (s->failure && strcmp(s->state, "finished"))
		xfp_json_add(failures, failure_json(s, s->failure));
	for (uint32_t i = 0; s->ledger && i < s->ledger->unit_count; i++) {
		if (s->locked && *s->units[i].running)
			xfp_json_add(flight, XFP_JSON({ "number", xfp_json_count(i) },
						      { "unit", xfp_json_text(s->ledger->units[i].name) },
						      { "stage", xfp_json_text(s->units[i].running) },
						      { "share", json_real(s->units[i].inside) }));
		if (failed(s, i))
			xfp_json_add(failures, failure_json(s, s->units[i].failure));
	}
	return classes;
}

static json_t *verified_json(const struct xfp_run_state *s)
{
	struct xfp_verified v;

	if (!s->verified || !xfp_verified_parse(s->verified, &v))
		return json_null();
	return XFP_JSON({ "time", xfp_json_text(v.when) }, { "status", json_integer(v.status) },
			{ "sha256", xfp_json_text(v.sha256) },
			{ "message", *v.text ? xfp_json_text(v.text) : json_null() },
			{ "seconds", json_real(s->verified->seconds) });
}

/* Returns NULL if out of memory. */
static json_t *run_json(const struct xfp_run_state *s)
{
	const struct xfp_run_record *r = &s->record;
	struct xfp_pace pace = pace_of(s);
	double left = s->locked ? xfp_pace_remaining(&pace) : -1, rate = xfp_pace_rate(&pace);
	json_t *flight = json_array(), *failures = json_array(), *classes = units_json(s, &flight, &failures), *root;
	char *log = xfp_path(s->work, XFP_LOG_FILE), *resume = resume_of(s);

	root = XFP_JSON({ "work", xfp_json_text(s->work) }, { "state", xfp_json_text(s->state) },
			{ "phase", xfp_json_text_or_null(s->locked && *r->phase ? r->phase : NULL) },
			{ "phase_share", s->bundled > 0 ? json_real(s->bundled) : json_null() },
			{ "pid", s->locked && r->pid ? json_integer(r->pid) : json_null() },
			{ "status", s->locked || !r->ended ? json_null() : json_integer(r->status) },
			{ "model", xfp_json_text_or_null(r->model) }, { "output", xfp_json_text_or_null(r->out) },
			{ "cache", xfp_json_text_or_null(r->cache) }, { "started", xfp_json_time(r->started / 1000) },
			{ "ended", s->locked ? json_null() : xfp_json_time(r->ended / 1000) },
			{ "seconds", json_real(s->seconds) },
			{ "message", s->locked ? json_null() : xfp_json_text_or_null(r->message) });
	xfp_json_join(&root,
		      XFP_JSON({ "units", xfp_json_count(s->ledger ? s->ledger->unit_count : 0) },
			       { "units_done", xfp_json_count(s->done) },
			       { "units_cached", xfp_json_count(s->done - s->done_fresh) },
			       { "weights", xfp_json_count((uint64_t)s->weights) },
			       { "weights_done", xfp_json_count((uint64_t)(s->cached + s->fresh)) },
			       { "weights_cached", xfp_json_count((uint64_t)s->cached) },
			       { "layers", s->layers ? xfp_json_count(s->layers) : json_null() },
			       { "layers_done", s->layers ? xfp_json_count(s->layers_done) : json_null() },
			       { "unreached_matrices", s->layers ? xfp_json_count(s->unreached) : json_null() },
			       { "zero_input_matrices", s->layers ? xfp_json_count(s->zero) : json_null() },
			       { "rate", json_real(rate) }, { "eta_seconds", left < 0 ? json_null() : json_real(left) },
			       { "classes", classes }, { "in_flight", flight }, { "failures", failures },
			       { "verified", verified_json(s) }, { "log", log ? xfp_json_text(log) : NULL },
			       { "resume", xfp_json_text_or_null(resume) }));
	free(resume);
	free(log);
	return root;
}

enum xfp_status xfp_status_json(const struct xfp_run_state *states, size_t count, bool one_line, struct xfp_error *err)
{
	json_t *runs = json_array(), *root;
	enum xfp_status status;

	for (size_t i = 0; i < count; i++)
		xfp_json_add(&runs, run_json(&states[i]));
	root = XFP_JSON({ "runs", runs });
	if (!one_line)
		return xfp_json_print(root, err);
	status = xfp_json_print_line(root, err);
	if (!status)
		putchar('\n');
	return status;
}

void xfp_status_line(FILE *out, const struct xfp_run_state *s)
{
	struct xfp_pace pace = pace_of(s);
	char text[200];

	fprintf(out, "%s", s->state);
	print_phase(out, s);
	if (s->ledger) {
		if (!s->locked)
			pace.elapsed = 0;
		xfp_pace_text(&pace, text, sizeof text);
		fprintf(out, ": %" PRIu32 " of %" PRIu32 " units, %s", s->done, s->ledger->unit_count, text);
		if (s->failures)
			fprintf(out, ", %" PRIu32 " failed", s->failures);
	}
	fputc('\n', out);
}
