/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare_unit.h - finds the current artifacts and the progress of one unit.
 *
 * Keys depend on the digests of the unit's matrices, which the manifest stores by file identity or this run has read,
 * and on measurements. The choice for a measured unit is therefore computed here, in this process.
 */
#ifndef XFP_PREPARE_UNIT_H
#define XFP_PREPARE_UNIT_H

#include "conversion/state/conversion.h"
#include "schemas/policy.h"
#include "schemas/surveyed.h"

/* Fill in the unit's state and update its stamps: afterwards a stamp exists if and only if its artifact exists under
 * the current key. With `check`, each of its artifacts is read and compared with its digest, and damaged ones are
 * removed. */
enum xfp_status xfp_prepare_unit(struct xfp_conversion *c, uint32_t number, bool check, struct xfp_error *err);

/* The parameters and the policy for the unit's fits, before its survey narrows them: those of its class and overrides,
 * restricted to the solution of a goal. The result owns no memory. */
struct xfp_parameters xfp_prepare_parameters(const struct xfp_conversion *c, uint32_t number,
					     struct xfp_policy *policy);

/* Read the candidates that the unit's survey measured, to solve a goal; of a unit with inputs, predicted outputs.
 * Without a survey, or without the scales to predict, *found is false, and the unit's other stamps are removed so that
 * make starts with the survey. */
enum xfp_status xfp_prepare_survey(struct xfp_conversion *c, uint32_t number, bool check,
				   struct xfp_candidate list[XFP_MAX_SURVEYED], uint32_t *count, bool *found,
				   struct xfp_error *err);

/* Store in the state of a unit, for estimates, how it is expected to be stored: as the target of its survey
 * (stages/quantize/target.h), or at source precision if that misses its floor. NULL: nothing is known. */
void xfp_expect_target(struct xfp_unit_state *state, const struct xfp_ledger_unit *unit,
		       const struct xfp_policy *policy, enum xfp_on_miss on_miss, const struct xfp_candidate *target);

#endif
