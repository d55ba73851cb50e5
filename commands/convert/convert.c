/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - xfp convert: a checkpoint becomes a bundle. And xfp prepare, its first half, for those
 * who run make by hand.
 *
 * inspect writes the ledger; then, until nothing is missing: the work folder is brought up to date,
 * make runs the units that are not finished, and xfp-bundle assembles the bundle. A stage that meets a
 * damaged artifact removes it, and the loop goes round again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/command_line.h"
#include "base/system/mapped.h"
#include "base/text/screen.h"
#include "commands/convert/check_crcs.h"
#include "commands/convert/convert.h"
#include "commands/convert/disk_space.h"
#include "commands/convert/drop_cache.h"
#include "commands/convert/finish.h"
#include "commands/convert/ingest.h"
#include "commands/convert/make_log.h"
#include "commands/convert/prepare.h"
#include "commands/convert/progress.h"
#include "commands/convert/resume.h"
#include "commands/convert/run_make.h"
#include "commands/goal/goal.h"
#include "commands/ui/commands.h"
#include "commands/ui/tokenizer_note.h"
#include "stages/settings/like.h"

#define MOST_REPETITIONS 3

struct follower {
	struct xfp_conversion *c;
	struct xfp_progress progress;
	struct xfp_error err;
};

static void follow(void *context)
{
	struct follower *follower = context;

	xfp_ingest(follower->c, xfp_progress_event, &follower->progress, &follower->err);
	xfp_progress_show(&follower->progress);
}

static void follow_bundle(void *context)
{
	struct follower *follower = context;

	xfp_progress_bundle(&follower->progress);
}

/* make over the units in todo.mk. The stages have said why they failed; make only knows that. */
static int run_units(struct follower *follower, struct xfp_signals *signals, struct xfp_error *err)
{
	struct xfp_conversion *c = follower->c;
	off_t before = xfp_log_size(c);
	int status;

	c->failures = 0;
	c->damaged = c->changed = false;
	xfp_progress_begin(&follower->progress);
	xfp_conversion_phase(c, "converting");
	status = xfp_run_make(c, signals, follow, follower, err);
	follow(follower);
	xfp_progress_clear(&follower->progress);
	if (!signals->interrupted)
		xfp_ingest_units(c);
	if (!status || signals->interrupted)
		return status;
	if (c->damaged)
		return (int)xfp_fail(err, XFP_DAMAGED, "an artifact, or a file of the work folder, was damaged");
	if (c->failures) {
		xfp_fail(err, c->failure,
			 "%" PRIu32 " of the %" PRIu32
			 " units left to do could not be converted%s; all output is in %s/%s",
			 c->failures, c->todo, c->options.keep_going ? "" : ", and no others were begun (-k goes on)",
			 c->options.work, XFP_LOG_FILE);
		return c->failure;
	}
	if (c->changed)
		return (int)xfp_fail(err, XFP_CHANGED, "weights changed while they were being converted");
	return (int)xfp_make_log_explain(c, before, err);
}

/* One time round: what is missing is made. XFP_DAMAGED and XFP_CHANGED ask for another. */
static int make_bundle(struct follower *follower, bool again, struct xfp_signals *signals, struct xfp_result *result,
		       struct xfp_error *err)
{
	struct xfp_conversion *c = follower->c;
	uint32_t missing;
	int status;

	xfp_conversion_phase(c, "preparing");
	if (!again && (status = (int)xfp_bundle_is_alone(c, result, err)))
		return status;
	if (!again && result->unchanged) {
		c->stands_alone = c->prepared = true;
		for (uint32_t i = 0; i < c->ledger->unit_count; i++)
			c->weights += xfp_unit_weights(&c->ledger->units[i]);
		return XFP_OK;
	}
	status = xfp_prepare_units(c, again, err);
	missing = c->todo;
	if (!status && !missing)
		status = (int)xfp_bundle_is_current(c, result, err);
	if (!status && result->unchanged) {
		xfp_record_units(c);
		return XFP_OK;
	}
	xfp_drop_outlook(c);
	if (!status && !c->options.force) {
		status = xfp_check_disk_space(c, err);
		c->refused = status && !again;
	}
	if (!status)
		xfp_drop_fits(c);
	/* Where a goal decides, what is missing follows from what was measured: each time round it is nearer. */
	for (bool nearer = missing; !status && nearer && !signals->interrupted;) {
		uint32_t steps = c->solved.steps;

		status = run_units(follower, signals, err);
		/* Once more, with what the units now are: only what is right goes into a bundle. */
		if (!signals->interrupted) {
			enum xfp_status prepared = xfp_prepare_units(c, false, status ? NULL : err);

			status = status ? status : (int)prepared;
		}
		nearer = c->todo && c->solved.steps > steps;
	}
	xfp_drop_fits(c);
	xfp_record_units(c);
	/* Before anything is said of the units: where a file changed, that is why they are not what they should be. */
	if (!status)
		status = xfp_ledger_check_files(c->ledger, err);
	if (!status && c->todo)
		status = (int)xfp_fail(err, XFP_DAMAGED, "%" PRIu32 " of the units are not what they should be",
				       c->todo);
	/* They may have turned out to be what they were: after --rehash, or where an artifact was made again. */
	if (!status && missing && !signals->interrupted)
		status = (int)xfp_bundle_is_current(c, result, err);
	if (status || signals->interrupted || result->unchanged)
		return status;
	xfp_conversion_phase(c, "bundling");
	xfp_progress_bundle_begin(&follower->progress);
	status = xfp_bundle_make(c, signals, follow_bundle, follower, result, err);
	xfp_progress_clear(&follower->progress);
	if (!status && c->options.goal.kind && result->bytes != c->solved.makeup.file)
		status = (int)xfp_fail(err, XFP_FAILED,
				       "%s: has %" PRIu64 " bytes, and its goal was reckoned with %" PRIu64
				       "; please report this",
				       c->options.out, result->bytes, c->solved.makeup.file);
	if (status == XFP_DAMAGED)
		xfp_fail(err, XFP_DAMAGED, "what the bundle is made of turned out to be damaged");
	return status;
}

/* Of a bundle made like another, its digest says that the bytes are its; what is in it is known. */
static enum xfp_status summarize(const struct xfp_conversion *c, const struct xfp_result *result, double seconds,
				 struct xfp_error *err)
{
	if (!c->options.like || c->options.json)
		return xfp_print_summary(c, result, seconds, err);
	if (!c->options.quiet) { /* a line that sha256sum -c reads */
		printf("%s  ", result->sha256);
		xfp_screen_print(c->options.out, strlen(c->options.out), false);
		putchar('\n');
	}
	return XFP_OK;
}

static int dry_run(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_result result = { .sha256 = "" };
	enum xfp_status status = xfp_bundle_is_alone(c, &result, err);
	bool alone = result.unchanged;

	if (!status && !alone)
		status = xfp_prepare_units(c, false, err);
	if (!status && !alone && !c->todo)
		status = xfp_bundle_is_current(c, &result, err);
	if (status)
		return (int)status;
	if (!alone)
		xfp_prepare_print(c);
	xfp_screen_printf(stdout, "%s %s\n", c->options.out,
			  result.unchanged               ? "is up to date"
			  : access(c->options.out, F_OK) ? "would be written"
							 : "would be written again");
	return XFP_OK;
}

/* The bundle is durable, and what it says of itself must not need what goes. That something stays, since
 * others use the cache perhaps, is no failure of the conversion. */
static void drop(struct xfp_conversion *c, struct xfp_result *result)
{
	struct xfp_error err = { 0 };

	if (c->store.read_only)
		xfp_fail(&err, XFP_FAILED, "%s: the cache is read-only", c->options.cache);
	else if (c->stands_alone || !xfp_bundle_stand_alone(c, result, &err))
		result->dropped = !xfp_drop_cache(c, &result->freed, &err);
	result->freed += xfp_dropped_bytes(c);
	if (!result->dropped)
		fprintf(stderr, "xfp: the cache is not dropped: %s\n", err.text);
}

/* Whether another time round may help: what is damaged is made again a few times, since every one may uncover more;
 * weights that change are read again once. Says what is wrong. */
static bool goes_round(const struct xfp_conversion *c, int status, int round, bool *reread, const struct xfp_error *err)
{
	if (c->signals->interrupted || round == MOST_REPETITIONS)
		return false;
	if (status == XFP_CHANGED && !*reread)
		*reread = true;
	else if (status != XFP_DAMAGED)
		return false;
	fprintf(stderr, "xfp: %s; %s\n", err->text,
		status == XFP_CHANGED ? "reading them once more" : "making again what is missing");
	return true;
}

/* What became of it, in the terms of an exit status. */
static int settle(const struct xfp_conversion *c, int status, struct xfp_error *err)
{
	if (status == XFP_CHANGED)
		return (int)xfp_fail(err, XFP_FAILED,
				     "%s: its weights change again and again while they are being converted; run again "
				     "when nobody writes to it",
				     c->options.model);
	if (status == XFP_DAMAGED && c->damaged)
		return (int)xfp_fail(err, XFP_FAILED,
				     "%s or %s: files are damaged again and again; check the disk that they are on",
				     c->options.cache, c->options.work);
	if (status == XFP_DAMAGED)
		return (int)xfp_context(err, XFP_FAILED, "see %s/%s", c->options.work, XFP_LOG_FILE);
	return status;
}

static int compare_like(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	xfp_mapped_begin(c->options.program, c->options.like, NULL);
	xfp_mapped_begin(c->options.program, c->options.out, NULL);
	status = xfp_like_compare(c->options.like, c->options.out, err);
	xfp_mapped_end();
	xfp_mapped_end();
	return (int)status;
}

static int convert(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	struct follower follower = { .c = c };
	struct xfp_result result = { .sha256 = "" };
	double started = xfp_now();
	bool reread = false;
	char *parameters;
	int status = xfp_prepare_folder(c, signals, err);

	c->refused = status && !signals->interrupted;
	if (status)
		return status;
	if (!c->options.quiet && !c->options.like)
		xfp_note_tokenizer(c->options.program, c->options.model, c->ledger);
	if (c->options.dry_run)
		return dry_run(c, err);
	if ((status = (int)xfp_check_crcs(c, err)))
		return status;
	parameters = xfp_parameters_to_json(&c->options.parameters);
	if (!parameters ||
	    xfp_manifest_run_begin(c->manifest, c->options.model, c->options.out, parameters, &c->run, NULL))
		c->run = 0;
	free(parameters);
	xfp_progress_init(&follower.progress, c);
	for (int round = 0;; round++) {
		status = make_bundle(&follower, round > 0, signals, &result, err);
		if (!goes_round(c, status, round, &reread, err))
			break;
	}
	status = settle(c, status, err);
	if (signals->interrupted) {
		/* Stages that the signal ended could not tidy up. */
		xfp_conversion_sweep(c);
		xfp_store_sweep(&c->store);
		status = status ? status : XFP_FAILED;
	}
	if (!status && c->options.like)
		status = compare_like(c, err);
	if (c->run && (status || xfp_record_units(c)))
		xfp_manifest_run_end(c->manifest, c->run, (enum xfp_status)status, status ? NULL : result.sha256,
				     result.bytes, NULL);
	if (c->run && !status && result.unchanged)
		xfp_manifest_still_verified(c->manifest, c->run, NULL);
	if (!status && c->options.drop_cache)
		drop(c, &result);
	return status ? status : (int)summarize(c, &result, xfp_now() - started, err);
}

int xfp_survey_units(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	struct follower follower = { .c = c };
	bool reread = false;
	int status = (int)xfp_goal_list_surveys(c, err);

	xfp_progress_init(&follower.progress, c);
	for (int round = 0; !status && c->todo && !signals->interrupted; round++) {
		status = run_units(&follower, signals, err);
		if (status && goes_round(c, status, round, &reread, err))
			status = XFP_OK;
		if (!status)
			status = (int)xfp_goal_list_surveys(c, err);
		if (!status && c->todo && round == MOST_REPETITIONS)
			status = (int)xfp_fail(err, XFP_FAILED, "%" PRIu32 " units could not be surveyed; see %s/%s",
					       c->todo, c->options.work, XFP_LOG_FILE);
	}
	status = settle(c, status, err);
	return status || !signals->interrupted ? status : XFP_FAILED;
}

/* ---- commands ---------------------------------------------------------------------------------- */

/* Of all that can be printed at the end of a run, what a user needs most. */
static void print_how_to_go_on(const struct xfp_resume *resume)
{
	char *text = resume->command ? xfp_resume_text(resume->command, resume->folder, resume->elsewhere) : NULL;

	fputs("\nxfp: interrupted; what is finished stays. To go on", stderr);
	if (text)
		xfp_screen_printf(stderr, ":\n  %s\n", text);
	else
		fputs(", run make again.\n", stderr);
	free(text);
}

static void report(const struct xfp_conversion_command *command, int status, const struct xfp_signals *signals,
		   const struct xfp_error *err, const struct xfp_resume *resume, const char *name)
{
	if (signals->interrupted && !command->planning)
		print_how_to_go_on(resume);
	else if (!signals->interrupted && status && *err->text)
		fprintf(stderr, "%s: %s\n", name, err->text);
	if (status == XFP_USAGE && !signals->interrupted)
		xfp_point_to_help(name);
}

static int prepare(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	int status = xfp_prepare_folder(c, signals, err);

	if (!status)
		status = (int)xfp_check_crcs(c, err);
	if (!status)
		status = xfp_prepare_units(c, false, err);
	if (!status && !c->options.quiet)
		xfp_prepare_print(c);
	return status;
}

/* What `xfp prepare` began is convert's to finish; the caller frees. */
static char *to_convert(const char *command)
{
	static const char prepare_[] = "xfp prepare";
	const char *at = command ? strstr(command, prepare_) : NULL;

	if (!command)
		return NULL;
	return at ? xfp_formatted("%.*sxfp convert%s", (int)(at - command), command, at + sizeof prepare_ - 1)
		  : strdup(command);
}

int xfp_run_command(int argc, char **argv, const struct xfp_conversion_command *command)
{
	struct xfp_signals signals = { 0 };
	struct xfp_conversion c = { .signals = &signals, .lock = -1, .log = -1, .cache_lock = -1 };
	struct xfp_resume resume = { 0 };
	struct xfp_error err = { 0 };
	char **words = malloc(((size_t)argc + 1) * sizeof *words); /* getopt reorders argv */
	int status;

	if (!words) {
		fprintf(stderr, "%s: out of memory\n", argv[0]);
		return XFP_FAILED;
	}
	memcpy(words, argv, ((size_t)argc + 1) * sizeof *words);
	status = (int)xfp_options_parse(argc, argv, command->usage, command->summary, command->planning, &c.options,
					&err);
	if (!status && c.options.told) {
		xfp_options_free(&c.options);
		free(words);
		return XFP_OK;
	}
	resume = xfp_resume_find(c.options.inherited, words);
	c.record.command = to_convert(resume.command);
	c.record.folder = resume.folder ? strdup(resume.folder) : NULL;
	xfp_signals_hold(&signals);
	if (!status)
		status = (int)xfp_conversion_open(&c, &err);
	if (!status)
		status = (int)xfp_run_environment(&c, &err);
	if (!status)
		status = command->run(&c, &signals, &err);
	xfp_conversion_ended(&c, command->done, status, err.text);
	report(command, status, &signals, &err, &resume, words[0]);
	xfp_conversion_close(&c);
	xfp_resume_free(&resume);
	free(words);
	xfp_signals_release(&signals);
	return status;
}

int xfp_main_convert(int argc, char **argv)
{
	static const struct xfp_conversion_command command = {
		.usage = "xfp convert [OPTION ...] MODEL -o OUT.xfp",
		.summary =
			"Quantizes the weights of a checkpoint into one bundle, with as few bits as the floors allow.",
		.done = "finished",
		.run = convert,
	};

	return xfp_run_command(argc, argv, &command);
}

int xfp_main_prepare(int argc, char **argv)
{
	static const struct xfp_conversion_command command = {
		.usage = "xfp prepare [OPTION ...] MODEL -o OUT.xfp",
		.summary =
			"Brings a conversion's work folder up to date and lists what is missing; see xfp-pipelines(7).",
		.done = "prepared",
		.run = prepare,
	};

	return xfp_run_command(argc, argv, &command);
}
