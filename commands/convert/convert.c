/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - xfp convert: converts a checkpoint to a bundle. Also xfp prepare, its first half, for users who run make
 * directly.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/command_line.h"
#include "base/text/screen.h"
#include "commands/convert/convert.h"
#include "commands/convert/options.h"
#include "commands/convert/prepare_print.h"
#include "commands/convert/progress.h"
#include "commands/convert/summary.h"
#include "commands/ui/commands.h"
#include "commands/ui/tokenizer_note.h"
#include "conversion/check_crcs.h"
#include "conversion/finish.h"
#include "conversion/place.h"
#include "conversion/prepare.h"
#include "conversion/resume.h"
#include "conversion/run.h"
#include "conversion/run_make.h"

/* Print the summary. With --like, print only the digest, which identifies the known contents. */
static enum xfp_status summarize(const struct xfp_conversion *c, const struct xfp_result *result, double seconds,
				 struct xfp_error *err)
{
	if (!c->request->like || c->request->json)
		return xfp_print_summary(c, result, seconds, err);
	if (!c->request->quiet) { /* format of sha256sum -c */
		printf("%s  ", result->sha256);
		xfp_screen_print(c->request->out, strlen(c->request->out), false);
		putchar('\n');
	}
	return XFP_OK;
}

static int dry_run(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_result result = { .sha256 = "" };
	enum xfp_status status = xfp_bundle_is_standalone(c, &result, err);
	bool alone = result.unchanged;

	if (!status && !alone)
		status = xfp_prepare_units(c, false, err);
	if (!status && !alone && !c->units.todo)
		status = xfp_bundle_is_current(c, &result, err);
	if (status)
		return (int)status;
	if (!alone)
		xfp_prepare_print(c);
	xfp_screen_printf(stdout, "%s %s\n", c->request->out,
			  result.unchanged                ? "is up to date"
			  : access(c->request->out, F_OK) ? "would be written"
							  : "would be written again");
	return XFP_OK;
}

static int convert(struct xfp_conversion *c, void *own, struct xfp_error *err)
{
	struct xfp_result result = { .sha256 = "" };
	double started = xfp_now();
	int status = xfp_prepare_folder(c, err);

	(void)own;
	c->place.refused = status && !c->signals->interrupted;
	if (status)
		return status;
	if (!c->request->quiet && !c->request->like)
		xfp_note_tokenizer(c->request->program, c->request->model, c->units.ledger);
	if (c->request->dry_run)
		return dry_run(c, err);
	if (!(status = (int)xfp_check_crcs(c, err)))
		status = xfp_conversion_run(c, &result, err);
	return status ? status : (int)summarize(c, &result, xfp_now() - started, err);
}

/* ---- commands ---------------------------------------------------------------------------------- */

/* Print how to resume, the most important message of an interrupted run. */
static void print_how_to_resume(const struct xfp_resume *resume)
{
	char *text = resume->command ? xfp_resume_text(resume->command, resume->folder, resume->other_folder) : NULL;

	fputs("\nxfp: interrupted; finished work is kept. To resume", stderr);
	if (text)
		xfp_screen_printf(stderr, ":\n  %s\n", text);
	else
		fputs(", run make again.\n", stderr);
	free(text);
}

static void report(const struct xfp_conversion_command *command, int status, const struct xfp_signals *signals,
		   const struct xfp_error *err, const struct xfp_resume *resume, const char *name)
{
	if (signals->interrupted && command->resumes)
		print_how_to_resume(resume);
	else if (!signals->interrupted && status && *err->text)
		fprintf(stderr, "%s: %s\n", name, err->text);
	if (status == XFP_USAGE && !signals->interrupted)
		xfp_point_to_help(name);
}

static int prepare(struct xfp_conversion *c, void *own, struct xfp_error *err)
{
	int status = xfp_prepare_folder(c, err);

	(void)own;
	if (!status)
		status = (int)xfp_check_crcs(c, err);
	if (!status)
		status = xfp_prepare_units(c, false, err);
	if (!status && !c->request->quiet)
		xfp_prepare_print(c);
	return status;
}

/* Replace `xfp prepare` by `xfp convert`, which finishes what prepare began; the caller frees. */
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
	struct xfp_options options = { .printed = false };
	struct xfp_conversion c = { .request = &options.request,
				    .signals = &signals,
				    .place = { .lock = -1, .log = -1, .cache_lock = -1 } };
	struct xfp_progress progress;
	struct xfp_resume resume = { 0 };
	struct xfp_error err = { 0 };
	char **words = malloc(((size_t)argc + 1) * sizeof *words); /* getopt reorders argv */
	int status;

	if (!words) {
		fprintf(stderr, "%s: out of memory\n", argv[0]);
		return XFP_FAILED;
	}
	memcpy(words, argv, ((size_t)argc + 1) * sizeof *words);
	status = (int)xfp_options_parse(argc, argv, &command->options, &options, &err);
	c.parameters = options.request.parameters;
	if (!status && options.printed) {
		xfp_options_free(&options);
		free(words);
		return XFP_OK;
	}
	resume = xfp_resume_find(options.inherited, words);
	c.place.record.command = to_convert(resume.command);
	c.place.record.folder = resume.folder ? strdup(resume.folder) : NULL;
	xfp_signals_block(&signals);
	xfp_progress_init(&progress, &c);
	if (!status)
		status = (int)xfp_conversion_open(&c, &err);
	if (!status)
		status = (int)xfp_run_environment(options.request.work, options.request.cache, &err);
	if (!status)
		status = command->run(&c, command->own, &err);
	xfp_conversion_ended(&c, command->done, status, err.text);
	report(command, status, &signals, &err, &resume, words[0]);
	xfp_conversion_close(&c);
	xfp_options_free(&options);
	xfp_resume_free(&resume);
	free(words);
	xfp_signals_release(&signals);
	return status;
}

int xfp_main_convert(int argc, char **argv)
{
	static const struct xfp_conversion_command command = {
		.options = {
			.usage = "xfp convert [OPTION ...] MODEL -o OUT.xfp",
			.summary = "Quantizes the weights of a checkpoint into one bundle, with as few bits as the "
				   "floors allow.",
		},
		.resumes = true,
		.done = "finished",
		.run = convert,
	};

	return xfp_run_command(argc, argv, &command);
}

int xfp_main_prepare(int argc, char **argv)
{
	static const struct xfp_conversion_command command = {
		.options = {
			.usage = "xfp prepare [OPTION ...] MODEL -o OUT.xfp",
			.summary = "Updates a conversion's work folder and lists missing work; see xfp-pipelines(7).",
		},
		.resumes = true,
		.done = "prepared",
		.run = prepare,
	};

	return xfp_run_command(argc, argv, &command);
}
