/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - xfp-launch: makes targets of a conversion on a node, by a launcher; and --here, what the launcher starts.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/output.h"
#include "base/system/signals.h"
#include "base/system/standard_files.h"
#include "conversion/launch/check.h"
#include "conversion/launch/launch.h"
#include "conversion/launch/step.h"
#include "stages/work/host_check.h"
#include "stages/work/hosts.h"

struct request {
	bool here, check;
	struct xfp_launch launch;
	const char *step, *version, *host;
};

/* Returns false, with a message, if arguments are missing. */
static bool is_complete(const struct request *request, const struct xfp_command_line *line, int *status)
{
	const char *problem = NULL;

	if (!line->argument_count && !request->check)
		problem = "TARGET is missing, such as u000012-packed";
	else if (line->argument_count && request->check)
		problem = "--check makes no TARGET";
	else if (!request->launch.work || !request->launch.cache)
		problem = "--work and --cache, or XFP_WORK and XFP_CACHE, are missing";
	else if (request->here && (!request->step || !request->version || !request->host))
		problem = "--here needs --step, --run-version and --run-host; it is for " XFP_LAUNCH_PROGRAM " itself";
	else if (!request->here && !request->launch.launcher)
		problem = "--launcher, or XFP_LAUNCHER, is missing";
	if (problem)
		*status = xfp_command_line_refuse(line, "%s", problem);
	return !problem;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static enum xfp_status check(const struct request *request, struct xfp_signals *signals, struct xfp_error *err)
{
	struct xfp_host_check asked = { .work = request->launch.work, .cache = request->launch.cache };

	if (!request->here)
		return xfp_launch_check(&request->launch, signals, err);
	snprintf(asked.name, sizeof asked.name, "%s", request->step);
	if (setenv(XFP_RUN_VERSION, request->version, 1))
		return xfp_no_memory(err);
	return xfp_host_check_answer(&asked, err);
}

static int run(const struct request *request)
{
	const struct xfp_step_call call = {
		.step = request->step,
		.work = request->launch.work,
		.cache = request->launch.cache,
		.version = request->version,
		.host = request->host,
		.keep_going = request->launch.keep_going,
		.heaviest = request->launch.heaviest,
		.targets = request->launch.targets,
	};
	const char *folder = request->here ? NULL : variable("XFP_LAUNCH_FOLDER");
	struct xfp_signals signals = { 0 };
	struct xfp_error err = { 0 };
	enum xfp_status status;

	if (folder && chdir(folder)) {
		fprintf(stderr, XFP_LAUNCH_PROGRAM ": XFP_LAUNCH_FOLDER: %s: %s\n", xfp_printable(folder).text,
			strerror(errno));
		return XFP_FAILED;
	}
	xfp_signals_block(&signals);
	status = request->check  ? check(request, &signals, &err)
		 : request->here ? xfp_step_run(&call, &signals, &err)
				 : xfp_launch_targets(&request->launch, &signals, &err);
	if (status && *err.text)
		fprintf(stderr, XFP_LAUNCH_PROGRAM ": %s\n", err.text);
	xfp_signals_release(&signals);
	return (int)status;
}

static int launch(int argc, char **argv)
{
	static char name[] = XFP_LAUNCH_PROGRAM;
	struct request request = { .launch = { .launcher = variable("XFP_LAUNCHER"),
					       .work = variable("XFP_WORK"),
					       .cache = variable("XFP_CACHE") } };
	const struct xfp_option options[] = {
		{ .name = "launcher",
		  .value = "CMD",
		  .text = "shell command that runs its arguments on a node (default: XFP_LAUNCHER)",
		  .into = &request.launch.launcher },
		{ .name = "work",
		  .value = "DIR",
		  .text = "work folder (default: XFP_WORK)",
		  .into = &request.launch.work },
		{ .name = "cache",
		  .value = "DIR",
		  .text = "artifact cache (default: XFP_CACHE)",
		  .into = &request.launch.cache },
		{ .name = "keep-going",
		  .letter = 'k',
		  .text = "make the other targets if one fails",
		  .set = &request.launch.keep_going },
		{ .name = "nice", .text = "run at a lower priority", .set = &request.launch.nice },
		{ .name = "heaviest",
		  .value = "N",
		  .text = "thousandths of the work that the heaviest target has [targets are alike]",
		  .into_32 = &request.launch.heaviest,
		  .range = { "thousandths", 1, 1000 } },
		{ .name = "check",
		  .text = "check that a node shares the folders and their locks; make nothing",
		  .set = &request.check },
		{ .name = "here", .text = "make the targets, or check, on this node", .set = &request.here },
		{ .name = "step",
		  .value = "FILE",
		  .text = "report to this file; with --check: the name of the check",
		  .into = &request.step },
		{ .name = "run-version",
		  .value = "VERSION",
		  .text = "refuse to run if xfp has another version",
		  .into = &request.version },
		{ .name = "run-host",
		  .value = "TAG",
		  .text = "the host of the conversion, whose events file others do not use",
		  .into = &request.host },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp-launch [--launcher CMD] [--work DIR] [--cache DIR] [-k] [--nice] TARGET ...\n"
			 "   or: xfp-launch --here --step FILE --run-version VERSION --run-host TAG --work DIR "
			 "--cache DIR [-k] TARGET ...\n"
			 "   or: xfp-launch --check [--launcher CMD] [--work DIR] [--cache DIR]",
		.summary = "Makes targets of a prepared work folder, such as u000012-packed, on a node of a cluster.\n"
			   "xfp convert --launcher starts it; the launcher starts it on the node, with --here.",
		.options = options,
	};
	int status;

	argv[0] = name;
	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	request.launch.targets = (const char *const *)line.arguments;
	return is_complete(&request, &line, &status) ? run(&request) : status;
}

int main(int argc, char **argv)
{
	xfp_standard_files();
	signal(SIGXFSZ, SIG_IGN); /* a file that exceeds the limit is an error like a full disk */
	return xfp_output_finish(XFP_LAUNCH_PROGRAM, launch(argc, argv));
}
