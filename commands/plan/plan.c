/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - xfp plan: what a conversion would take, told from the headers alone.
 *
 * A dry run goes as far as the state of each unit; the models of footprint.h and a short measurement of this
 * machine's pace do the rest. Nothing is changed, and nothing is left behind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/processors.h"
#include "commands/convert/convert.h"
#include "commands/convert/disk_space.h"
#include "commands/convert/drop_cache.h"
#include "commands/convert/finish.h"
#include "commands/convert/prepare.h"
#include "commands/plan/plan.h"
#include "commands/ui/commands.h"

double xfp_plan_seconds(const struct xfp_plan_facts *facts)
{
	double seconds = facts->inspect_seconds;

	if (facts->current)
		return seconds;
	return seconds + xfp_plan_pace_units(facts->c, &facts->pace, facts->jobs) +
	       xfp_plan_pace_bundle(facts->bundle[XFP_EXPECTED]);
}

/* What a goal was solved to is the size that convert writes, and an estimate beside it would contradict it. Until every
 * unit is measured it may still change, but a file never exceeds a goal that is about files. */
static void take_solved(const struct xfp_conversion *c, struct xfp_plan_facts *facts)
{
	const struct xfp_solved *solved = &c->solved;
	uint64_t *bundle = facts->bundle, file = solved->makeup.file;

	if (!c->options.goal.kind || !file)
		return;
	if (c->options.goal.kind != XFP_GOAL_ENVELOPE && bundle[XFP_MOST] > solved->budget)
		bundle[XFP_MOST] = solved->budget;
	bundle[XFP_EXPECTED] = file;
	if (solved->settled || bundle[XFP_LEAST] > file)
		bundle[XFP_LEAST] = file;
	if (solved->settled || bundle[XFP_MOST] < file)
		bundle[XFP_MOST] = file;
}

static enum xfp_status gather(struct xfp_conversion *c, struct xfp_plan_facts *facts, struct xfp_error *err)
{
	struct xfp_extent extent;
	struct xfp_result result = { .sha256 = "" };
	enum xfp_status status = XFP_OK;

	facts->staying = xfp_drop_outlook(c);
	extent = xfp_conversion_extent(c);
	for (int bound = 0; bound < XFP_BOUNDS; bound++)
		facts->bundle[bound] = xfp_footprint_bundle(&extent, (enum xfp_bound)bound);
	take_solved(c, facts);
	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		facts->measured += c->units[i].decided;
	if (!c->todo)
		status = xfp_bundle_is_current(c, &result, err);
	if (!status && !result.unchanged)
		status = xfp_bundle_is_alone(c, &result, err);
	if (status)
		return status;
	facts->current = result.unchanged;
	if (!facts->current)
		facts->disk = xfp_footprint_disk(&extent, XFP_MOST);
	if (c->solved.budget && facts->disk.bundle > facts->bundle[XFP_MOST])
		facts->disk.bundle = facts->bundle[XFP_MOST];
	if (!facts->current)
		xfp_check_disk_space(c, &facts->shortage);
	return xfp_footprint_memory(&extent, facts->jobs, !facts->current, &facts->memory, err);
}

static int plan(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	unsigned jobs = c->options.jobs ? c->options.jobs : xfp_processors();
	struct xfp_plan_facts facts = { .c = c, .jobs = jobs };
	FILE *log = tmpfile(); /* what inspect and the stages print */
	bool borrowed = c->log < 0;
	double began = xfp_now();
	int status;

	if (!log)
		return (int)xfp_fail(err, XFP_FAILED, "no temporary file");
	if (borrowed)
		c->log = fileno(log);
	status = (int)xfp_prepare_folder(c, signals, err);
	facts.inspect_seconds = xfp_now() - began;
	/* All else changes nothing. */
	if (!status && c->options.survey)
		status = xfp_survey_units(c, signals, err);
	c->options.dry_run = true;
	if (!status)
		status = (int)xfp_plan_curve(&facts, err);
	if (!status)
		status = (int)xfp_prepare_units(c, false, err);
	if (!status)
		status = (int)gather(c, &facts, err);
	if (!status && c->todo && !facts.current)
		status = (int)xfp_plan_pace_measure(c, signals, &facts.pace, err);
	if (!status && c->options.json)
		status = (int)xfp_plan_print_json(&facts, err);
	else if (!status)
		xfp_plan_print(&facts);
	if (borrowed)
		c->log = -1;
	free(facts.curve.point);
	fclose(log);
	return status;
}

int xfp_main_plan(int argc, char **argv)
{
	static const struct xfp_conversion_command command = {
		.usage = "xfp plan [OPTION ...] MODEL",
		.summary =
			"Tells what a conversion with these options would take, from the headers alone: bits, bytes,\n"
			"memory, disk and time, and what the cache already holds. It changes nothing. The options are\n"
			"those of xfp convert; the bundle need not be named.",
		.planning = true,
		.run = plan,
	};

	return xfp_run_command(argc, argv, &command);
}
