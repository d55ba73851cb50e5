/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aim.h - what a unit's survey says is worth measuring in full: one outlier threshold, one kind of fit.
 *
 * Of the surveyed candidates, the one of fewest bytes whose cosine is likely to meet the floor, with more outliers
 * where they pay: where they remove more squared error than as many bits of index would. The unit is then fitted with
 * that threshold, mode and group size, with its bits an index and the next more, measured on all rows, and chosen among
 * what that gives: a floor is never held to be met because a survey said so. Where bits are fixed no floor can tell
 * thresholds apart: the usual one it is, in all modes. Where nothing is likely to meet the floor, it is the candidate
 * of the highest cosine.
 */
#ifndef XFP_AIM_H
#define XFP_AIM_H

#include "schemas/fit.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"
#include "stages/quantize/survey.h"

extern const struct xfp_thresholds xfp_aim_thresholds; /* what surveys try */

/* The least cosine of a surveyed candidate that is likely to meet the unit's floor. */
double xfp_aim_floor(const struct xfp_policy *policy);

/* What is aimed at; NULL: nothing, since bits are fixed or nothing is smaller than the source. */
const struct xfp_candidate *xfp_aim_candidate(const struct xfp_candidate *list, uint32_t count,
					      const struct xfp_ledger_unit *unit, const struct xfp_policy *policy);

/* Narrow `measured`, the parameters as the unit's fits see them, by its survey. */
void xfp_aim(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit,
	     const struct xfp_policy *policy, struct xfp_parameters *measured);

#endif
