/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/prepare_unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "cache/key.h"
#include "conversion/state/layers.h"
#include "conversion/state/measured.h"
#include "conversion/state/present.h"
#include "conversion/state/receipts.h"
#include "conversion/state/sources.h"
#include "schemas/surveyed.h"
#include "stages/quantize/decide.h"
#include "stages/quantize/sample.h"
#include "stages/quantize/survey.h"
#include "stages/quantize/target.h"
#include "stages/quantize/variants.h"
#include "stages/work/fits.h"
#include "stages/work/produce.h"

struct planning {
	struct xfp_conversion *c;
	const struct xfp_ledger_unit *unit;
	struct xfp_policy policy;
	struct xfp_parameters parameters; /* for the unit's fits */
	struct xfp_parameters surveyed;   /* for its survey: before the survey or a goal narrows them */
	bool assigned;                    /* the solution of a goal determines the format */
	struct xfp_unit_state *state;
	uint32_t number;
	bool check;
	bool targeted; /* the survey has determined the fits, or need not */
	bool scaled;   /* by predicted outputs */
};

/* Results of the fits, as far as they exist. A missing result is XFP_WANT_EXTENDED without a message, since make will
 * compute it. */
struct finding {
	struct planning *planning;
	struct measured_fits {
		struct xfp_fit fit;
		struct xfp_sampled sampled[XFP_MAX_CANDIDATES];
	} of[XFP_FIT_KINDS];
};

static bool have(const struct planning *p, const char *key)
{
	return xfp_is_present(p->c, key, p->check);
}

/* Write the choice that xfp-autoselect would write. If the cache is not writable, that stage reports it. */
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

static void set_key(char hex[33], struct xfp_key *key)
{
	memcpy(hex, key->hex, sizeof key->hex);
	xfp_key_free(key);
}

/* Read the cosines of a sample's rows for a fit's candidates, which the manifest does not have. */
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

/* Key of the choice, from the fits that exist. */
static enum xfp_status choice_key(const struct planning *p, const struct xfp_select_input *input, struct xfp_key *key,
				  struct xfp_error *err)
{
	char(*hex)[33] = p->state->key;

	return xfp_key_choice(input->fits, p->assigned ? NULL : hex[XFP_STAMP_SURVEY],
			      p->assigned || !p->scaled ? NULL : hex[XFP_STAMP_SCALES], &p->policy, p->unit->dtype,
			      p->unit->experts, &p->parameters, key, err);
}

/* Find an earlier choice from the same sample, to avoid reading its cosines again. */
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

/* Find a fit by its key, which is set even if the fit does not exist. */
static enum xfp_status find_fit(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input,
				struct xfp_error *err)
{
	const struct planning *p = ((struct finding *)own)->planning;
	struct xfp_fit *fit = &((struct finding *)own)->of[kind].fit;
	char *hex = p->state->key[xfp_fit_stamp(kind)];
	const char *inputs = xfp_layers_key(p->c, p->number, &p->parameters);
	struct xfp_key key = { 0 };
	enum xfp_status status =
		xfp_key_fit_kind(kind, input->outliers, inputs ? inputs : "", &p->parameters, &key, err);

	if (status)
		return status;
	set_key(hex, &key);
	if (!xfp_measured_fit(p->c, hex, p->check, fit))
		return XFP_WANT_EXTENDED;
	input->fits[kind] = xfp_fit_set_of(fit, hex);
	return XFP_OK;
}

/* Compute the choice from the existing measurements, and its key in *key. Returns XFP_WANT_EXTENDED if measurements are
 * missing. */
static enum xfp_status choose(struct planning *p, struct xfp_key *key, struct xfp_error *err)
{
	static const struct xfp_decide_callbacks means = { .find = find_fit,
							   .sample = find_sampled,
							   .known = find_choice };
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
	/* Report only failures: the stage itself reports a floor that is not met. */
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

void xfp_expect_target(struct xfp_unit_state *state, const struct xfp_ledger_unit *unit,
		       const struct xfp_policy *policy, enum xfp_on_miss on_miss, const struct xfp_candidate *target)
{
	if (!(state->expected = target != NULL))
		return;
	state->candidate = *target;
	if (on_miss != XFP_MISS_BEST && target->cos_median < (double)policy->floor / XFP_NANO) {
		state->candidate = (struct xfp_candidate){ .mode = XFP_MODE_KEEP, .cos_median = target->cos_median };
		state->candidate.bytes = xfp_unit_source_bytes(unit);
	}
}

/* Turn the survey's measurements of weights into predictions of outputs, if the unit has inputs; false if the scales do
 * not exist. A unit without candidates has no scales. */
static bool predict_outputs(struct planning *p, struct xfp_candidate *list, uint32_t count)
{
	struct xfp_output_scale scale;

	p->scaled = count && xfp_layers_key(p->c, p->number, &p->surveyed);
	if (!p->scaled)
		return true;
	if (!xfp_measured_scale(p->c, p->state->key[XFP_STAMP_SCALES], p->check, &scale))
		return false;
	xfp_survey_scale_apply(&scale, list, count);
	return true;
}

/* Whether the choice and the packed artifact exist that follow from the narrowed parameters. */
static bool is_packed(struct planning *p)
{
	const struct xfp_key_source source = xfp_key_source_of(p->unit, p->state->source);
	struct xfp_key key = { 0 };
	bool found = !xfp_key_outliers(&source, &p->parameters, &key, NULL);

	if (found)
		set_key(p->state->key[XFP_STAMP_OUTLIERS], &key);
	found = found && !choose(p, &key, NULL) && have(p, key.hex);
	xfp_key_free(&key);
	found = found && !xfp_key_packed(&p->state->choice, &source, &p->parameters, &key, NULL) && have(p, key.hex);
	xfp_key_free(&key);
	return found;
}

/* Find the target of a unit whose scales are lost, and can only be made from the inputs of its layer: the candidate
 * that leads to an existing choice. The key of that choice contains that of the scales that it was made with. */
static bool find_earlier_target(struct planning *p, const struct xfp_candidate *list, uint32_t count)
{
	const struct xfp_parameters parameters = p->parameters;
	const struct xfp_unit_state state = *p->state;

	for (uint32_t i = 0; *state.key[XFP_STAMP_SCALES] && i <= count; i++) {
		xfp_narrow_to_target(i < count ? &list[i] : NULL, list, count, &p->policy, &p->parameters);
		if (is_packed(p))
			return true;
		p->parameters = parameters;
		*p->state = state;
	}
	return false;
}

/* Narrow the unit's parameters by its survey; false if it does not exist, or its scales do not. */
static bool find_target(struct planning *p, const char *key)
{
	struct xfp_candidate *list = calloc(XFP_MAX_SURVEYED, sizeof *list);
	uint32_t count;
	bool found = list && xfp_measured_survey(p->c, key, p->check, list, &count);

	if (found && !predict_outputs(p, list, count)) {
		found = find_earlier_target(p, list, count);
	} else if (found) {
		xfp_expect_target(p->state, p->unit, &p->policy, p->parameters.on_miss,
				  xfp_target_candidate(list, count, p->unit, &p->policy));
		xfp_narrow_to_survey(list, count, p->unit, &p->policy, &p->parameters);
	}
	free(list);
	return found;
}

/* Key of the artifact of the unit's first stage, which depends only on weights. */
static enum xfp_status first_key(const struct planning *p, struct xfp_key *key, struct xfp_error *err)
{
	const struct xfp_key_source source = xfp_key_source_of(p->unit, p->state->source);

	if (p->unit->plan != XFP_PLAN_FIT)
		return xfp_key_direct(p->unit->plan, &source, &p->parameters, key, err);
	return xfp_key_outliers(&source, &p->parameters, key, err);
}

/* Key of a unit that is packed alone. */
static enum xfp_status plan_direct(const struct planning *p, struct xfp_error *err)
{
	struct xfp_key key = { 0 };
	enum xfp_status status = first_key(p, &key, err);

	if (!status)
		set_key(p->state->key[XFP_STAMP_PACKED], &key);
	return status;
}

/* Key of the survey, and of its scales if the unit has inputs whose key is known. */
static enum xfp_status survey_key(const struct planning *p, struct xfp_error *err)
{
	const struct xfp_key_source source = xfp_key_source_of(p->unit, p->state->source);
	const char *inputs = xfp_layers_key(p->c, p->number, &p->surveyed);
	struct xfp_key key = { 0 };
	enum xfp_status status = xfp_key_survey(&source, &p->surveyed, &key, err);

	if (!status)
		set_key(p->state->key[XFP_STAMP_SURVEY], &key);
	if (status || !inputs || !*inputs)
		return status;
	if (!(status = xfp_key_scales(p->state->key[XFP_STAMP_SURVEY], inputs, &key, err)))
		set_key(p->state->key[XFP_STAMP_SCALES], &key);
	return status;
}

/* If units have their own thresholds, find this unit's threshold from its survey. With a solved goal, the assignment
 * determines the threshold; the survey that was used remains the unit's survey. */
static enum xfp_status plan_target(struct planning *p, bool *known, struct xfp_error *err)
{
	bool by_survey = xfp_decide_by_survey(&p->parameters, p->unit);
	enum xfp_status status = XFP_OK;

	*known = !by_survey;
	if (by_survey || p->c->request->goal.kind)
		status = survey_key(p, err);
	if (!status && by_survey)
		*known = find_target(p, p->state->key[XFP_STAMP_SURVEY]);
	p->targeted = *known;
	if (status || !*known || p->c->request->dry_run || !by_survey)
		return status;
	return xfp_fits_write(p->c->request->work, p->number, &p->parameters, err);
}

/* Compute the keys from the digests to the choice, as far as measurements exist. */
static enum xfp_status plan_fit(struct planning *p, struct xfp_error *err)
{
	const struct xfp_key_source source = xfp_key_source_of(p->unit, p->state->source);
	char(*hex)[33] = p->state->key;
	struct xfp_key key = { 0 };
	const char *inputs;
	bool known;
	enum xfp_status status = plan_target(p, &known, err);

	if (status || !known || (status = xfp_key_outliers(&source, &p->parameters, &key, err)))
		return status;
	set_key(hex[XFP_STAMP_OUTLIERS], &key);
	if ((inputs = xfp_layers_key(p->c, p->number, &p->parameters)) && !*inputs)
		return XFP_OK;
	status = choose(p, &key, err);
	/* The stage reports a unit that fails for its floor, once make runs it. */
	p->state->unmet = status == XFP_UNMET;
	if (status)
		return status == XFP_FAILED ? status : XFP_OK;
	p->state->decided = true;
	if (p->c->place.manifest && !have(p, key.hex))
		write_choice(p, &key);
	set_key(hex[XFP_STAMP_CHOICE], &key);
	if ((status = xfp_key_packed(&p->state->choice, &source, &p->parameters, &key, err)))
		return status;
	set_key(hex[XFP_STAMP_PACKED], &key);
	return XFP_OK;
}

/* Write a stamp for each current artifact that exists, and remove all others. A torn or damaged stamp would also keep
 * make from building its artifact. */
static enum xfp_status stamp_unit(const struct planning *p, struct xfp_error *err)
{
	const char *work = p->c->request->work;
	enum xfp_status status = XFP_OK;

	for (int s = 0; !status && s < XFP_STAMPS; s++) {
		char present[33] = "";
		bool well_formed = xfp_stamp_read(work, p->number, (enum xfp_stamp)s, present);
		bool there = p->state->in_store >> s & 1;

		if (there && (!well_formed || strcmp(present, p->state->key[s])))
			status = xfp_stamp_write(work, p->number, (enum xfp_stamp)s, p->state->key[s], err);
		else if (!there && (well_formed || xfp_stamp_exists(work, p->number, (enum xfp_stamp)s)))
			xfp_stamp_remove(work, p->number, (enum xfp_stamp)s);
	}
	if (!(p->state->in_store >> XFP_STAMP_SURVEY & 1 && p->targeted) && !p->assigned)
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

/* Find the keys of the unit's artifacts, from its receipt or from its weights, and which of them exist. A receipt
 * stands for the choice and for moved parts. */
static enum xfp_status find_keys(struct planning *p, struct xfp_error *err)
{
	struct xfp_unit_state *state = p->state;
	enum xfp_status status = xfp_receipt_apply(p->c, p->number, &p->parameters, &p->policy, &state->receipt, err);

	if (!status && state->known && !state->receipt)
		status = p->unit->plan == XFP_PLAN_FIT ? plan_fit(p, err) : plan_direct(p, err);
	for (int s = 0; !status && s < XFP_STAMPS; s++)
		state->in_store |= (uint32_t)have(p, state->key[s]) << s;
	if (state->receipt && p->unit->plan == XFP_PLAN_FIT)
		state->in_store |= 1u << XFP_STAMP_CHOICE;
	if (state->moved)
		state->in_store |= 1u << XFP_STAMP_PACKED;
	return status;
}

static enum xfp_status begin(struct planning *p, struct xfp_error *err)
{
	struct xfp_unit_state *state = p->state;

	memset(state->key, 0, sizeof state->key);
	state->in_store = state->fits = 0;
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
	/* The check has just found the packed artifact damaged, so the receipt is useless as well. */
	if (!status && state->receipt && !(state->in_store >> XFP_STAMP_PACKED & 1)) {
		if (!(status = begin(p, err)))
			status = find_keys(p, err);
	}
	if (status)
		return status;
	state->fits = xfp_decide_fits(&p->parameters, &p->policy, p->unit);
	packed = state->in_store >> XFP_STAMP_PACKED & 1;
	chosen = state->in_store >> XFP_STAMP_CHOICE & 1;
	/* A dry run does not write its choices, but the predicted run would. */
	state->done = packed && (chosen || p->unit->plan != XFP_PLAN_FIT || (p->c->request->dry_run && state->decided));
	if (p->c->request->dry_run)
		return XFP_OK;
	/* An assignment determines the fits even if the weights are unknown. */
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
				   struct xfp_candidate list[XFP_MAX_SURVEYED], uint32_t *count, bool *found,
				   struct xfp_error *err)
{
	struct planning p = planning_of(c, number, check);
	enum xfp_status status = begin(&p, err);

	*found = false;
	if (status || !p.state->known || (status = survey_key(&p, err)))
		goto done;
	*found = xfp_measured_survey(c, p.state->key[XFP_STAMP_SURVEY], check, list, count);
	p.state->in_store = (uint32_t)*found << XFP_STAMP_SURVEY;
	if (*found && (*found = predict_outputs(&p, list, *count)))
		p.state->in_store |= (uint32_t)have(&p, p.state->key[XFP_STAMP_SCALES]) << XFP_STAMP_SCALES;
done:
	return status || *found || c->request->dry_run ? status : stamp_unit(&p, err);
}
