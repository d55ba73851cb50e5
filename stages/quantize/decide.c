/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/decide.h"

#include "stages/quantize/sample.h"

struct xfp_parameters xfp_decide_parameters(const struct xfp_parameters *all, const struct xfp_ledger_unit *unit,
					    struct xfp_policy *policy)
{
	*policy = xfp_policy_of_unit(all, unit);
	return xfp_policy_parameters(all, policy);
}

bool xfp_decide_by_survey(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit)
{
	return parameters->outlier_sigma == XFP_SIGMA_AUTO && unit->plan == XFP_PLAN_FIT;
}

uint32_t xfp_decide_fits(const struct xfp_parameters *parameters, const struct xfp_policy *policy,
			 const struct xfp_ledger_unit *unit)
{
	uint32_t fits = 0;

	if (unit->plan != XFP_PLAN_FIT || (xfp_decide_by_survey(parameters, unit) && !policy->fixed))
		return 0;
	for (int i = 0; i < XFP_FIT_EXTENDED; i++)
		fits |= (uint32_t)xfp_fit_wanted(parameters, (enum xfp_fit_kind)i) << i;
	return fits;
}

/* Find all fits of the kinds [first, end) that the modes need. */
static enum xfp_status find_fits(struct xfp_select_input *input, const struct xfp_decide_callbacks *means, void *own,
				 enum xfp_fit_kind first, enum xfp_fit_kind end, struct xfp_error *err)
{
	enum xfp_status missing = XFP_OK;

	for (enum xfp_fit_kind kind = first; kind < end; kind++) {
		enum xfp_status status;

		if (!xfp_fit_wanted(input->parameters, kind))
			continue;
		status = means->find(own, kind, input, err);
		if (status == XFP_WANT_EXTENDED)
			missing = status;
		else if (status)
			return status;
	}
	return missing;
}

/* `unmet`: no candidate meets the floor, and the extended set was not measured. */
static enum xfp_status choose(struct xfp_select_input *input, const struct xfp_decide_callbacks *means, void *own,
			      struct xfp_choice *choice, bool *unmet, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	*unmet = false;
	if (xfp_sample_decides(input->parameters, input->policy, input->unit)) {
		if (means->known && means->known(own, input, choice))
			return XFP_OK;
		for (int i = 0; !status && means->sample && i < XFP_FIT_KINDS; i++)
			if (input->fits[i].key)
				status = means->sample(own, (enum xfp_fit_kind)i, input, err);
	}
	if (status)
		return status;
	status = xfp_select(input, choice, err);
	*unmet = status == XFP_WANT_EXTENDED;
	return status;
}

enum xfp_status xfp_decide(struct xfp_select_input *input, const struct xfp_decide_callbacks *means, void *own,
			   struct xfp_choice *choice, struct xfp_error *err)
{
	bool unmet = false;
	enum xfp_status status = find_fits(input, means, own, XFP_FIT_BASE, XFP_FIT_EXTENDED, err);

	if (!status)
		status = choose(input, means, own, choice, &unmet, err);
	if (!unmet)
		return status;
	status = find_fits(input, means, own, XFP_FIT_EXTENDED, XFP_FIT_KINDS, err);
	return status ? status : choose(input, means, own, choice, &unmet, err);
}
