/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/prepare.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/mapped.h"
#include "base/system/temporary.h"
#include "base/text/text.h"
#include "commands/convert/ingest.h"
#include "commands/convert/low_floors.h"
#include "commands/convert/prepare_unit.h"
#include "commands/convert/run_inspect.h"
#include "commands/goal/goal.h"
#include "stages/settings/like.h"
#include "stages/work/assigned.h"
#include "stages/work/fits.h"
#include "stages/work/moving.h"

/* ---- all units --------------------------------------------------------------------------------- */

/* Stamps of numbers that the ledger no longer has. Others that are torn or damaged are their unit's to remove. */
static void remove_stray_stamps(const struct xfp_conversion *c)
{
	DIR *folder = opendir(c->options.work);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		uint32_t unit;
		int end = 0;

		if (sscanf(entry->d_name, "u%" SCNu32 "-%n", &unit, &end) == 1 && end && unit >= c->ledger->unit_count)
			unlinkat(dirfd(folder), entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
}

static enum xfp_status write_todo(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *path = xfp_path(c->options.work, XFP_TODO_FILE);
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	enum xfp_status status;

	for (int fit = 1; out && fit >= 0; fit--) {
		fputs(fit ? "FIT_UNITS =" : "PACK_UNITS =", out);
		for (uint32_t i = 0; i < c->ledger->unit_count; i++)
			if (!c->units[i].done && (c->ledger->units[i].plan == XFP_PLAN_FIT) == fit &&
			    !xfp_goal_surveys(c, i))
				fprintf(out, " u%06" PRIu32, i);
		fputc('\n', out);
	}
	if (out && (c->options.goal.kind || c->options.survey)) {
		fputs("SURVEY_UNITS =", out);
		for (uint32_t i = 0; i < c->ledger->unit_count; i++)
			if (xfp_goal_surveys(c, i) && !(c->units[i].there >> XFP_STAMP_SURVEY & 1))
				fprintf(out, " u%06" PRIu32, i);
		fputc('\n', out);
	}
	if (!xfp_text_end(&text) || !path)
		status = xfp_no_memory(err);
	else
		status = xfp_write_file(path, text.bytes, text.size, false, err);
	free(text.bytes);
	free(path);
	return status;
}

/* Where units are assigned, each has a list of its own, as where a survey tells. */
static enum xfp_status write_fits(const struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_parameters parameters = c->options.parameters;

	if (parameters.assigned_count)
		parameters.outlier_sigma = XFP_SIGMA_AUTO;
	return xfp_fits_write(c->options.work, XFP_NO_UNIT, &parameters, err);
}

enum xfp_status xfp_prepare_write(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_work_write_parameters(c->options.work, &c->options.parameters, err)) ||
	       (status = xfp_assigned_write(c->options.work, &c->options.parameters, err)) ||
	       (status = write_fits(c, err)) || (status = write_todo(c, err)));
	return status;
}

/* Whether units were moved into a pending bundle that is there, or into the bundle that it became. */
static enum xfp_status find_moved(struct xfp_conversion *c, struct xfp_error *err)
{
	char *pending = xfp_pending_kept_path(c->options.out);
	struct xfp_moving moving;
	bool found;
	enum xfp_status status = pending ? xfp_moving_read(c->options.work, &moving, &found, err) : xfp_no_memory(err);

	c->moved_usable =
		!status && found && (!access(pending, F_OK) || (*moving.sha256 && !access(c->options.out, F_OK)));
	c->moved_stale = 0;
	free(pending);
	return status;
}

/* A pending bundle that holds nothing which is not elsewhere goes. */
static void tidy_moved(const struct xfp_conversion *c)
{
	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		if (c->units[i].moved)
			return;
	xfp_moving_discard(c->options.work, c->options.out);
}

static enum xfp_status prepare_all(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	c->todo = 0;
	c->weights = c->weights_done = 0;
	/* The manifest is an index: one that cannot be written is ingest's to mention. A check reads every
	 * artifact, and others must not wait for that. */
	if (c->manifest && !check)
		xfp_manifest_begin(c->manifest, NULL);
	if (c->options.goal.kind)
		status = xfp_goal_prepare(c, check, err);
	for (uint32_t i = 0; !status && i < c->ledger->unit_count; i++) {
		uint64_t weights = xfp_unit_weights(&c->ledger->units[i]);

		if (c->signals && xfp_signals_came(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (!c->options.goal.kind)
			status = xfp_prepare_unit(c, i, check, err);
		c->weights += weights;
		if (c->units[i].done)
			c->weights_done += weights;
		else
			c->todo++;
	}
	if (c->manifest && !check)
		xfp_manifest_commit(c->manifest, NULL);
	return status;
}

enum xfp_status xfp_prepare_units(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	enum xfp_status status = find_moved(c, err);

	if (!c->options.dry_run)
		remove_stray_stamps(c);
	if (!status)
		status = prepare_all(c, check, err);
	/* Where one unit is another the places of all are: what was moved is of no use, and takes room. */
	if (!status && c->moved_stale) {
		if (!c->options.dry_run) {
			fprintf(stderr,
				"xfp: %s: units that had moved there from the cache are made again, for other "
				"settings, other weights or another version of xfp\n",
				c->options.out);
			xfp_moving_discard(c->options.work, c->options.out);
		}
		c->moved_usable = false;
		status = prepare_all(c, false, err);
	}
	if (!status && !c->options.dry_run)
		tidy_moved(c);
	c->prepared |= !status;
	return status || c->options.dry_run ? status : xfp_prepare_write(c, err);
}

/* ---- once a run -------------------------------------------------------------------------------- */

static enum xfp_status read_ledger(struct xfp_conversion *c, const char *work, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_LEDGER_FILE);
	enum xfp_status status;

	if (!path)
		return xfp_no_memory(err);
	status = xfp_ledger_read(path, &c->ledger, err);
	free(path);
	if (status)
		return status;
	c->units = calloc(c->ledger->unit_count + 1, sizeof *c->units);
	return c->units ? XFP_OK : xfp_no_memory(err);
}

static void drop_ledger(struct xfp_conversion *c)
{
	for (uint32_t i = 0; c->units && i < c->ledger->unit_count; i++)
		free(c->units[i].source);
	free(c->units);
	xfp_ledger_free(c->ledger);
	c->units = NULL;
	c->ledger = NULL;
}

/* What a run that was cut short had still to say, in terms of the ledger that it had. */
static enum xfp_status ingest_leftovers(struct xfp_conversion *c, struct xfp_error *err)
{
	char *path = xfp_path(c->options.work, XFP_EVENTS_FILE);
	enum xfp_status status = path ? XFP_OK : xfp_no_memory(err);

	if (!status && !access(path, F_OK)) {
		status = xfp_conversion_open_cache(c, err);
		c->leftovers = true;
		if (!status && !read_ledger(c, c->options.work, NULL))
			status = xfp_ingest(c, NULL, NULL, err);
		c->leftovers = false;
		drop_ledger(c);
		c->damaged = c->changed = false;
		c->failures = 0;
		if (!status)
			status = xfp_ingest_restart(c, err);
	}
	free(path);
	return status;
}

/* A dry run's work folder: made for inspect, and removed in the end, since files were made in it. */
static enum xfp_status read_scratch_ledger(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	enum xfp_status status = XFP_FAILED;

	if ((c->scratch = xfp_temporary_folder(err)))
		status = (enum xfp_status)xfp_run_inspect(c, signals, c->scratch, err);
	if (!status)
		status = read_ledger(c, c->scratch, err);
	return status;
}

/* A bundle that holds nothing either can be made again. */
static enum xfp_status check_units(const struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_options *o = &c->options;

	if (c->ledger->unit_count || o->allow_empty || o->like)
		return XFP_OK;
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: nothing to quantize: by the rules of family %s, no tensor is a projection; xfp-inspect -v "
			"shows what each was taken for, --family gives other rules, and --allow-empty converts it as "
			"it is",
			o->model, c->ledger->family);
}

static enum xfp_status check_policy(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = check_units(c, err);

	if (!status)
		status = xfp_policy_check(&c->options.parameters, c->ledger, err);
	return status || !c->options.head_asked ? status : xfp_policy_check_head(c->ledger, c->options.head_asked, err);
}

/* Of a bundle that is made again, floors were somebody's choice already. */
static void remark_floors(const struct xfp_conversion *c)
{
	char *text = c->options.quiet || c->options.like
			     ? NULL
			     : xfp_low_floors(&c->options.parameters, c->ledger, c->options.goal.kind);

	if (text)
		fprintf(stderr, "xfp: %s\n", text);
	free(text);
}

/* Of the two settings that a tied matrix has, the one that asks for less has no effect. */
static void remark_tied(const struct xfp_conversion *c)
{
	static const enum xfp_class classes[] = { XFP_CLASS_EMBEDDING, XFP_CLASS_LM_HEAD };
	const struct xfp_parameters *p = &c->options.parameters;

	for (uint32_t u = 0; u < c->ledger->unit_count && !c->options.quiet && !c->options.like; u++) {
		const struct xfp_ledger_unit *unit = &c->ledger->units[u];
		const struct xfp_policy policy = xfp_policy_of_unit(p, unit);
		char *by, text[24];

		if (unit->class_ != XFP_CLASS_EMBEDDING || strcmp(unit->role, XFP_ROLE_TIED) != 0 ||
		    !(by = xfp_policy_format_by(p, &policy)))
			continue;
		for (int i = 0; i < 2; i++) {
			const struct xfp_format format = p->format[classes[i]];

			if (format.form != XFP_FORM_AUTO &&
			    (format.form != policy.format.form || format.bits != policy.format.bits))
				fprintf(stderr, "xfp: %s is embedding and output head in one: %s counts, not %s=%s\n",
					xfp_printable(unit->name).text, by, xfp_class_name(classes[i]),
					xfp_format_text(format, text));
		}
		free(by);
	}
}

/* Whether the checkpoint has what the bundle of --like has. Comes first: of another model, settings may not apply. */
static enum xfp_status check_like(const struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status;

	if (!c->options.like)
		return XFP_OK;
	xfp_mapped_begin(c->options.program, c->options.like, NULL);
	status = xfp_like_check(c->options.like, c->ledger, err);
	xfp_mapped_end();
	return status;
}

static enum xfp_status prepare_folder(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	enum xfp_status status;

	if (c->options.dry_run) {
		if (!(status = read_scratch_ledger(c, signals, err)) && !(status = check_like(c, err)) &&
		    !(status = check_policy(c, err)))
			status = xfp_goal_check(c, err);
		return status ? status : xfp_conversion_open_cache(c, err);
	}
	if ((status = ingest_leftovers(c, err)) ||
	    (status = (enum xfp_status)xfp_run_inspect(c, signals, c->options.work, err)) ||
	    (status = read_ledger(c, c->options.work, err)) || (status = check_like(c, err)) ||
	    (status = check_policy(c, err)) || (status = xfp_goal_check(c, err)) ||
	    (status = xfp_conversion_open_cache(c, err)))
		return status;
	xfp_store_sweep(&c->store);
	return XFP_OK;
}

enum xfp_status xfp_prepare_folder(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	enum xfp_status status = prepare_folder(c, signals, err);

	if (!status) {
		remark_floors(c);
		remark_tied(c);
	}
	return status;
}
