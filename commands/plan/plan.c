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
#include "base/system/processors.h"
#include "base/text/size.h"
#include "commands/convert/convert.h"
#include "commands/plan/print.h"
#include "commands/ui/commands.h"
#include "conversion/launch/jobs.h"
#include "conversion/prepare.h"
#include "conversion/run.h"

#define MAX_NODES 4096
#define LAUNCH_SECONDS .3
#define BANDWIDTH 2000000000

/* The options of predictions for several nodes. */
struct own {
	struct xfp_plan_nodes nodes; /* without their number; no processors: as many as are used here */
	struct xfp_plan_cluster cluster;
};

static enum xfp_status predict_nodes(const struct xfp_plan_facts *facts, const struct own *own,
				     struct xfp_plan_cluster *cluster, struct xfp_error *err)
{
	const unsigned processors = facts->processors;
	struct xfp_plan_load load = { 0 };
	enum xfp_status status = XFP_OK;

	if (facts->current || (facts->c->units.todo && !facts->pace.known))
		cluster->count = 0;
	if (cluster->count)
		status = xfp_plan_load_gather(facts, &load, err);
	for (uint32_t i = 0; !status && i < cluster->count; i++) {
		struct xfp_plan_nodes *nodes = &cluster->nodes[i];
		const uint32_t number = nodes->nodes;

		*nodes = own->nodes;
		nodes->nodes = number;
		if (!nodes->processors)
			nodes->processors = facts->jobs < processors ? facts->jobs : processors;
		status = xfp_plan_nodes_predict(&load, nodes, &cluster->time[i], err);
	}
	xfp_plan_load_free(&load);
	return status;
}

static enum xfp_status parse_nodes(const struct xfp_option *option, const char *where, const char *text,
				   struct xfp_error *err)
{
	struct xfp_plan_cluster *cluster = option->context;
	const char *at = text;

	for (cluster->count = 0; at && cluster->count < XFP_PLAN_PREDICTIONS; cluster->count++) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);

		if (*at < '0' || *at > '9' || number < 1 || number > MAX_NODES || (*end && *end != ','))
			break;
		cluster->nodes[cluster->count].nodes = (uint32_t)number;
		at = *end ? end + 1 : NULL;
	}
	if (at)
		return xfp_fail(err, XFP_USAGE,
				"%s '%s': expected up to %d numbers of nodes from 1 to %d, as in 1,4,16", where, text,
				XFP_PLAN_PREDICTIONS, MAX_NODES);
	return XFP_OK;
}

static enum xfp_status parse_seconds(const struct xfp_option *option, const char *where, const char *text,
				     struct xfp_error *err)
{
	uint32_t millis;

	if (!xfp_decimal_parse(text, 1000, &millis) || millis > 3600000)
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected seconds from 0 to 3600, as in .3", where, text);
	*(double *)option->context = (double)millis / 1000;
	return XFP_OK;
}

static enum xfp_status parse_bandwidth(const struct xfp_option *option, const char *where, const char *text,
				       struct xfp_error *err)
{
	if (!xfp_size_parse(text, option->context))
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected bytes per second above 0, as in 2GB", where, text);
	return XFP_OK;
}

static int plan(struct xfp_conversion *c, void *context, struct xfp_error *err)
{
	/* With a launcher, each job is a step on a node, which runs that many units. */
	unsigned jobs = c->request->launcher ? xfp_step_processors_expected() : xfp_jobs(c->request);
	struct xfp_plan_facts facts = { .c = c,
					.jobs = jobs,
					.processors = c->request->launcher ? jobs : xfp_processors() };
	struct own *own = context;
	FILE *log = tmpfile(); /* output of inspect and the stages */
	bool borrowed = c->place.log < 0;
	const struct xfp_request *asked = c->request;
	struct xfp_request dry;
	double began = xfp_now();
	int status;

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
	began = xfp_now();
	if (!status)
		status = (int)xfp_prepare_units(c, false, err);
	facts.inspect_seconds += 2 * (xfp_now() - began); /* the manifest is updated unit by unit, too */
	if (!status)
		status = (int)xfp_plan_gather(c, &facts, err);
	if (!status && c->units.todo && !facts.current)
		status = (int)xfp_plan_pace_measure(c, &facts.pace, err);
	if (!status)
		status = (int)predict_nodes(&facts, own, &own->cluster, err);
	if (!status && c->request->json)
		status = (int)xfp_plan_print_json(&facts, &own->cluster, err);
	else if (!status)
		status = (int)xfp_plan_print(&facts, &own->cluster, err);
	c->request = asked;
	if (borrowed)
		c->place.log = -1;
	free(facts.curve.point);
	fclose(log);
	return status;
}

int xfp_main_plan(int argc, char **argv)
{
	struct own own = { .nodes = { .launch = LAUNCH_SECONDS, .bandwidth = BANDWIDTH } };
	const struct xfp_option options[] = {
		{ .name = "nodes",
		  .value = "N,...",
		  .text = "predict the time with --launcher on N nodes, too",
		  .parse = parse_nodes,
		  .complete = "?",
		  .context = &own.cluster },
		{ .name = "node-processors",
		  .value = "N",
		  .text = "processors of each node [as many as used here]",
		  .into_32 = &own.nodes.processors,
		  .range = { "a number of processors", 1, 4096 } },
		{ .name = "disk-bandwidth",
		  .value = "SIZE",
		  .text = "bytes that all nodes together read or write per second [2GB]",
		  .parse = parse_bandwidth,
		  .complete = "?",
		  .context = &own.nodes.bandwidth },
		{ .name = "launch-seconds",
		  .value = "SECONDS",
		  .text = "time to launch a step and to notice its end [.3]",
		  .parse = parse_seconds,
		  .complete = "?",
		  .context = &own.nodes.launch },
		{ 0 },
	};
	const struct xfp_conversion_command command = {
		.options = {
			.usage = "xfp plan [--nodes N,...] [OPTION ...] MODEL",
			.summary = "Predicts, from the headers alone, bits, bytes, memory, disk and time of a\n"
				   "conversion with these options, and what the cache already has. It changes\n"
				   "nothing. The other options are those of xfp convert; -o is optional.",
			.planning = true,
			.first = options,
		},
		.run = plan,
		.own = &own,
	};

	return xfp_run_command(argc, argv, &command);
}
