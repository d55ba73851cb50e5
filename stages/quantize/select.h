/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - select the candidate that a unit is stored as.
 */
#ifndef XFP_SELECT_H
#define XFP_SELECT_H

#include "base/dtype.h"
#include "schemas/choice.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"

/* Measurements of a candidate on the sampled experts' rows. */
struct xfp_sampled {
	double median, p5;
};

/* The candidates to choose from. */
struct xfp_select_input {
	const struct xfp_ledger_unit *unit;
	const struct xfp_parameters *parameters;
	const struct xfp_policy *policy;
	const char *outliers;                             /* key */
	struct xfp_fit_set fits[XFP_FIT_KINDS];           /* measurements */
	const struct xfp_sampled *sampled[XFP_FIT_KINDS]; /* by candidate, if a sample decides; otherwise NULL */
};

/* Select the smallest candidate (then the one with the higher median) whose median meets the unit's floor, among those
 * that its policy allows and that are smaller than the source. The median is that of outputs if the fits are
 * calibrated, otherwise that of weights, over all rows or those of the sampled experts.
 * XFP_WANT_EXTENDED: none meets it, or none that is smaller than fp8, and the extended set is allowed but not measured
 * yet. Otherwise on-miss decides: keep, best, or XFP_UNMET with a message that names the unit and the best candidate.
 * With fixed bits or a goal, these decide, and the floor only determines `met`. */
enum xfp_status xfp_select(const struct xfp_select_input *input, struct xfp_choice *choice, struct xfp_error *err);

#endif
