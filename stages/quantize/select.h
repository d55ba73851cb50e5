/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - the decision of autoselect, without files: used by xfp-autoselect for one unit and by
 * `xfp prepare` for all units that are already measured.
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

/* What one fit measured. */
struct xfp_select_set {
	const char *key; /* NULL: not measured */
	const struct xfp_candidate *candidates;
	const struct xfp_sampled *sampled; /* of each candidate, where a sample decides; otherwise NULL */
	uint32_t count;
};

/* What there is to choose from. */
struct xfp_select_input {
	const struct xfp_ledger_unit *unit;
	const struct xfp_parameters *parameters;
	const struct xfp_policy *policy;
	const char *outliers;                      /* key */
	struct xfp_select_set fits[XFP_FIT_KINDS]; /* of modes that are not wanted: without a key */
};

/* The candidate of fewest bytes (then higher median) whose median, over all rows or those of the sampled experts,
 * meets the unit's floor, among those that its policy allows and that are smaller than the source.
 * XFP_WANT_EXTENDED: none does and the extended set is allowed but not measured yet. Otherwise on-miss decides: keep,
 * best, or XFP_UNMET naming the unit and the best. Where the bits are fixed, those: the floor only tells whether
 * it is met. */
enum xfp_status xfp_select(const struct xfp_select_input *input, struct xfp_choice *choice, struct xfp_error *err);

#endif
