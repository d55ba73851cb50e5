/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - xfp plan: predicts the cost of a conversion from headers alone.
 *
 * A dry run determines the state of each unit; the models of footprint.h and a short speed measurement of this machine
 * provide the rest. Nothing is modified or left behind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "commands/convert/convert.h"
#include "commands/plan/print.h"
#include "commands/ui/commands.h"
#include "conversion/launch/jobs.h"
#include "conversion/prepare.h"
#include "conversion/run.h"

static int plan(struct xfp_conversion *c, void *own, struct xfp_error *err)
{
	unsigned jobs = xfp_jobs(c->request);
	struct xfp_plan_facts facts = { .c = c, .jobs = jobs };
	FILE *log = tmpfile(); /* output of inspect and the stages */
	bool borrowed = c->place.log < 0;
	const struct xfp_request *asked = c->request;
	struct xfp_request dry;
	double began = xfp_now();
	int status;

	(void)own;
	if (!log)
		return (int)xfp_fail(err, XFP_FAILED, "cannot create a temporary file");
	if (borrowed)
		c->place.log = fileno(log);
	status = (int)xfp_prepare_folder(c, err);
	facts.inspect_seconds = xfp_now() - began;
	/* Only --survey modifies anything. */
	if (!status && c->request->survey)
		status = xfp_survey_units(c, err);
	dry = *c->request;
	dry.dry_run = true;
	dry.survey = false; /* predict the conversion after it */
	c->request = &dry;
	if (!status)
		status = (int)xfp_plan_curve(&facts, err);
	if (!status)
		status = (int)xfp_prepare_units(c, false, err);
	if (!status)
		status = (int)xfp_plan_gather(c, &facts, err);
	if (!status && c->units.todo && !facts.current)
		status = (int)xfp_plan_pace_measure(c, &facts.pace, err);
	if (!status && c->request->json)
		status = (int)xfp_plan_print_json(&facts, err);
	else if (!status)
		status = (int)xfp_plan_print(&facts, err);
	c->request = asked;
	if (borrowed)
		c->place.log = -1;
	free(facts.curve.point);
	fclose(log);
	return status;
}

int xfp_main_plan(int argc, char **argv)
{
	static const struct xfp_conversion_command command = {
		.options = {
			.usage = "xfp plan [OPTION ...] MODEL",
			.summary = "Predicts, from the headers alone, bits, bytes, memory, disk and time of a\n"
				   "conversion with these options, and what the cache already has. It changes\n"
				   "nothing. The options are those of xfp convert; -o is optional.",
			.planning = true,
		},
		.run = plan,
	};

	return xfp_run_command(argc, argv, &command);
}
