/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/plan/plan.h"

#include "conversion/disk_space.h"
#include "conversion/drop_cache.h"
#include "conversion/finish.h"

double xfp_plan_seconds(const struct xfp_plan_facts *facts)
{
	double seconds = facts->inspect_seconds;

	if (facts->current)
		return seconds;
	return seconds + xfp_plan_pace_units(facts->c, &facts->pace, facts->jobs, facts->processors) +
	       xfp_plan_pace_bundle(facts->bundle[XFP_EXPECTED]);
}

/* Use the size of the solved goal, which is the size that convert writes; a separate estimate would contradict it. The
 * size may change until every unit is measured, but the file never exceeds a goal for the file size. */
static void use_solved_size(const struct xfp_conversion *c, struct xfp_plan_facts *facts)
{
	const struct xfp_solved *solved = &c->solved;
	uint64_t *bundle = facts->bundle, file = solved->breakdown.file;

	if (!c->request->goal.kind || !file)
		return;
	if (c->request->goal.kind != XFP_GOAL_ENVELOPE && bundle[XFP_MAXIMUM] > solved->budget)
		bundle[XFP_MAXIMUM] = solved->budget;
	bundle[XFP_EXPECTED] = file;
	if (solved->settled || bundle[XFP_MINIMUM] > file)
		bundle[XFP_MINIMUM] = file;
	if (solved->settled || bundle[XFP_MAXIMUM] < file)
		bundle[XFP_MAXIMUM] = file;
}

enum xfp_status xfp_plan_gather(struct xfp_conversion *c, struct xfp_plan_facts *facts, struct xfp_error *err)
{
	struct xfp_estimate_input input;
	struct xfp_result result = { .sha256 = "" };
	enum xfp_status status = XFP_OK;

	facts->staying = xfp_drop_predict(c);
	input = xfp_conversion_estimate_input(c);
	for (int bound = 0; bound < XFP_BOUNDS; bound++)
		facts->bundle[bound] = xfp_footprint_bundle(&input, (enum xfp_bound)bound);
	use_solved_size(c, facts);
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		facts->measured += c->units.state[i].decided;
	if (!c->units.todo)
		status = xfp_bundle_is_current(c, &result, err);
	if (!status && !result.unchanged)
		status = xfp_bundle_is_standalone(c, &result, err);
	if (status)
		return status;
	facts->current = result.unchanged;
	if (!facts->current)
		facts->disk = xfp_footprint_disk(&input, XFP_MAXIMUM);
	if (c->solved.budget && facts->disk.bundle > facts->bundle[XFP_MAXIMUM])
		facts->disk.bundle = facts->bundle[XFP_MAXIMUM];
	if (!facts->current)
		xfp_check_disk_space(c, &facts->shortage);
	return xfp_footprint_memory(&input, facts->jobs, !facts->current, &facts->memory, err);
}
