/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aim.h"
#include "ingest.h"
#include "key.h"
#include "run_inspect.h"
#include "sample.h"
#include "select.h"
#include "surveyed.h"
#include "temporary.h"

/* ---- one unit ---------------------------------------------------------------------------------- */

struct planning {
	struct xfp_conversion *c;
	const struct xfp_ledger_unit *unit;
	struct xfp_policy policy;
	struct xfp_parameters parameters; /* as the unit's fits see them */
	struct xfp_unit_state *state;
	uint32_t number;
	bool check;
};

/* What a fit measured. */
struct measured {
	struct xfp_fit fit;
	struct xfp_sampled sampled[XFP_MOST_CANDIDATES];
};

/* Whether an artifact is there; the manifest forgets one that is gone. */
static bool have(const struct planning *p, const char *key)
{
	struct xfp_conversion *c = p->c;
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status;
	char *path;

	if (!c->manifest || !*key)
		return false;
	if (xfp_store_has(&c->store, key)) {
		if (!p->check)
			return true;
		path = xfp_store_path(&c->store, key);
		status = path ? xfp_artifact_open(path, NULL, 0, key, &artifact, NULL) : XFP_FAILED;
		xfp_artifact_close(&artifact);
		free(path);
		if (status != XFP_DAMAGED)
			return true;
		xfp_store_remove(&c->store, key);
	}
	if (xfp_manifest_has(c->manifest, key))
		xfp_manifest_forget(c->manifest, key, NULL);
	return false;
}

/* Digests of the unit's matrices: of this run, or remembered for files that have not changed. */
static enum xfp_status find_sources(const struct planning *p, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = p->c->ledger;
	struct xfp_unit_state *state = p->state;
	uint32_t m = 0;

	if (state->known || p->c->options.rehash || !p->c->manifest)
		return XFP_OK;
	if (!state->source && !(state->source = calloc(p->unit->experts, sizeof *state->source)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (; m < p->unit->experts; m++) {
		uint32_t index = p->unit->first_matrix + m;
		const struct xfp_ledger_file *file =
			&ledger->files[ledger->tensors[ledger->matrices[index].tensor].file];
		struct xfp_matrix_source source = xfp_ledger_source(ledger, index);
		char region[160];

		xfp_region_format(&source, region);
		if (!xfp_manifest_get_source(p->c->manifest, file->path, &file->identity, region, state->source[m]))
			break;
	}
	state->known = m == p->unit->experts;
	return XFP_OK;
}

/* The candidates that a fit measured; false when it is not there. */
static bool find_candidates(const struct planning *p, const char *key, struct xfp_fit *fit)
{
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status;
	char *path;

	if (!have(p, key))
		return false;
	fit->candidate_count = xfp_manifest_get_candidates(p->c->manifest, key, fit->candidates);
	if (fit->candidate_count)
		return true;
	/* Not in the manifest, or a unit without candidates. */
	if (!(path = xfp_store_path(&p->c->store, key)))
		return false;
	status = xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, key, &artifact, NULL);
	if (!status)
		status = xfp_fit_read(&artifact, fit, NULL);
	xfp_artifact_close(&artifact);
	free(path);
	if (status == XFP_DAMAGED)
		xfp_store_remove(&p->c->store, key);
	else if (!status)
		xfp_manifest_ingest(p->c->manifest, &p->c->store, key, NULL);
	return !status;
}

/* What xfp-autoselect would write. A cache that cannot be written is left to that stage to report. */
static void write_choice(const struct planning *p, const struct xfp_key *key)
{
	struct xfp_conversion *c = p->c;
	struct xfp_job job = { .store = c->store, .unit = p->unit, .number = p->number, .started = xfp_now() };
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };

	if (c->store.read_only || c->options.dry_run)
		return;
	if (!xfp_job_create(&job, key, &pending, &artifact, NULL) &&
	    !xfp_choice_write(&artifact, &p->state->choice, NULL) &&
	    !xfp_job_publish(&job, key, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, &pending, &artifact, NULL))
		xfp_manifest_ingest(c->manifest, &c->store, key->hex, NULL);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
}

static void take_key(char hex[33], struct xfp_key *key)
{
	memcpy(hex, key->hex, sizeof key->hex);
	xfp_key_free(key);
}

/* What there is of a fit to choose from; false when it is not there. */
static bool find_set(const struct planning *p, const char *key, struct measured *measured, struct xfp_select_set *set)
{
	bool sampled = xfp_sample_decides(&p->parameters, &p->policy, p->unit);
	bool ok = find_candidates(p, key, &measured->fit);
	struct xfp_artifact artifact = { 0 };
	char *path;

	/* The manifest has candidates, but not the cosines of each row. */
	if (ok && sampled) {
		path = xfp_store_path(&p->c->store, key);
		ok = path && !xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, key, &artifact, NULL) &&
		     !xfp_fit_read(&artifact, &measured->fit, NULL) &&
		     !xfp_sample_fit(&artifact, &measured->fit, &p->parameters.moe_sample, measured->sampled, NULL);
		xfp_artifact_close(&artifact);
		free(path);
	}
	if (ok)
		*set = (struct xfp_select_set){ key, measured->fit.candidates, sampled ? measured->sampled : NULL,
						measured->fit.candidate_count };
	return ok;
}

/* `extended`: with the extended fits. */
static enum xfp_status choice_key(const struct planning *p, bool extended, struct xfp_key *key, struct xfp_error *err)
{
	const char *fits[XFP_FIT_KINDS] = { NULL };

	for (int i = 0; i < (extended ? XFP_FIT_KINDS : XFP_FIT_MORE); i++)
		fits[i] = p->state->key[xfp_fit_stamp((enum xfp_fit_kind)i)];
	return xfp_key_choice(fits, p->state->key[XFP_STAMP_SURVEY], &p->policy, p->unit->dtype, p->unit->experts,
			      &p->parameters, key, err);
}

/* The choice that a sample came to before, so that its cosines need not be read again. */
static bool find_choice(const struct planning *p, bool extended)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_key key = { 0 };
	char *path = NULL;
	bool found = !choice_key(p, extended, &key, NULL) && have(p, key.hex) &&
		     (path = xfp_store_path(&p->c->store, key.hex)) &&
		     !xfp_artifact_open(path, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, key.hex, &artifact, NULL) &&
		     !xfp_choice_read(&artifact, &p->state->choice, NULL);

	xfp_artifact_close(&artifact);
	xfp_key_free(&key);
	free(path);
	return found;
}

/* Keys of the first fits, or of the extended ones, and their measurements. XFP_WANT_MORE: some are missing. */
static enum xfp_status find_fits(const struct planning *p, bool extended, struct measured *measured,
				 struct xfp_select_input *input, struct xfp_error *err)
{
	bool sampled = xfp_sample_decides(&p->parameters, &p->policy, p->unit);
	int first = extended ? XFP_FIT_MORE : XFP_FIT_BASE, end = extended ? XFP_FIT_KINDS : XFP_FIT_MORE;
	bool all = true;

	for (int i = first; i < end; i++) {
		enum xfp_fit_kind kind = (enum xfp_fit_kind)i;
		char *hex = p->state->key[xfp_fit_stamp(kind)];
		struct xfp_key key = { 0 };
		enum xfp_status status;

		if (!xfp_fit_wanted(&p->parameters, kind))
			continue;
		status = xfp_key_fit_kind(kind, p->state->key[XFP_STAMP_OUTLIERS], &p->parameters, &key, err);
		if (status)
			return status;
		take_key(hex, &key);
	}
	if (sampled && find_choice(p, extended))
		return XFP_OK;
	for (int i = first; i < end; i++)
		if (xfp_fit_wanted(&p->parameters, (enum xfp_fit_kind)i))
			all &= find_set(p, p->state->key[xfp_fit_stamp((enum xfp_fit_kind)i)], &measured[i],
					&input->fits[i]);
	return all ? xfp_select(input, &p->state->choice, NULL) : XFP_WANT_MORE;
}

/* Whether there was nothing to measure in the unit. */
static bool has_none(const struct planning *p)
{
	for (int i = 0; i < XFP_FIT_MORE; i++) {
		struct xfp_fit fit = { 0 };

		if (xfp_fit_wanted(&p->parameters, (enum xfp_fit_kind)i) &&
		    find_candidates(p, p->state->key[xfp_fit_stamp((enum xfp_fit_kind)i)], &fit))
			return !fit.candidate_count;
	}
	return false;
}

/* Choose by the measurements that there are. XFP_WANT_MORE: some are missing. */
static enum xfp_status choose(const struct planning *p, bool *extended, struct xfp_error *err)
{
	struct measured measured[XFP_FIT_KINDS] = { 0 };
	struct xfp_select_input input = { .unit = p->unit,
					  .parameters = &p->parameters,
					  .policy = &p->policy,
					  .outliers = p->state->key[XFP_STAMP_OUTLIERS] };
	enum xfp_status status = find_fits(p, false, measured, &input, err);

	p->state->nonfinite = has_none(p);
	*extended = false;
	if (status != XFP_WANT_MORE)
		return status;
	for (int i = 0; i < XFP_FIT_MORE; i++)
		if (xfp_fit_wanted(&p->parameters, (enum xfp_fit_kind)i) && !input.fits[i].key)
			return status;
	*extended = true;
	return find_fits(p, true, measured, &input, err);
}

/* Narrow the unit's parameters by its survey; false when that is not there. */
static bool find_aim(struct planning *p, const char *key)
{
	struct xfp_surveyed *surveyed = calloc(1, sizeof *surveyed);
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = XFP_FAILED;
	char *path = NULL;

	if (surveyed && have(p, key) && (path = xfp_store_path(&p->c->store, key)))
		status = xfp_artifact_open(path, XFP_SURVEY_KIND, XFP_SURVEY_VERSION, key, &artifact, NULL);
	if (!status)
		status = xfp_surveyed_read(&artifact, surveyed, NULL);
	if (!status)
		xfp_aim(surveyed->list, surveyed->count, p->unit, &p->policy, &p->parameters);
	if (status == XFP_DAMAGED)
		xfp_store_remove(&p->c->store, key);
	xfp_artifact_close(&artifact);
	if (surveyed)
		xfp_surveyed_free(surveyed);
	free(surveyed);
	free(path);
	return !status;
}

/* Where thresholds are the units' own: this one's, if it is known. */
static enum xfp_status plan_aim(struct planning *p, const struct xfp_key_source *source, bool *known,
				struct xfp_error *err)
{
	bool dry = p->c->options.dry_run;
	struct xfp_key key = { 0 };
	enum xfp_status status;

	*known = p->parameters.outlier_sigma != XFP_SIGMA_AUTO;
	if (*known)
		return XFP_OK;
	if ((status = xfp_key_survey(source, &p->parameters, &key, err)))
		return status;
	take_key(p->state->key[XFP_STAMP_SURVEY], &key);
	*known = find_aim(p, p->state->key[XFP_STAMP_SURVEY]);
	return *known && !dry ? xfp_aim_write(p->c->options.work, p->number, &p->parameters, err) : XFP_OK;
}

/* From the digests to the choice, as far as measurements go. */
static enum xfp_status plan_fit(struct planning *p, struct xfp_error *err)
{
	const struct xfp_key_source source = { p->unit->dtype, p->unit->experts, p->unit->rows, p->unit->cols,
					       (const uint8_t(*)[16])p->state->source };
	char(*hex)[33] = p->state->key;
	struct xfp_key key = { 0 };
	bool extended, known;
	enum xfp_status status = plan_aim(p, &source, &known, err);

	if (status || !known || (status = xfp_key_outliers(&source, &p->parameters, &key, err)))
		return status;
	take_key(hex[XFP_STAMP_OUTLIERS], &key);
	status = choose(p, &extended, err);
	/* A unit that fails for its floor is the stage's to report, once make comes to it. */
	p->state->unmet = status == XFP_UNMET;
	if (status)
		return status == XFP_FAILED ? status : XFP_OK;
	p->state->decided = true;
	if ((status = choice_key(p, extended, &key, err)))
		return status;
	if (p->c->manifest && !have(p, key.hex))
		write_choice(p, &key);
	take_key(hex[XFP_STAMP_CHOICE], &key);
	if ((status = xfp_key_packed(&p->state->choice, &source, &key, err)))
		return status;
	take_key(hex[XFP_STAMP_PACKED], &key);
	return XFP_OK;
}

/* A unit that is packed alone. */
static enum xfp_status plan_alone(const struct planning *p, struct xfp_error *err)
{
	const struct xfp_key_source source = { p->unit->dtype, p->unit->experts, p->unit->rows, p->unit->cols,
					       (const uint8_t(*)[16])p->state->source };
	const struct xfp_choice keep = { .candidate = { .mode = XFP_MODE_KEEP } };
	struct xfp_key key = { 0 };
	enum xfp_status status = p->unit->plan == XFP_PLAN_FP8 ? xfp_key_fp8(&source, &p->parameters, &key, err)
							       : xfp_key_packed(&keep, &source, &key, err);

	if (!status)
		take_key(p->state->key[XFP_STAMP_PACKED], &key);
	return status;
}

/* A stamp for each artifact that is current and there, and no other. */
static enum xfp_status stamp_unit(const struct planning *p, struct xfp_error *err)
{
	const char *work = p->c->options.work;
	enum xfp_status status = XFP_OK;

	for (int s = 0; !status && s < XFP_STAMPS; s++) {
		char present[33] = "";
		bool well_formed = xfp_stamp_read(work, p->number, (enum xfp_stamp)s, present);
		bool there = p->state->there >> s & 1;

		if (there && (!well_formed || strcmp(present, p->state->key[s])))
			status = xfp_stamp_write(work, p->number, (enum xfp_stamp)s, p->state->key[s], err);
		else if (!there && well_formed)
			xfp_stamp_remove(work, p->number, (enum xfp_stamp)s);
	}
	if (!(p->state->there >> XFP_STAMP_SURVEY & 1))
		xfp_aim_remove(work, p->number);
	return status;
}

/* What the choice waits for, where that is known. Fixed bits are measured in all modes, whatever a survey says. */
static void note_fits(const struct planning *p)
{
	if (p->unit->plan != XFP_PLAN_FIT || (p->parameters.outlier_sigma == XFP_SIGMA_AUTO && !p->policy.fixed))
		return;
	for (int i = 0; i < XFP_FIT_MORE; i++)
		p->state->fits |= (uint32_t)xfp_fit_wanted(&p->parameters, (enum xfp_fit_kind)i) << i;
}

static enum xfp_status prepare_unit(struct planning *p, struct xfp_error *err)
{
	struct xfp_unit_state *state = p->state;
	enum xfp_status status = find_sources(p, err);
	bool packed, chosen;

	memset(state->key, 0, sizeof state->key);
	state->there = state->fits = 0;
	state->done = state->decided = state->unmet = state->nonfinite = false;
	if (!status && state->known)
		status = p->unit->plan == XFP_PLAN_FIT ? plan_fit(p, err) : plan_alone(p, err);
	if (status)
		return status;
	note_fits(p);
	for (int s = 0; s < XFP_STAMPS; s++)
		state->there |= (uint32_t)have(p, state->key[s]) << s;
	packed = state->there >> XFP_STAMP_PACKED & 1;
	chosen = state->there >> XFP_STAMP_CHOICE & 1;
	/* A dry run does not write the choices that it makes; the run that it tells of would. */
	state->done = packed && (chosen || p->unit->plan != XFP_PLAN_FIT || (p->c->options.dry_run && state->decided));
	return p->c->options.dry_run ? XFP_OK : stamp_unit(p, err);
}

/* ---- all units --------------------------------------------------------------------------------- */

/* A stamp that is not a key and a newline would stop make from making it. */
static bool is_torn(int folder, const char *name)
{
	char text[34];
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);

	if (fd >= 0)
		close(fd);
	return size != 33 || text[32] != '\n' || strspn(text, "0123456789abcdef") != 32;
}

/* Torn stamps, and those of numbers that the ledger no longer has. */
static void remove_stray_stamps(const struct xfp_conversion *c)
{
	DIR *folder = opendir(c->options.work);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		const char *name = entry->d_name;
		uint32_t unit;
		int end = 0;

		if (sscanf(name, "u%" SCNu32 "-%n", &unit, &end) == 1 && end &&
		    (unit >= c->ledger->unit_count ||
		     (strcmp(name + end, XFP_FITS_FILE) && is_torn(dirfd(folder), name))))
			unlinkat(dirfd(folder), name, 0);
	}
	if (folder)
		closedir(folder);
}

enum xfp_status xfp_prepare_fits(const char *work, const struct xfp_parameters *parameters, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_FITS_FILE);
	const char *text = parameters->outlier_sigma == XFP_SIGMA_AUTO ? "SURVEY = survey\n" : xfp_aim_fits(parameters);
	enum xfp_status status = path ? xfp_write_file(path, text, strlen(text), false, err)
				      : xfp_fail(err, XFP_FAILED, "out of memory");

	free(path);
	return status;
}

static enum xfp_status write_todo(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *text = NULL, *path = xfp_path(c->options.work, XFP_TODO_FILE);
	size_t size = 0;
	FILE *out = path ? open_memstream(&text, &size) : NULL;
	enum xfp_status status;

	for (int fit = 1; out && fit >= 0; fit--) {
		fputs(fit ? "FIT_UNITS =" : "PACK_UNITS =", out);
		for (uint32_t i = 0; i < c->ledger->unit_count; i++)
			if (!c->units[i].done && (c->ledger->units[i].plan == XFP_PLAN_FIT) == fit)
				fprintf(out, " u%06" PRIu32, i);
		fputc('\n', out);
	}
	if (!out || fclose(out))
		status = xfp_fail(err, XFP_FAILED, "out of memory");
	else
		status = xfp_write_file(path, text, size, false, err);
	free(text);
	free(path);
	return status;
}

enum xfp_status xfp_prepare_units(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (!c->options.dry_run)
		remove_stray_stamps(c);
	c->todo = 0;
	c->weights = c->weights_done = 0;
	/* The manifest is an index: one that cannot be written is ingest's to mention. A check reads every
	 * artifact, and others must not wait for that. */
	if (c->manifest && !check)
		xfp_manifest_begin(c->manifest, NULL);
	for (uint32_t i = 0; !status && i < c->ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &c->ledger->units[i];
		struct planning p = { .c = c, .unit = unit, .state = &c->units[i], .number = i, .check = check };

		p.policy = xfp_policy_of_unit(&c->options.parameters, unit);
		p.parameters = xfp_policy_parameters(&c->options.parameters, &p.policy);
		if (c->signals && xfp_signals_came(c->signals))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else
			status = prepare_unit(&p, err);
		c->weights += xfp_unit_weights(unit);
		if (c->units[i].done)
			c->weights_done += xfp_unit_weights(unit);
		else
			c->todo++;
	}
	if (c->manifest && !check)
		xfp_manifest_commit(c->manifest, NULL);
	if (!status && !c->options.dry_run &&
	    !(status = xfp_prepare_fits(c->options.work, &c->options.parameters, err)))
		status = write_todo(c, err);
	return status;
}

/* ---- once a run -------------------------------------------------------------------------------- */

static enum xfp_status read_ledger(struct xfp_conversion *c, const char *work, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_LEDGER_FILE);
	enum xfp_status status;

	if (!path)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	status = xfp_ledger_read(path, &c->ledger, err);
	free(path);
	if (status)
		return status;
	c->units = calloc(c->ledger->unit_count + 1, sizeof *c->units);
	return c->units ? XFP_OK : xfp_fail(err, XFP_FAILED, "out of memory");
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
	enum xfp_status status = path ? XFP_OK : xfp_fail(err, XFP_FAILED, "out of memory");

	if (!status && !access(path, F_OK)) {
		status = xfp_conversion_open_cache(c, err);
		c->leftovers = true;
		if (!status && !read_ledger(c, c->options.work, NULL))
			status = xfp_ingest(c, NULL, NULL, err);
		c->leftovers = false;
		drop_ledger(c);
		c->damaged = false;
		c->failures = 0;
		if (!status)
			status = xfp_ingest_restart(c, err);
	}
	free(path);
	return status;
}

static enum xfp_status write_parameters(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *path = xfp_path(c->options.work, XFP_PARAMETERS_FILE),
	     *text = xfp_parameters_to_json(&c->options.parameters);
	enum xfp_status status = path && text ? xfp_write_file(path, text, strlen(text), false, err)
					      : xfp_fail(err, XFP_FAILED, "out of memory");

	free(path);
	free(text);
	return status;
}

/* A dry run's work folder: made for inspect, read, removed. */
static enum xfp_status read_scratch_ledger(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	char *work = xfp_temporary_folder(err);
	enum xfp_status status = XFP_FAILED;

	if (work)
		status = (enum xfp_status)xfp_run_inspect(c, signals, work, err);
	if (!status)
		status = read_ledger(c, work, err);
	xfp_temporary_remove(work);
	return status;
}

enum xfp_status xfp_prepare_folder(struct xfp_conversion *c, struct xfp_signals *signals, struct xfp_error *err)
{
	enum xfp_status status;

	if (c->options.dry_run) {
		if (!(status = read_scratch_ledger(c, signals, err)))
			status = xfp_policy_check(&c->options.parameters, c->ledger, err);
		return status ? status : xfp_conversion_open_cache(c, err);
	}
	if ((status = ingest_leftovers(c, err)) ||
	    (status = (enum xfp_status)xfp_run_inspect(c, signals, c->options.work, err)) ||
	    (status = read_ledger(c, c->options.work, err)) ||
	    (status = xfp_policy_check(&c->options.parameters, c->ledger, err)) ||
	    (status = write_parameters(c, err)) || (status = xfp_conversion_open_cache(c, err)))
		return status;
	xfp_store_sweep(&c->store);
	return XFP_OK;
}
