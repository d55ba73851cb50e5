/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/prepare.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/mapped.h"
#include "base/system/temporary.h"
#include "conversion/goal/goal.h"
#include "conversion/ingest.h"
#include "conversion/low_floors.h"
#include "conversion/place.h"
#include "conversion/run_calibrate.h"
#include "conversion/run_inspect.h"
#include "conversion/state/layers.h"
#include "conversion/state/prepare_unit.h"
#include "conversion/todo.h"
#include "stages/settings/like.h"
#include "stages/work/assigned.h"
#include "stages/work/fits.h"
#include "stages/work/moving.h"

/* ---- all units --------------------------------------------------------------------------------- */

/* Remove stamps of units and layers that the conversion no longer has. Torn or damaged stamps of existing ones are
 * removed with their unit or layer. */
static void remove_stray_stamps(const struct xfp_conversion *c)
{
	DIR *folder = opendir(c->request->work);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		uint32_t number;
		int end = 0;
		char of[2];

		if (sscanf(entry->d_name, "%1[ul]%" SCNu32 "-%n", of, &number, &end) == 2 && end &&
		    number >= (*of == 'u' ? c->units.ledger->unit_count : c->layers.count))
			unlinkat(dirfd(folder), entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
}

/* Assigned units have their own lists of fits, as units with surveys do. */
static enum xfp_status write_fits(const struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_parameters parameters = c->parameters;

	if (parameters.assigned_count)
		parameters.outlier_sigma = XFP_SIGMA_AUTO;
	return xfp_fits_write(c->request->work, XFP_NO_UNIT, &parameters, err);
}

static enum xfp_status write_all(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_work_write_parameters(c->request->work, &c->parameters, err)) ||
	       (status = xfp_assigned_write(c->request->work, &c->parameters, err)) || (status = write_fits(c, err)) ||
	       (status = xfp_todo_write(c, err)));
	return status;
}

/* Check whether units were moved into an existing pending bundle, or into the bundle that it became. */
static enum xfp_status find_moved(struct xfp_conversion *c, struct xfp_error *err)
{
	char *pending = xfp_pending_kept_path(c->request->out);
	struct xfp_moving moving;
	bool found;
	enum xfp_status status = pending ? xfp_moving_read(c->request->work, &moving, &found, err) : xfp_no_memory(err);

	c->drop.moved_usable =
		!status && found && (!access(pending, F_OK) || (*moving.sha256 && !access(c->request->out, F_OK)));
	c->drop.moved_stale = 0;
	free(pending);
	return status;
}

/* Remove a pending bundle if no unit depends on it. */
static void tidy_moved(const struct xfp_conversion *c)
{
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		if (c->units.state[i].moved)
			return;
	xfp_moving_discard(c->request->work, c->request->out);
}

/* Find the layers that prepared units need. */
static enum xfp_status settle_layers(struct xfp_conversion *c, struct xfp_error *err)
{
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		if (xfp_unit_needs_inputs(c, i))
			xfp_layers_need(c, i);
	return xfp_layers_settle(c, err);
}

static enum xfp_status prepare_all(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	enum xfp_status status;

	c->units.todo = 0;
	c->units.weights = c->units.weights_done = 0;
	/* The manifest is only an index, and ingest reports write errors. A check reads every artifact, and other
	 * processes must not wait for that. */
	if (c->place.manifest && !check)
		xfp_manifest_begin(c->place.manifest, NULL);
	status = xfp_layers_prepare(c, check, err);
	if (!status && c->request->goal.kind)
		status = xfp_goal_prepare(c, check, err);
	for (uint32_t i = 0; !status && i < c->units.ledger->unit_count; i++) {
		uint64_t weights = xfp_unit_weights(&c->units.ledger->units[i]);

		if (c->signals && xfp_signals_arrived(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (!c->request->goal.kind)
			status = xfp_prepare_unit(c, i, check, err);
		c->units.weights += weights;
		if (c->units.state[i].done)
			c->units.weights_done += weights;
		else
			c->units.todo++;
	}
	if (!status)
		status = settle_layers(c, err);
	if (c->place.manifest && !check)
		xfp_manifest_commit(c->place.manifest, NULL);
	return status;
}

enum xfp_status xfp_prepare_units(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	enum xfp_status status = find_moved(c, err);

	if (!c->request->dry_run)
		remove_stray_stamps(c);
	if (!status)
		status = prepare_all(c, check, err);
	/* If one moved unit is outdated, the positions of all change: the moved parts are useless and only occupy
	 * space. */
	if (!status && c->drop.moved_stale) {
		if (!c->request->dry_run) {
			XFP_NOTIFY(c, .kind = XFP_NOTICE_MOVED_STALE);
			xfp_moving_discard(c->request->work, c->request->out);
		}
		c->drop.moved_usable = false;
		status = prepare_all(c, false, err);
	}
	if (!status && !c->request->dry_run)
		tidy_moved(c);
	c->units.prepared |= !status;
	return status || c->request->dry_run ? status : write_all(c, err);
}

enum xfp_status xfp_prepare_surveys(struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = xfp_layers_prepare(c, false, err);

	if (!status)
		status = xfp_goal_list_surveys(c, err);
	if (!status)
		status = settle_layers(c, err);
	return status ? status : write_all(c, err);
}

/* ---- steps that run once ----------------------------------------------------------------------- */

static enum xfp_status read_ledger(struct xfp_conversion *c, const char *work, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_LEDGER_FILE);
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	status = xfp_ledger_read(path, &c->units.ledger, err);
	free(path);
	if (status)
		return status;
	c->units.state = calloc(c->units.ledger->unit_count + 1, sizeof *c->units.state);
	return c->units.state ? XFP_OK : xfp_no_memory(err);
}

static void drop_ledger(struct xfp_conversion *c)
{
	for (uint32_t i = 0; c->units.state && i < c->units.ledger->unit_count; i++)
		free(c->units.state[i].source);
	free(c->units.state);
	xfp_layers_free(c);
	xfp_ledger_free(c->units.ledger);
	c->units.state = NULL;
	c->units.ledger = NULL;
}

/* Ingest the remaining events of an interrupted run, using its own ledger. */
static enum xfp_status ingest_leftovers(struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (xfp_events_exist(c->request->work)) {
		status = xfp_conversion_open_cache(c, err);
		c->events.leftovers = c->events.reader.final = true;
		if (!status && !read_ledger(c, c->request->work, NULL)) {
			xfp_layers_begin(c, c->request->work, NULL); /* if the run was calibrated */
			status = xfp_ingest(c, err);
		}
		c->events.leftovers = false;
		drop_ledger(c);
		c->events.damaged = c->events.changed = false;
		c->events.failures = c->events.failed_layer = 0;
		if (!status)
			status = xfp_ingest_restart(c, err);
	}
	return status;
}

/* Write a dry run's ledger into a temporary work folder. */
static enum xfp_status read_scratch_ledger(struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = XFP_FAILED;

	if ((c->place.scratch = xfp_temporary_folder(err)))
		status = (enum xfp_status)xfp_run_inspect(c, c->place.scratch, err);
	if (!status)
		status = read_ledger(c, c->place.scratch, err);
	return status;
}

/* Require a unit to quantize, except with --allow-empty or when repeating a bundle (--like). */
static enum xfp_status check_units(const struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_request *o = c->request;

	if (c->units.ledger->unit_count || o->allow_empty || o->like)
		return XFP_OK;
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: nothing to quantize: by the rules of family %s, no tensor is a projection; see "
			"xfp-inspect -v, choose other rules with --family, or convert it unchanged with --allow-empty",
			o->model, c->units.ledger->family);
}

static enum xfp_status check_policy(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = check_units(c, err);

	if (!status)
		status = xfp_policy_check(&c->parameters, c->units.ledger, err);
	return status || !c->request->head_asked ? status
						 : xfp_policy_check_head(c->units.ledger, c->request->head_asked, err);
}

/* Warn about low floors, except when repeating a bundle (--like), where the floors are not this user's choice. */
static void warn_floors(const struct xfp_conversion *c)
{
	char *text = c->request->like ? NULL : xfp_low_floors(&c->parameters, c->units.ledger, c->request->goal.kind);

	if (text)
		XFP_NOTIFY(c, .kind = XFP_NOTICE_LOW_FLOORS, .text = text);
	free(text);
}

/* Report the ineffective setting of a tied matrix: of its two settings, the one that requests less. */
static void warn_tied(const struct xfp_conversion *c)
{
	static const enum xfp_class classes[] = { XFP_CLASS_EMBEDDING, XFP_CLASS_LM_HEAD };
	const struct xfp_parameters *p = &c->parameters;

	for (uint32_t u = 0; u < c->units.ledger->unit_count && !c->request->like; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];
		const struct xfp_policy policy = xfp_policy_of_unit(p, unit);
		char *by, text[24], other[64];

		if (unit->class_ != XFP_CLASS_EMBEDDING || strcmp(unit->role, XFP_ROLE_TIED) != 0 ||
		    !(by = xfp_policy_format_by(p, &policy)))
			continue;
		for (int i = 0; i < 2; i++) {
			const struct xfp_format format = p->format[classes[i]];

			if (format.form == XFP_FORM_AUTO ||
			    (format.form == policy.format.form && format.bits == policy.format.bits))
				continue;
			snprintf(other, sizeof other, "%s=%s", xfp_class_name(classes[i]),
				 xfp_format_text(format, text));
			XFP_NOTIFY(c, .kind = XFP_NOTICE_TIED_FORMAT, .name = unit->name, .text = by, .other = other);
		}
		free(by);
	}
}

/* Check that the checkpoint matches the bundle of --like. Must come first: the settings may not apply to another
 * model. */
static enum xfp_status check_like(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	if (!c->request->like)
		return XFP_OK;
	xfp_mapped_begin(c->request->program, c->request->like, NULL);
	status = xfp_like_check(c->request->like, c->units.ledger, err);
	xfp_mapped_end();
	return status;
}

static enum xfp_status prepare_folder(struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	if (c->request->dry_run) {
		if (!(status = read_scratch_ledger(c, err)) && !(status = check_like(c, err)) &&
		    !(status = check_policy(c, err)) &&
		    !(status = (enum xfp_status)xfp_run_calibrate(c, c->place.scratch, err)))
			status = xfp_goal_check(c, err);
		return status ? status : xfp_conversion_open_cache(c, err);
	}
	if ((status = ingest_leftovers(c, err)) ||
	    (status = (enum xfp_status)xfp_run_inspect(c, c->request->work, err)) ||
	    (status = read_ledger(c, c->request->work, err)) || (status = check_like(c, err)) ||
	    (status = check_policy(c, err)) ||
	    (status = (enum xfp_status)xfp_run_calibrate(c, c->request->work, err)) ||
	    (status = xfp_goal_check(c, err)) || (status = xfp_conversion_open_cache(c, err)))
		return status;
	xfp_store_sweep(&c->place.store);
	return XFP_OK;
}

enum xfp_status xfp_prepare_folder(struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = prepare_folder(c, err);

	if (!status) {
		warn_floors(c);
		warn_tied(c);
	}
	return status;
}
