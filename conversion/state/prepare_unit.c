/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/prepare_unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "cache/key.h"
#include "conversion/state/receipts.h"
#include "conversion/state/sources.h"
#include "schemas/surveyed.h"
#include "stages/quantize/aim.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/offers.h"
#include "stages/quantize/sample.h"
#include "stages/work/fits.h"
#include "stages/work/produce.h"

struct planning {
	struct xfp_conversion *c;
	const struct xfp_ledger_unit *unit;
	struct xfp_policy policy;
	struct xfp_parameters parameters; /* as the unit's fits see them */
	struct xfp_parameters surveyed;   /* as its survey does: before that, or a goal, has a say */
	bool assigned;                    /* what a goal was solved to decides */
	struct xfp_unit_state *state;
	uint32_t number;
	bool check;
};

/* What the fits measured, as far as that is known. What is not is XFP_WANT_EXTENDED, which is for make to mend: there
 * is nothing to tell, and no text. */
struct finding {
	struct planning *planning;
	struct measured_fits {
		struct xfp_fit fit;
		struct xfp_sampled sampled[XFP_MOST_CANDIDATES];
	} of[XFP_FIT_KINDS];
};

/* Which artifacts hold candidates, and how those are read. */
static enum xfp_status read_fit(struct xfp_artifact *artifact, struct xfp_candidate *list, uint32_t *count)
{
	struct xfp_fit fit;
	enum xfp_status status = xfp_fit_read(artifact, &fit, NULL);

	if (!status)
		memcpy(list, fit.candidates, (*count = fit.candidate_count) * sizeof *list);
	return status;
}

static enum xfp_status read_survey(struct xfp_artifact *artifact, struct xfp_candidate *list, uint32_t *count)
{
	return xfp_candidates_read(artifact, XFP_MOST_SURVEYED, list, count, NULL);
}

static const struct measuring {
	enum xfp_stamp stamp; /* of such an artifact */
	uint32_t most;
	enum xfp_status (*read)(struct xfp_artifact *artifact, struct xfp_candidate *list, uint32_t *count);
} of_fit = { XFP_STAMP_FIT, XFP_MOST_CANDIDATES, read_fit },
  of_survey = { XFP_STAMP_SURVEY, XFP_MOST_SURVEYED, read_survey };

/* Read what an artifact measured or, where `measuring` is NULL, its label alone. Twice, before it is called damaged:
 * what libhdf5 says when memory runs out may look the same, and nothing sound is to be removed for that. */
static enum xfp_status read_artifact(const struct planning *p, const struct measuring *measuring, const char *key,
				     struct xfp_candidate *list, uint32_t *count)
{
	const struct xfp_step *step = measuring ? &xfp_steps[measuring->stamp] : NULL;
	char *path = xfp_store_path(&p->c->place.store, key);
	enum xfp_status status = path ? XFP_DAMAGED : XFP_FAILED;

	for (int attempt = 0; attempt < 2 && status == XFP_DAMAGED; attempt++) {
		struct xfp_artifact artifact = { 0 };

		status = xfp_artifact_open(path, step ? step->kind : NULL, step ? step->version : 0, key, &artifact,
					   NULL);
		if (!status && measuring)
			status = measuring->read(&artifact, list, count);
		xfp_artifact_close(&artifact);
	}
	free(path);
	if (status == XFP_DAMAGED)
		xfp_store_remove(&p->c->place.store, key);
	return status;
}

/* Whether an artifact is there; the manifest forgets one that is gone. */
static bool have(const struct planning *p, const char *key)
{
	struct xfp_conversion *c = p->c;

	if (!c->place.manifest || !*key)
		return false;
	if (xfp_store_has(&c->place.store, key) &&
	    (!p->check || read_artifact(p, NULL, key, NULL, NULL) != XFP_DAMAGED))
		return true;
	if (xfp_manifest_has(c->place.manifest, key))
		xfp_manifest_forget(c->place.manifest, key, NULL);
	return false;
}

/* The candidates that a fit or a survey measured; false when it is not there. The manifest is asked first; where it
 * does not know them, or is not to be believed, the artifact says what they are and the manifest is put right. */
static bool find_candidates(const struct planning *p, const struct measuring *measuring, const char *key,
			    struct xfp_candidate *list, uint32_t *count)
{
	if (!have(p, key))
		return false;
	if (xfp_manifest_get_candidates(p->c->place.manifest, key, measuring->most, list, count))
		return true;
	if (read_artifact(p, measuring, key, list, count))
		return false;
	xfp_manifest_repair(p->c->place.manifest, &p->c->place.store, key, NULL);
	return true;
}

/* What xfp-autoselect would write. A cache that cannot be written is left to that stage to report. */
static void write_choice(const struct planning *p, const struct xfp_key *key)
{
	struct xfp_conversion *c = p->c;
	const struct xfp_production production = { .store = &c->place.store,
						   .key = key,
						   .stamp = XFP_STAMP_CHOICE,
						   .unit = p->unit->name,
						   .started = xfp_now() };

	if (c->place.store.read_only || c->request->dry_run)
		return;
	if (!xfp_produce(&production, xfp_fill_choice, &p->state->choice, NULL))
		xfp_manifest_ingest(c->place.manifest, &c->place.store, key->hex, NULL);
}

static void take_key(char hex[33], struct xfp_key *key)
{
	memcpy(hex, key->hex, sizeof key->hex);
	xfp_key_free(key);
}

/* What a sample's rows say of the candidates of a fit. The manifest does not have the cosines of each row. */
static enum xfp_status find_sampled(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input,
				    struct xfp_error *err)
{
	const struct planning *p = ((struct finding *)own)->planning;
	struct measured_fits *measured = &((struct finding *)own)->of[kind];
	const char *key = input->fits[kind].key;
	char *path = xfp_store_path(&p->c->place.store, key);
	struct xfp_artifact artifact = { 0 };
	bool ok = path && !xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, key, &artifact, NULL) &&
		  !xfp_fit_read(&artifact, &measured->fit, NULL) &&
		  !xfp_sample_fit(&artifact, &measured->fit, &p->parameters.moe_sample, measured->sampled, NULL);

	xfp_artifact_close(&artifact);
	free(path);
	(void)err;
	if (!ok)
		return XFP_WANT_EXTENDED;
	input->sampled[kind] = measured->sampled;
	return XFP_OK;
}

/* Of the fits that there are. */
static enum xfp_status choice_key(const struct planning *p, const struct xfp_select_input *input, struct xfp_key *key,
				  struct xfp_error *err)
{
	return xfp_key_choice(input->fits, p->assigned ? NULL : p->state->key[XFP_STAMP_SURVEY], &p->policy,
			      p->unit->dtype, p->unit->experts, &p->parameters, key, err);
}

/* The choice that a sample came to before, so that its cosines need not be read again. */
static bool find_choice(void *own, const struct xfp_select_input *input, struct xfp_choice *choice)
{
	const struct planning *p = ((struct finding *)own)->planning;
	struct xfp_artifact artifact = { 0 };
	struct xfp_key key = { 0 };
	char *path = NULL;
	bool found = !choice_key(p, input, &key, NULL) && have(p, key.hex) &&
		     (path = xfp_store_path(&p->c->place.store, key.hex)) &&
		     !xfp_artifact_open(path, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, key.hex, &artifact, NULL) &&
		     !xfp_choice_read(&artifact, choice, NULL);

	xfp_artifact_close(&artifact);
	xfp_key_free(&key);
	free(path);
	return found;
}

/* By its key, which is known whether or not it was made. */
static enum xfp_status find_fit(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input,
				struct xfp_error *err)
{
	const struct planning *p = ((struct finding *)own)->planning;
	struct xfp_fit *fit = &((struct finding *)own)->of[kind].fit;
	char *hex = p->state->key[xfp_fit_stamp(kind)];
	struct xfp_key key = { 0 };
	enum xfp_status status = xfp_key_fit_kind(kind, input->outliers, &p->parameters, &key, err);

	if (status)
		return status;
	take_key(hex, &key);
	if (!find_candidates(p, &of_fit, hex, fit->candidates, &fit->candidate_count))
		return XFP_WANT_EXTENDED;
	input->fits[kind] = (struct xfp_fit_set){ hex, fit->candidates, fit->candidate_count };
	return XFP_OK;
}

/* Choose, as far as measurements go; with the choice's key in *key. XFP_WANT_EXTENDED: some are missing. */
static enum xfp_status choose(struct planning *p, struct xfp_key *key, struct xfp_error *err)
{
	static const struct xfp_decide_means means = { .find = find_fit, .sample = find_sampled, .known = find_choice };
	struct finding *finding = calloc(1, sizeof *finding);
	struct xfp_select_input input = { .unit = p->unit,
					  .parameters = &p->parameters,
					  .policy = &p->policy,
					  .outliers = p->state->key[XFP_STAMP_OUTLIERS] };
	struct xfp_error why = { .text = "" };
	enum xfp_status status;

	if (!finding)
		return xfp_no_memory(err);
	finding->planning = p;
	/* Only a failure is told: a floor that is not met is the stage's to report. */
	status = xfp_decide(&input, &means, finding, &p->state->choice, &why);
	if (status == XFP_FAILED)
		xfp_fail(err, status, "%s", why.text);
	for (int i = 0; i < XFP_FIT_EXTENDED; i++)
		if (input.fits[i].key) {
			p->state->nonfinite = !input.fits[i].count;
			break;
		}
	if (!status)
		status = choice_key(p, &input, key, err);
	free(finding);
	return status;
}

/* What the unit is likely to be stored as, where its survey says so: for estimates. */
static void expect(const struct planning *p, const struct xfp_candidate *aim)
{
	struct xfp_unit_state *state = p->state;

	if (!(state->expected = aim != NULL))
		return;
	state->candidate = *aim;
	if (p->parameters.on_miss != XFP_MISS_BEST && aim->cos_median < (double)p->policy.floor / XFP_NANO) {
		state->candidate = (struct xfp_candidate){ .mode = XFP_MODE_KEEP, .cos_median = aim->cos_median };
		state->candidate.bytes = xfp_unit_source_bytes(p->unit);
	}
}

/* Narrow the unit's parameters by its survey; false when that is not there. */
static bool find_aim(struct planning *p, const char *key)
{
	struct xfp_candidate *list = calloc(XFP_MOST_SURVEYED, sizeof *list);
	uint32_t count;
	bool found = list && find_candidates(p, &of_survey, key, list, &count);

	if (found) {
		expect(p, xfp_aim_candidate(list, count, p->unit, &p->policy));
		xfp_aim(list, count, p->unit, &p->policy, &p->parameters);
	}
	free(list);
	return found;
}

/* Of the artifact that only the weights decide: what a unit's first stage makes of it. */
static enum xfp_status first_key(const struct planning *p, struct xfp_key *key, struct xfp_error *err)
{
	const struct xfp_key_source source = xfp_key_source_of(p->unit, p->state->source);

	if (p->unit->plan != XFP_PLAN_FIT)
		return xfp_key_alone(p->unit->plan, &source, &p->parameters, key, err);
	return xfp_key_outliers(&source, &p->parameters, key, err);
}

/* A unit that is packed alone. */
static enum xfp_status plan_alone(const struct planning *p, struct xfp_error *err)
{
	struct xfp_key key = { 0 };
	enum xfp_status status = first_key(p, &key, err);

	if (!status)
		take_key(p->state->key[XFP_STAMP_PACKED], &key);
	return status;
}

static enum xfp_status survey_key(const struct planning *p, struct xfp_error *err)
{
	const struct xfp_key_source source = xfp_key_source_of(p->unit, p->state->source);
	struct xfp_key key = { 0 };
	enum xfp_status status = xfp_key_survey(&source, &p->surveyed, &key, err);

	if (!status)
		take_key(p->state->key[XFP_STAMP_SURVEY], &key);
	return status;
}

/* Where thresholds are the units' own: this one's, if it is known. Where a goal was solved, that says all; the survey
 * that it was solved by stays the unit's. */
static enum xfp_status plan_aim(struct planning *p, bool *known, struct xfp_error *err)
{
	bool by_survey = xfp_decide_by_survey(&p->parameters, p->unit);
	enum xfp_status status = XFP_OK;

	*known = !by_survey;
	if (by_survey || p->c->request->goal.kind)
		status = survey_key(p, err);
	if (!status && by_survey)
		*known = find_aim(p, p->state->key[XFP_STAMP_SURVEY]);
	if (status || !*known || p->c->request->dry_run || !by_survey)
		return status;
	return xfp_fits_write(p->c->request->work, p->number, &p->parameters, err);
}

/* From the digests to the choice, as far as measurements go. */
static enum xfp_status plan_fit(struct planning *p, struct xfp_error *err)
{
	const struct xfp_key_source source = xfp_key_source_of(p->unit, p->state->source);
	char(*hex)[33] = p->state->key;
	struct xfp_key key = { 0 };
	bool known;
	enum xfp_status status = plan_aim(p, &known, err);

	if (status || !known || (status = xfp_key_outliers(&source, &p->parameters, &key, err)))
		return status;
	take_key(hex[XFP_STAMP_OUTLIERS], &key);
	status = choose(p, &key, err);
	/* A unit that fails for its floor is the stage's to report, once make comes to it. */
	p->state->unmet = status == XFP_UNMET;
	if (status)
		return status == XFP_FAILED ? status : XFP_OK;
	p->state->decided = true;
	if (p->c->place.manifest && !have(p, key.hex))
		write_choice(p, &key);
	take_key(hex[XFP_STAMP_CHOICE], &key);
	if ((status = xfp_key_packed(&p->state->choice, &source, &p->parameters, &key, err)))
		return status;
	take_key(hex[XFP_STAMP_PACKED], &key);
	return XFP_OK;
}

/* A stamp for each artifact that is current and there, and no other: one that is torn or damaged would stop make from
 * making its artifact, as well as any. */
static enum xfp_status stamp_unit(const struct planning *p, struct xfp_error *err)
{
	const char *work = p->c->request->work;
	enum xfp_status status = XFP_OK;

	for (int s = 0; !status && s < XFP_STAMPS; s++) {
		char present[33] = "";
		bool well_formed = xfp_stamp_read(work, p->number, (enum xfp_stamp)s, present);
		bool there = p->state->there >> s & 1;

		if (there && (!well_formed || strcmp(present, p->state->key[s])))
			status = xfp_stamp_write(work, p->number, (enum xfp_stamp)s, p->state->key[s], err);
		else if (!there && (well_formed || xfp_stamp_exists(work, p->number, (enum xfp_stamp)s)))
			xfp_stamp_remove(work, p->number, (enum xfp_stamp)s);
	}
	if (!(p->state->there >> XFP_STAMP_SURVEY & 1) && !p->assigned)
		xfp_fits_remove(work, p->number);
	return status;
}

struct xfp_parameters xfp_prepare_parameters(const struct xfp_conversion *c, uint32_t number, struct xfp_policy *policy)
{
	const struct xfp_parameters *all = &c->parameters;
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	struct xfp_parameters parameters = xfp_decide_parameters(all, unit, policy);

	if (number < all->assigned_count && unit->plan == XFP_PLAN_FIT && xfp_is_assigned(&all->assigned[number]))
		xfp_assignment_narrow(&all->assigned[number], policy, &parameters);
	return parameters;
}

static struct planning planning_of(struct xfp_conversion *c, uint32_t number, bool check)
{
	struct planning p = { .c = c,
			      .unit = &c->units.ledger->units[number],
			      .state = &c->units.state[number],
			      .number = number,
			      .check = check };

	p.surveyed = xfp_decide_parameters(&c->parameters, p.unit, &p.policy);
	p.parameters = xfp_prepare_parameters(c, number, &p.policy);
	p.assigned = p.policy.assigned;
	return p;
}

/* Which artifacts are the unit's, by its receipt or from its weights on, and which of them are there. A receipt stands
 * for the choice, and for what was moved. */
static enum xfp_status find_keys(struct planning *p, struct xfp_error *err)
{
	struct xfp_unit_state *state = p->state;
	enum xfp_status status = xfp_receipt_take(p->c, p->number, &p->parameters, &p->policy, &state->receipt, err);

	if (!status && state->known && !state->receipt)
		status = p->unit->plan == XFP_PLAN_FIT ? plan_fit(p, err) : plan_alone(p, err);
	for (int s = 0; !status && s < XFP_STAMPS; s++)
		state->there |= (uint32_t)have(p, state->key[s]) << s;
	if (state->receipt && p->unit->plan == XFP_PLAN_FIT)
		state->there |= 1u << XFP_STAMP_CHOICE;
	if (state->moved)
		state->there |= 1u << XFP_STAMP_PACKED;
	return status;
}

static enum xfp_status begin(struct planning *p, struct xfp_error *err)
{
	struct xfp_unit_state *state = p->state;

	memset(state->key, 0, sizeof state->key);
	state->there = state->fits = 0;
	state->done = state->decided = state->unmet = state->nonfinite = state->expected = false;
	state->receipt = state->moved = false;
	return xfp_sources_find(p->c, p->number, err);
}

static enum xfp_status prepare(struct planning *p, struct xfp_error *err)
{
	struct xfp_unit_state *state = p->state;
	enum xfp_status status = begin(p, err);
	bool packed, chosen;

	if (!status)
		status = find_keys(p, err);
	/* A check has just found it damaged: the receipt is then of no use either. */
	if (!status && state->receipt && !(state->there >> XFP_STAMP_PACKED & 1)) {
		if (!(status = begin(p, err)))
			status = find_keys(p, err);
	}
	if (status)
		return status;
	state->fits = xfp_decide_fits(&p->parameters, &p->policy, p->unit);
	packed = state->there >> XFP_STAMP_PACKED & 1;
	chosen = state->there >> XFP_STAMP_CHOICE & 1;
	/* A dry run does not write the choices that it makes; the run that it tells of would. */
	state->done = packed && (chosen || p->unit->plan != XFP_PLAN_FIT || (p->c->request->dry_run && state->decided));
	if (p->c->request->dry_run)
		return XFP_OK;
	/* Its fits are known whether or not its weights are. */
	if (p->assigned)
		status = xfp_fits_write(p->c->request->work, p->number, &p->parameters, err);
	return status ? status : stamp_unit(p, err);
}

enum xfp_status xfp_prepare_unit(struct xfp_conversion *c, uint32_t number, bool check, struct xfp_error *err)
{
	struct planning p = planning_of(c, number, check);

	return prepare(&p, err);
}

enum xfp_status xfp_prepare_survey(struct xfp_conversion *c, uint32_t number, bool check,
				   struct xfp_candidate list[XFP_MOST_SURVEYED], uint32_t *count, bool *found,
				   struct xfp_error *err)
{
	struct planning p = planning_of(c, number, check);
	enum xfp_status status = begin(&p, err);

	*found = false;
	if (status || !p.state->known || (status = survey_key(&p, err)))
		goto done;
	*found = find_candidates(&p, &of_survey, p.state->key[XFP_STAMP_SURVEY], list, count);
	p.state->there = (uint32_t)*found << XFP_STAMP_SURVEY;
done:
	return status || *found || c->request->dry_run ? status : stamp_unit(&p, err);
}
