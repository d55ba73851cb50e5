/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - select from a unit's survey what to measure in full: one outlier threshold, one kind of fit.
 *
 * The target is the smallest surveyed candidate whose cosine is likely to meet the floor, with more outliers if they
 * pay off: if they remove more squared error than the same number of bytes of index would. The unit is then fitted with
 * that threshold, mode and group size, with its bits per index and the next higher number, measured on all rows, and
 * the choice is made from these results: a survey alone never decides that a floor is met. With fixed bits, no floor
 * distinguishes thresholds: the default threshold is used, in all modes. If no candidate is likely to meet the floor,
 * the target is the one with the highest cosine. Floors of calibrated units apply to outputs: the caller replaces the
 * cosines by predicted ones (xfp_layer_inputs_predict).
 */
#ifndef XFP_TARGET_H
#define XFP_TARGET_H

#include "schemas/fit.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"
#include "stages/quantize/survey.h"

extern const struct xfp_thresholds xfp_target_thresholds; /* the thresholds that surveys try */

/* The minimum cosine of a surveyed candidate that is likely to meet the unit's floor. */
double xfp_target_floor(const struct xfp_policy *policy);

/* The target; NULL: none, since bits are fixed or no candidate is smaller than the source. */
const struct xfp_candidate *xfp_target_candidate(const struct xfp_candidate *list, uint32_t count,
						 const struct xfp_ledger_unit *unit, const struct xfp_policy *policy);

/* Narrow `measured`, the parameters of the unit's fits, according to its survey. */
void xfp_narrow_to_survey(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit,
			  const struct xfp_policy *policy, struct xfp_parameters *measured);
/* The same for a given target: one of the list, or NULL. */
void xfp_narrow_to_target(const struct xfp_candidate *target, const struct xfp_candidate *list, uint32_t count,
			  const struct xfp_policy *policy, struct xfp_parameters *measured);

#endif
