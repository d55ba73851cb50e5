/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - the decision of autoselect, without files: used by xfp-autoselect for one unit and by
 * `xfp prepare` for all units that are already measured.
 */
#ifndef XFP_SELECT_H
#define XFP_SELECT_H

#include "choice.h"
#include "dtype.h"
#include "ledger.h"
#include "parameters.h"

/* What there is to choose from. */
struct xfp_select_input {
	const struct xfp_ledger_unit *unit;
	const struct xfp_parameters *parameters;
	const char *outliers;        /* keys */
	const char *base, *extended; /* `extended` NULL: not measured */
	const struct xfp_candidate *base_candidates, *extended_candidates;
	uint32_t base_count, extended_count;
};

/* The candidate of fewest bytes (then higher median) whose median meets the unit's floor, among
 * those no larger than the source. XFP_WANT_MORE: none does and the extended set is allowed but not
 * measured yet. Otherwise on-miss decides: keep, best, or XFP_UNMET naming the unit and the best. */
enum xfp_status xfp_select(const struct xfp_select_input *input, struct xfp_choice *choice, struct xfp_error *err);

#endif
