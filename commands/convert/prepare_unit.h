/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare_unit.h - one unit of a conversion: which artifacts are its current ones, and how far it is.
 *
 * Keys follow from the digests of the unit's matrices, which the manifest remembers by file identity or this run has
 * read, and from measurements, so that a unit that is measured is decided here, in this process.
 */
#ifndef XFP_PREPARE_UNIT_H
#define XFP_PREPARE_UNIT_H

#include "commands/convert/conversion.h"
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

/* ---- receipts (receipts.c) ----------------------------------------------------------------------- */

/* Keys of later artifacts follow from measurements, which are in fits. Once those are dropped nothing could tell any
 * more which artifacts are the current ones, though everything follows from weights and parameters: a receipt
 * (schemas/receipt.h) remembers what did.
 *
 * Fill in the unit's state by its receipt, if it has one that is current and the packed weights are in the cache or in
 * the pending bundle; *taken says whether. `parameters` and `policy`: the unit's own, before its survey has a say. A
 * receipt that is no more of any use is removed, unless it is a dry run. */
enum xfp_status xfp_receipt_take(struct xfp_conversion *c, uint32_t unit, const struct xfp_parameters *parameters,
				 const struct xfp_policy *policy, bool *taken, struct xfp_error *err);

/* Leave one for a unit that is done, unless it has one. */
enum xfp_status xfp_receipt_make(struct xfp_conversion *c, uint32_t unit, struct xfp_error *err);

#endif
