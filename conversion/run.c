/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/system/mapped.h"
#include "conversion/disk_space.h"
#include "conversion/drop_cache.h"
#include "conversion/ingest.h"
#include "conversion/like_compare.h"
#include "conversion/make_log.h"
#include "conversion/place.h"
#include "conversion/prepare.h"
#include "conversion/progress.h"
#include "conversion/run_calibrate.h"
#include "conversion/run_make.h"
#include "conversion/state/layers.h"
#include "conversion/state/prepare_unit.h"
#include "conversion/todo.h"
#include "stages/work/hosts.h"

#define MAX_REPETITIONS 3

static void follow(void *conversion)
{
	struct xfp_conversion *c = conversion;

	xfp_ingest(c, NULL);
	XFP_NOTIFY(c, .kind = XFP_NOTICE_UNITS);
}

static void follow_bundle(void *conversion)
{
	const struct xfp_conversion *c = conversion;

	XFP_NOTIFY(c, .kind = XFP_NOTICE_BUNDLE);
}

/* Whether a fit with the inputs of a layer exists, or existed. The inputs then existed, too. */
static bool has_fitted(const struct xfp_conversion *c, uint32_t layer)
{
	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		struct xfp_policy policy;

		if (c->layers.of_unit[u] == layer && c->units.state[u].done) {
			const struct xfp_parameters parameters = xfp_prepare_parameters(c, u, &policy);

			if (xfp_layers_key(c, u, &parameters))
				return true;
		}
	}
	return false;
}

/* Report layers that are computed although all their units are done: their inputs were removed, and a layer after them
 * needs its own again. */
static void report_recomputed(const struct xfp_conversion *c)
{
	uint32_t first = c->layers.count, again = 0;

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++)
		if (xfp_unit_needs_inputs(c, u) && xfp_layers_of(c, u) < first)
			first = xfp_layers_of(c, u);
	for (uint32_t i = 0; i < first && first < c->layers.count; i++)
		again += xfp_layer_is_missing(&c->layers.state[i]) && has_fitted(c, i);
	if (again)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_LAYERS_AGAIN, .count = again, .total = first);
}

static void report_unreached(struct xfp_conversion *c)
{
	if (c->events.unreached)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_UNREACHED, .count = c->events.unreached,
			   .total = c->events.unreached_units);
	c->events.unreached = c->events.unreached_units = 0;
}

/* Whether the unit's fits, or the solution of a goal, follow from its survey. */
static bool is_surveyed(const struct xfp_conversion *c, uint32_t unit)
{
	return c->units.ledger->units[unit].plan == XFP_PLAN_FIT &&
	       (c->request->goal.kind ||
		(xfp_step_wanted(&c->parameters, XFP_STAMP_SURVEY, false) && !c->parameters.assigned_count));
}

/* Report imported surveys if none of them applies. */
static void report_unused_surveys(const struct xfp_conversion *c)
{
	uint64_t wanted = 0, unused;

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		if (c->units.state[u].done || c->units.state[u].in_store >> XFP_STAMP_SURVEY & 1)
			return;
		wanted += is_surveyed(c, u);
	}
	if (wanted && c->place.manifest && (unused = xfp_manifest_unused_surveys(c->place.manifest)))
		XFP_NOTIFY(c, .kind = XFP_NOTICE_UNUSED_SURVEYS, .count = unused);
}

/* Run make for the units in todo.mk. On failure, the stages have reported the cause; make only knows that one
 * failed. */
static int run_units(struct xfp_conversion *c, struct xfp_error *err)
{
	off_t before = xfp_log_size(&c->place);
	int status;

	c->events.failures = c->events.failed_layer = 0;
	c->events.damaged = c->events.changed = false;
	if ((status = (int)xfp_check_hosts(c, err)))
		return status;
	xfp_units_progress_begin(c);
	XFP_NOTIFY(c, .kind = XFP_NOTICE_UNITS_BEGIN);
	xfp_conversion_phase(c, "converting");
	status = xfp_run_make(c, follow, c, err);
	if (c->request->launcher)
		xfp_shared_folders_refresh(c->request->work, c->request->cache);
	c->events.reader.final = true;
	follow(c);
	c->events.reader.final = false;
	XFP_NOTIFY(c, .kind = XFP_NOTICE_UNITS_END);
	if (!c->signals->interrupted)
		xfp_ingest_units(c);
	if (!status || c->signals->interrupted)
		return status;
	if (c->events.damaged || c->events.failed_layer || c->events.failures || c->events.changed)
		xfp_make_log_show_launcher(c, before);
	if (c->events.damaged)
		return (int)xfp_fail(err, XFP_DAMAGED, "an artifact, or a file of the work folder, was damaged");
	if (c->events.failed_layer) {
		xfp_fail(err, c->events.failure,
			 "the inputs of layer %" PRIu32 " could not be computed, which units from there on need; see "
			 "%s/%s",
			 c->events.failed_layer - 1, c->request->work, XFP_LOG_FILE);
		return c->events.failure;
	}
	if (c->events.failures) {
		xfp_fail(err, c->events.failure,
			 "%" PRIu32 " of the %" PRIu32 " remaining units could not be converted%s; see %s/%s",
			 c->events.failures, c->units.todo,
			 c->request->keep_going ? "" : ", and no others were started (-k continues)", c->request->work,
			 XFP_LOG_FILE);
		return c->events.failure;
	}
	if (c->events.changed)
		return (int)xfp_fail(err, XFP_CHANGED, "weights changed while they were being converted");
	return (int)xfp_make_log_explain(c, before, err);
}

static int check_unit(struct xfp_conversion *c, uint32_t unit, struct xfp_error *err)
{
	char name[16];
	const char *argv[] = { xfp_steps[XFP_STAMP_SURVEY].program, "--work", c->request->work, "--check", name, NULL };

	xfp_unit_format(unit, name);
	return xfp_run_program(c, argv, err);
}

/* For --check-survey N: measure the surveys of N units again, evenly spaced over all surveyed units, and compare them
 * with those in the cache. XFP_UNMET: one differs. */
static int check_surveys(struct xfp_conversion *c, struct xfp_error *err)
{
	uint64_t count = 0, wanted = c->request->check_survey, passed = 0;
	int status = XFP_OK;

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++)
		count += is_surveyed(c, u);
	wanted = wanted < count ? wanted : count;
	for (uint32_t u = 0; !status && u < c->units.ledger->unit_count && !c->signals->interrupted; u++) {
		if (!is_surveyed(c, u))
			continue;
		/* `wanted` of the units advance this product across a multiple of `count`. */
		if ((passed + 1) * wanted / count > passed * wanted / count)
			status = check_unit(c, u, err);
		passed++;
	}
	return status;
}

/* One round: make everything that is missing. XFP_DAMAGED and XFP_CHANGED request another round. */
static int make_bundle(struct xfp_conversion *c, bool again, struct xfp_result *result, struct xfp_error *err)
{
	uint32_t missing;
	int status;

	xfp_conversion_phase(c, "preparing");
	if (!again && (status = (int)xfp_bundle_is_standalone(c, result, err)))
		return status;
	if (!again && result->unchanged) {
		if (c->request->check_survey)
			XFP_NOTIFY(
				c, .kind = XFP_NOTICE_MESSAGE,
				.text = "note: no survey was checked, since the bundle is complete without the cache");
		c->drop.stands_alone = c->units.prepared = true;
		for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
			c->units.weights += xfp_unit_weights(&c->units.ledger->units[i]);
		return XFP_OK;
	}
	if (again && (status = xfp_run_calibrate_again(c, err)))
		return status;
	status = xfp_prepare_units(c, again, err);
	missing = c->units.todo;
	if (!status && !again && c->request->check_survey)
		status = check_surveys(c, err);
	if (!status && !missing)
		status = (int)xfp_bundle_is_current(c, result, err);
	if (!status && result->unchanged) {
		xfp_record_units(c);
		return XFP_OK;
	}
	xfp_drop_predict(c);
	if (!status && !c->request->force) {
		status = xfp_check_disk_space(c, err);
		c->place.refused = status && !again;
	}
	if (!status) {
		xfp_drop_fits(c);
		report_recomputed(c);
		if (!again)
			report_unused_surveys(c);
	}
	/* With a goal, the missing artifacts depend on measurements: each iteration is closer to the end. */
	for (bool nearer = missing; !status && nearer && !c->signals->interrupted;) {
		uint32_t steps = c->solved.steps;

		status = run_units(c, err);
		/* Prepare again with the new artifacts: only current ones may go into a bundle. */
		if (!c->signals->interrupted) {
			enum xfp_status prepared = xfp_prepare_units(c, false, status ? NULL : err);

			status = status ? status : (int)prepared;
		}
		nearer = c->units.todo && c->solved.steps > steps;
	}
	xfp_drop_fits(c);
	xfp_record_units(c);
	report_unreached(c);
	/* Check the files first: a changed file explains why units are not current. */
	if (!status)
		status = xfp_ledger_check_files(c->units.ledger, err);
	if (!status && c->units.todo)
		status = (int)xfp_fail(err, XFP_DAMAGED, "%" PRIu32 " units do not match their keys", c->units.todo);
	/* The artifacts may be identical to before, after --rehash or if one was made again. */
	if (!status && missing && !c->signals->interrupted)
		status = (int)xfp_bundle_is_current(c, result, err);
	if (status || c->signals->interrupted || result->unchanged)
		return status;
	xfp_conversion_phase(c, "bundling");
	XFP_NOTIFY(c, .kind = XFP_NOTICE_BUNDLE_BEGIN);
	status = xfp_bundle_make(c, follow_bundle, c, result, err);
	XFP_NOTIFY(c, .kind = XFP_NOTICE_BUNDLE_END);
	if (!status && c->request->goal.kind && result->bytes != c->solved.breakdown.file)
		status = (int)xfp_fail(err, XFP_FAILED,
				       "%s: has %" PRIu64 " bytes, but its goal was computed with %" PRIu64
				       "; please report this",
				       c->request->out, result->bytes, c->solved.breakdown.file);
	if (status == XFP_DAMAGED)
		xfp_fail(err, XFP_DAMAGED, "an input of the bundle was damaged");
	return status;
}

/* Whether another round may help: damaged artifacts are made again a few times, since each round may reveal more;
 * changed weights are read again once. Reports the problem. */
static bool needs_repeat(const struct xfp_conversion *c, int status, int round, bool *reread,
			 const struct xfp_error *err)
{
	if (c->signals->interrupted || round == MAX_REPETITIONS)
		return false;
	if (status == XFP_CHANGED && !*reread)
		*reread = true;
	else if (status != XFP_DAMAGED)
		return false;
	XFP_NOTIFY(c, .kind = XFP_NOTICE_AGAIN, .text = err->text,
		   .other = status == XFP_CHANGED ? "reading them again" : "making the missing artifacts again");
	return true;
}

/* Convert the status of the last round to an exit status. */
static int settle(const struct xfp_conversion *c, int status, struct xfp_error *err)
{
	if (status == XFP_CHANGED)
		return (int)xfp_fail(err, XFP_FAILED,
				     "%s: its weights keep changing during the conversion; run again when nothing "
				     "writes to it",
				     c->request->model);
	if (status == XFP_DAMAGED && c->events.damaged)
		return (int)xfp_fail(err, XFP_FAILED,
				     "%s or %s: files keep getting damaged; check the disk that holds them",
				     c->request->cache, c->request->work);
	if (status == XFP_DAMAGED)
		return (int)xfp_context(err, XFP_FAILED, "see %s/%s", c->request->work, XFP_LOG_FILE);
	return status;
}

/* Drop the cache. The bundle is durable, but its stamp must not depend on artifacts. Failure to remove some, for
 * example because others use the cache, is not a failure of the conversion. */
static void drop(struct xfp_conversion *c, struct xfp_result *result)
{
	struct xfp_error err = { 0 };

	if (c->place.store.read_only)
		xfp_fail(&err, XFP_FAILED, "%s: the cache is read-only", c->request->cache);
	else if (c->drop.stands_alone || !xfp_bundle_make_standalone(c, result, &err))
		result->dropped = !xfp_drop_cache(c, &result->freed, &err);
	result->freed += xfp_dropped_bytes(c);
	if (!result->dropped)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_CACHE_KEPT, .text = err.text);
}

static int compare_like(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	xfp_mapped_begin(c->request->program, c->request->like, NULL);
	xfp_mapped_begin(c->request->program, c->request->out, NULL);
	status = xfp_like_compare(c->request->like, c->request->out, err);
	xfp_mapped_end();
	xfp_mapped_end();
	return (int)status;
}

int xfp_conversion_run(struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err)
{
	bool reread = false;
	char *parameters;
	int status;

	parameters = xfp_parameters_to_json(&c->parameters);
	if (!parameters || xfp_manifest_run_begin(c->place.manifest, c->request->model, c->request->out, parameters,
						  &c->place.run, NULL))
		c->place.run = 0;
	free(parameters);
	for (int round = 0;; round++) {
		status = make_bundle(c, round > 0, result, err);
		if (!needs_repeat(c, status, round, &reread, err))
			break;
	}
	status = settle(c, status, err);
	status = c->signals->interrupted && !status ? XFP_FAILED : status;
	if (c->signals->interrupted || (status && c->request->launcher)) {
		/* Stages that a signal ended could not clean up. */
		xfp_conversion_sweep(c->request);
		xfp_store_sweep(&c->place.store);
	}
	if (!status && c->request->like)
		status = compare_like(c, err);
	if (c->place.run && (status || xfp_record_units(c)))
		xfp_manifest_run_end(c->place.manifest, c->place.run, (enum xfp_status)status,
				     status ? NULL : result->sha256, result->bytes, NULL);
	if (c->place.run && !status && result->unchanged)
		xfp_manifest_still_verified(c->place.manifest, c->place.run, NULL);
	if (!status && c->request->drop_cache)
		drop(c, result);
	else if (!status)
		xfp_drop_layers_end(c);
	return status;
}

int xfp_survey_units(struct xfp_conversion *c, struct xfp_error *err)
{
	bool reread = false;
	int status = (int)xfp_prepare_surveys(c, err);

	for (int round = 0; !status && c->units.todo && !c->signals->interrupted; round++) {
		status = run_units(c, err);
		if (status && needs_repeat(c, status, round, &reread, err))
			status = XFP_OK;
		if (!status)
			status = (int)xfp_prepare_surveys(c, err);
		if (!status && c->units.todo && round == MAX_REPETITIONS)
			status = (int)xfp_fail(err, XFP_FAILED, "%" PRIu32 " units could not be surveyed; see %s/%s",
					       c->units.todo, c->request->work, XFP_LOG_FILE);
	}
	status = settle(c, status, err);
	return status || !c->signals->interrupted ? status : XFP_FAILED;
}
