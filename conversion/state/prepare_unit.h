/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare_unit.h - one unit of a conversion: which artifacts are its current ones, and how far it is.
 *
 * Keys follow from the digests of the unit's matrices, which the manifest remembers by file identity or this run has
 * read, and from measurements, so that a unit that is measured is decided here, in this process.
 */
#ifndef XFP_PREPARE_UNIT_H
#define XFP_PREPARE_UNIT_H

#include "conversion/state/conversion.h"
#include "schemas/policy.h"
#include "schemas/surveyed.h"

/* Fill in the unit's state and bring its stamps up to date: one is there afterwards exactly if its artifact is, under
 * the current key. With `check`, every artifact of it is read and compared with its digest, and damaged ones are
 * removed. */
enum xfp_status xfp_prepare_unit(struct xfp_conversion *c, uint32_t number, bool check, struct xfp_error *err);

/* The parameters and the policy as the unit's fits see them, before its survey has a say: those of its class and
 * overrides, narrowed to what a goal was solved to. Nothing is to be freed. */
struct xfp_parameters xfp_prepare_parameters(const struct xfp_conversion *c, uint32_t number,
					     struct xfp_policy *policy);

/* Where a goal decides: what the unit's survey measured. Where that is not there, the unit is left with no stamp but
 * such as it may have, so that make begins with it. */
enum xfp_status xfp_prepare_survey(struct xfp_conversion *c, uint32_t number, bool check,
				   struct xfp_candidate list[XFP_MOST_SURVEYED], uint32_t *count, bool *found,
				   struct xfp_error *err);

#endif
