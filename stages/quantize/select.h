/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - which of the candidates that were measured a unit is stored as.
 */
#ifndef XFP_SELECT_H
#define XFP_SELECT_H

#include "base/dtype.h"
#include "schemas/choice.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"

/* What some experts' rows say of a candidate. */
struct xfp_sampled {
	double median, p5;
};

/* What there is to choose from. */
struct xfp_select_input {
	const struct xfp_ledger_unit *unit;
	const struct xfp_parameters *parameters;
	const struct xfp_policy *policy;
	const char *outliers;                   /* key */
	struct xfp_fit_set fits[XFP_FIT_KINDS]; /* what was measured */
	const struct xfp_sampled
		*sampled[XFP_FIT_KINDS]; /* of each candidate, where a sample decides; otherwise NULL */
};

/* The candidate of fewest bytes (then higher median) whose median, over all rows or those of the sampled experts,
 * meets the unit's floor, among those that its policy allows and that are smaller than the source.
 * XFP_WANT_EXTENDED: none does, or none that takes less than fp8 would, and the extended set is allowed but not
 * measured yet. Otherwise on-miss decides: keep, best, or XFP_UNMET naming the unit and the best. Where the bits are
 * fixed, or a goal decides, those: the floor only tells whether it is met. */
enum xfp_status xfp_select(const struct xfp_select_input *input, struct xfp_choice *choice, struct xfp_error *err);

#endif
