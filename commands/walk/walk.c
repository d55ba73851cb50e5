/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - xfp walk: from aggressive settings to conservative ones, until the model fits and works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/output.h"
#include "base/text/size.h"
#include "commands/convert/convert.h"
#include "commands/ui/commands.h"
#include "commands/ui/plot.h"
#include "commands/walk/walk.h"
#include "conversion/prepare.h"
#include "conversion/run.h"

#define PROBE_SECONDS 3600

/* The floors of routed experts, if no points are given. */
static const struct xfp_walk_range usual = { true, XFP_NANO / 100 * 90, XFP_NANO / 100 * 99, XFP_NANO / 100 };

static enum xfp_status parse_range(const struct xfp_option *option, const char *where, const char *text,
				   struct xfp_error *err)
{
	if (!xfp_walk_range_parse(text, option->context))
		return xfp_fail(err, XFP_USAGE,
				"%s '%s': expected a cosine from 0 to 1, or FIRST:LAST:STEP, as in .88:.95:.01", where,
				text);
	return XFP_OK;
}

static enum xfp_status parse_garbage(const struct xfp_option *option, const char *where, const char *text,
				     struct xfp_error *err)
{
	if (!xfp_walk_criteria_parse(text, option->context))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected two numbers from 0 to 1, as in .2,.5", where, text);
	return XFP_OK;
}

static enum xfp_status check_request(const struct xfp_walk_command *w, const struct xfp_request *request,
				     struct xfp_error *err)
{
	if (w->points && (w->lazy.given || w->strict.given))
		return xfp_fail(err, XFP_USAGE, "--points excludes --lazy and --strict");
	if (w->csv && request->json)
		return xfp_fail(err, XFP_USAGE, "--csv and --json exclude each other");
	if (request->like)
		return xfp_fail(err, XFP_USAGE, "--like fixes every setting, so there is nothing to walk");
	if (w->probe && !w->judge.text && !w->judge.command)
		return xfp_fail(err, XFP_USAGE, "--probe needs --text FILE or --probe-command CMD to judge bundles by");
	if (!w->probe && (w->judge.text || w->judge.command))
		return xfp_fail(err, XFP_USAGE, "%s applies to --probe", w->judge.text ? "--text" : "--probe-command");
	if (w->judge.text && !strcmp(w->judge.text, "-"))
		return xfp_fail(err, XFP_USAGE, "--text -: each bundle is judged by it again; name a file");
	if (w->probe && request->dry_run)
		return xfp_fail(err, XFP_USAGE, "--probe builds bundles, and --dry-run would not");
	if (w->plot && xfp_plot_check("--plot", w->plot, err))
		return err->status;
	if (request->drop_cache)
		return xfp_fail(err, XFP_USAGE, "--drop-cache would remove what other points need; give it to convert");
	return XFP_OK;
}

/* No point fits, or none that fits passes. */
static enum xfp_status refuse(const struct xfp_walk_command *w, struct xfp_error *err)
{
	uint32_t nearest = xfp_walk_nearest(&w->walk);
	const struct xfp_walk_point *point = &w->walk.point[nearest];
	char name[XFP_WALK_NAME], need[64], limit[64];

	if (w->found.largest != XFP_WALK_NONE && point->probe.measured)
		return xfp_fail(
			err, XFP_UNMET,
			"no point passes; the nearest, %s, has a top-1 agreement of %.1f %% with the source, and "
			"repeats %.1f %% of its 4-grams",
			xfp_walk_long_name(point, name), 100 * point->probe.agreement, 100 * point->probe.repeats);
	if (w->found.largest != XFP_WALK_NONE)
		return xfp_fail(err, XFP_UNMET, "no point passes; the nearest is %s", xfp_walk_long_name(point, name));
	return xfp_fail(err, XFP_UNMET, "%s: no point fits; the nearest, %s, needs %s, but the limit is %s",
			w->limit.option, xfp_walk_long_name(point, name),
			xfp_size_text(xfp_walk_cost(&w->walk, point), xfp_size_is_binary(w->limit.option), need),
			xfp_size_text(w->walk.limit.bytes, xfp_size_is_binary(w->limit.option), limit));
}

/* Low floors are the purpose of a walk, and weights apply to predicted errors. */
static void report(const struct xfp_notice *notice, void *context)
{
	if (notice->kind != XFP_NOTICE_LOW_FLOORS && notice->kind != XFP_NOTICE_IDLE_WEIGHT)
		xfp_notify(context, *notice);
}

/* Run missing surveys. Later children choose their own number of threads. */
static int survey(struct xfp_conversion *c, struct xfp_error *err)
{
	const bool chosen = getenv("OMP_NUM_THREADS");
	int status = xfp_survey_units(c, err);

	if (!chosen)
		unsetenv("OMP_NUM_THREADS");
	return status;
}

/* What probing needs of the command. */
struct probing {
	struct xfp_walk_command *w;
	struct xfp_conversion *c;
};

static enum xfp_status measure(void *own, struct xfp_walk_point *point, struct xfp_error *err)
{
	const struct probing *probing = own;

	return xfp_walk_measure(probing->w, probing->c, point, err);
}

/* List the points and, with --probe, build and judge some of them. */
static int walk(struct xfp_walk_command *w, struct xfp_conversion *c, struct xfp_request *dry, struct xfp_error *err)
{
	struct probing probing = { w, c };
	struct xfp_walk_prober prober = { .c = c,
					  .walk = &w->walk,
					  .judge = &w->judge,
					  .words = w->words,
					  .name = xfp_walk_long_name,
					  .measure = measure,
					  .own = &probing };
	int status = w->probe ? (int)xfp_walk_probe_begin(&prober, err) : XFP_OK;

	if (!status && dry->survey && xfp_walk_uses_surveys(w, c))
		status = survey(c, err);
	dry->dry_run = true;
	dry->survey = false;
	if (!status)
		status = (int)xfp_walk_list(w, c, err);
	if (!status && w->probe)
		status = (int)xfp_walk_probe_points(&prober, err);
	w->found = xfp_walk_find_boundaries(&w->walk, w->probe);
	xfp_walk_probe_end(&prober);
	return status;
}

static int run(struct xfp_conversion *c, void *own, struct xfp_error *err)
{
	struct xfp_walk_command *w = own;
	const struct xfp_request *asked = c->request;
	struct xfp_request dry = *asked;
	struct xfp_notify notify = c->notify;
	FILE *log = tmpfile(); /* output of inspect */
	bool borrowed = c->place.log < 0;
	int status = log ? (int)check_request(w, asked, err)
			 : (int)xfp_fail(err, XFP_FAILED, "cannot create a temporary file");

	if (status)
		goto done;
	if (borrowed)
		c->place.log = fileno(log);
	if ((w->usual = !w->points && !w->lazy.given && !w->strict.given))
		w->lazy = usual;
	/* The goal is only a limit here, also in the environment of points. */
	w->limit = asked->goal;
	dry.goal.kind = XFP_GOAL_NONE;
	c->request = &dry; /* cppcheck-suppress autoVariables ; restored at done */
	c->notify = (struct xfp_notify){ report, &notify };
	unsetenv("XFP_TARGET_SIZE");
	unsetenv("XFP_TARGET_BPW");
	unsetenv("XFP_ENVELOPE");
	unsetenv("XFP_RESERVE");
	status = (int)xfp_prepare_folder(c, err);
	if (!status)
		status = walk(w, c, &dry, err);
	if (!status && w->plot)
		status = (int)xfp_walk_plot(w, err);
	if (!status)
		status = (int)xfp_walk_print(w, c, err);
	xfp_output_flush(); /* before a message */
	if (!status && (w->probe || w->walk.limit.bytes) && w->found.best == XFP_WALK_NONE)
		status = (int)refuse(w, err);
done:
	c->request = asked;
	c->notify = notify;
	if (borrowed)
		c->place.log = -1;
	if (log)
		fclose(log);
	return status;
}

int xfp_main_walk(int argc, char **argv)
{
	struct xfp_walk_command w = { .program = argv[0],
				      .judge = { .seconds = PROBE_SECONDS, .criteria = { .2, .5 } } };
	const struct xfp_option own[] = {
		{ .name = "lazy",
		  .value = "RANGE",
		  .text = "floors of routed experts: X, or FIRST:LAST:STEP [.9:.99:.01]",
		  .parse = parse_range,
		  .complete = "?",
		  .context = &w.lazy },
		{ .name = "strict",
		  .value = "RANGE",
		  .text = "floors of the other classes, as --min-cos-strict; with --lazy, every pair",
		  .parse = parse_range,
		  .complete = "?",
		  .context = &w.strict },
		{ .name = "points",
		  .value = "sizes|NAME,...",
		  .text = "walk over the eight sizes of xfp plan and the limit, or over profiles, instead of floors",
		  .complete = "PROFILE",
		  .into = &w.points },
		{ .name = "probe",
		  .text = "build bundles and judge them, until it is known what passes and what fits",
		  .set = &w.probe },
		{ .name = "text",
		  .path = true,
		  .value = "FILE",
		  .text = "judge by this text: how well bundles predict it, and continue it",
		  .into = &w.judge.text },
		{ .name = "garbage",
		  .value = "REPEATS,AGREEMENT",
		  .text = "share of repeated 4-grams above the source's, and least top-1 agreement with it, "
			  "beyond which a bundle fails [.2,.5]",
		  .parse = parse_garbage,
		  .complete = "?",
		  .context = &w.judge.criteria },
		{ .name = "probe-command",
		  .value = "CMD",
		  .text = "judge by this command: status 0 passes, the last word of its output is the score",
		  .complete = "?",
		  .into = &w.judge.command },
		{ .name = "probe-timeout",
		  .value = "SECONDS",
		  .text = "kill the command after that long [3600]",
		  .into_32 = &w.judge.seconds,
		  .range = { "a number of seconds", 1, 1u << 30 } },
		{ .name = "csv", .text = "print the points as CSV", .set = &w.csv },
		{ .name = "plot",
		  .path = true,
		  .value = "FILE.svg",
		  .text = "draw size and error of the points",
		  .complete = "FILE",
		  .into = &w.plot },
		{ 0 },
	};
	const struct xfp_conversion_command command = {
		.options = {
			.usage = "xfp walk [--lazy RANGE] [--strict RANGE] [--probe] [OPTION ...] MODEL",
			.summary = "Predicts the bundles of several floors, from aggressive to conservative ones:\n"
				   "size, bits and error. Recommends the most conservative that fits --envelope or\n"
				   "--target-size; with --probe, the best that also works. The other options are\n"
				   "those of xfp convert; -o is optional.",
			.planning = true,
			.first = own,
			.survey = &w.probe,
		},
		.resumes = true,
		.run = run,
		.own = &w,
	};
	struct xfp_error err = { 0 };
	int status;

	if (!(w.argv = malloc(((size_t)argc + 1) * sizeof *w.argv))) {
		fprintf(stderr, "%s: out of memory\n", argv[0]);
		return XFP_FAILED;
	}
	memcpy(w.argv, argv, ((size_t)argc + 1) * sizeof *argv); /* getopt reorders argv */
	if ((status = (int)xfp_walk_words(&w, own, &err)))
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	else
		status = xfp_run_command(argc, argv, &command);
	xfp_walk_words_free(&w);
	xfp_walk_free(&w.walk);
	free(w.argv);
	return status;
}
