/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/plan/nodes.h"

#include <stdlib.h>

#include "base/system/processors.h"
#include "conversion/launch/batches.h"
#include "conversion/todo.h"

#define UNEVEN 1.25                   /* units that divide worse than this are too few or too large */
#define VERIFY_SECONDS_A_WEIGHT 10e-9 /* of a processor: decode, compare, digest */

const char *xfp_plan_bound_name(enum xfp_plan_bound bound)
{
	static const char *const names[XFP_PLAN_BOUNDS] = { "work", "largest unit", "disk", "head node" };

	return names[bound];
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static uint32_t least_of(const double *values, uint32_t count)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < count; i++)
		least = values[i] < values[least] ? i : least;
	return least;
}

/* Give the next of some tasks to the worker that is free first. */
static void assign(double *busy, uint32_t workers, double seconds)
{
	busy[least_of(busy, workers)] += seconds;
}

static double longest(const double *seconds, uint32_t count)
{
	double most = 0;

	for (uint32_t i = 0; i < count; i++)
		most = larger(most, seconds[i]);
	return most;
}

static double total_of(const struct xfp_plan_load *load)
{
	double sum = 0;

	for (uint32_t i = 0; i < load->count; i++)
		sum += load->unit[i];
	return sum;
}

/* Seconds of a step: its units share the processors of a node, and each uses at most its threads. Units in work get the
 * same rate, so that `ends`, which has room for a unit of each processor, is in seconds of one thread. */
static double step_seconds(const struct xfp_plan_load *load, const struct xfp_batch_unit *units, uint32_t count,
			   const struct xfp_plan_nodes *nodes, double *ends)
{
	const double threads = xfp_batch_threads(nodes->processors, xfp_batch_heaviest(units, count));
	double elapsed = 0, now = 0;

	for (uint32_t next = 0, active = 0; next < count || active;) {
		double share;
		uint32_t first;

		while (active < nodes->processors && next < count)
			ends[active++] = now + load->unit[units[next++].unit];
		share = (double)nodes->processors / active;
		first = least_of(ends, active);
		elapsed += (ends[first] - now) / (share < threads ? share : threads);
		now = ends[first];
		ends[first] = ends[--active];
	}
	return elapsed + nodes->launch;
}

/* Divide units into steps, and steps among nodes. */
static void divide(const struct xfp_plan_load *load, const struct xfp_plan_nodes *nodes, struct xfp_batch_unit *units,
		   double *busy, struct xfp_plan_nodes_time *time)
{
	double *processors = busy + nodes->nodes;

	for (uint32_t i = 0; i < load->count; i++)
		units[i] = (struct xfp_batch_unit){ i, xfp_todo_seconds(load->weights[i]), 0 };
	time->steps = xfp_batches(units, load->count, nodes->nodes, XFP_TODO_STEP_SECONDS * nodes->processors);
	for (uint32_t i = 0, end; i < load->count; i = end) {
		for (end = i + 1; end < load->count && units[end].batch == units[i].batch;)
			end++;
		assign(busy, nodes->nodes, step_seconds(load, units + i, end - i, nodes, processors));
	}
	time->units = longest(busy, nodes->nodes);
	time->launching = nodes->launch * time->steps / nodes->nodes;
}

static enum xfp_plan_bound find_bound(const struct xfp_plan_nodes_time *time)
{
	if (time->layers + time->prepare + time->bundle > larger(time->units, time->disk))
		return XFP_BOUND_HEAD;
	if (time->disk > time->units)
		return XFP_BOUND_DISK;
	return time->units > UNEVEN * time->work ? XFP_BOUND_UNIT : XFP_BOUND_WORK;
}

enum xfp_status xfp_plan_nodes_predict(const struct xfp_plan_load *load, const struct xfp_plan_nodes *nodes,
				       struct xfp_plan_nodes_time *time, struct xfp_error *err)
{
	const double processors = nodes->processors, bandwidth = (double)nodes->bandwidth;
	const double sum = total_of(load);

	*time = (struct xfp_plan_nodes_time){
		.work = sum / processors / nodes->nodes,
		.disk = (double)load->moved / bandwidth,
		.prepare = load->prepare,
		.layers = load->layers / processors,
		.bundle = larger(xfp_plan_pace_bundle(load->bundle), 2 * (double)load->bundle / bandwidth),
	};
	if (nodes->nodes > 1 && load->count) {
		struct xfp_batch_unit *units = calloc(load->count, sizeof *units);
		double *busy = calloc((size_t)nodes->nodes + nodes->processors, sizeof *busy);

		if (units && busy)
			divide(load, nodes, units, busy, time);
		free(units);
		free(busy);
		if (!units || !busy)
			return xfp_no_memory(err);
	} else {
		/* Units run while layers are computed, and a single unit is limited by its threads. */
		time->units = larger(sum / processors, longest(load->unit, load->count) / load->threads - time->layers);
	}
	time->total = time->prepare + time->layers + larger(time->units, time->disk) + time->bundle;
	time->verify = larger(VERIFY_SECONDS_A_WEIGHT * (double)load->verified / processors,
			      (double)(load->source + load->bundle) / bandwidth);
	time->binds = find_bound(time);
	return XFP_OK;
}

enum xfp_status xfp_plan_load_gather(const struct xfp_plan_facts *facts, struct xfp_plan_load *load,
				     struct xfp_error *err)
{
	const struct xfp_conversion *c = facts->c;
	const struct xfp_estimate_input input = xfp_conversion_estimate_input(c);
	const struct xfp_disk disk = xfp_footprint_disk(&input, XFP_EXPECTED);
	const unsigned processors = xfp_processors(), threads = xfp_stage_threads(facts->jobs, c->units.todo);

	*load = (struct xfp_plan_load){
		.unit = calloc(c->units.ledger->unit_count + (size_t)1, sizeof *load->unit),
		.weights = calloc(c->units.ledger->unit_count + (size_t)1, sizeof *load->weights),
		.layers = xfp_plan_pace_layers(c),
		.prepare = facts->inspect_seconds,
		.moved = disk.artifacts + disk.work,
		.bundle = facts->bundle[XFP_EXPECTED],
		.threads = threads < processors ? threads : processors,
	};
	if (!load->unit || !load->weights)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[i];

		load->verified += xfp_unit_weights(unit);
		load->source += xfp_unit_source_bytes(unit);
		if (c->units.state[i].done)
			continue;
		load->moved += xfp_unit_source_bytes(unit);
		load->weights[load->count] = xfp_unit_weights(unit);
		load->unit[load->count++] = xfp_plan_pace_unit(c, &facts->pace, i);
	}
	return XFP_OK;
}

void xfp_plan_load_free(struct xfp_plan_load *load)
{
	free(load->unit);
	free(load->weights);
	*load = (struct xfp_plan_load){ 0 };
}
