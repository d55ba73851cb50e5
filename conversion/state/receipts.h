/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipts.h - a unit whose artifacts --drop-cache removed.
 *
 * Keys of later artifacts follow from measurements, which are in fits. Once those are dropped nothing could tell any
 * more which artifacts are the current ones, though everything follows from weights and parameters: a receipt
 * (schemas/receipt.h) remembers what did.
 */
#ifndef XFP_CONVERSION_RECEIPTS_H
#define XFP_CONVERSION_RECEIPTS_H

#include "conversion/state/conversion.h"
#include "schemas/policy.h"

/* Fill in the unit's state by its receipt, if it has one that is current and the packed weights are in the cache or in
 * the pending bundle; *taken says whether. `parameters` and `policy`: those of xfp_prepare_parameters. An outdated
 * receipt is removed, unless it is a dry run. */
enum xfp_status xfp_receipt_take(struct xfp_conversion *c, uint32_t unit, const struct xfp_parameters *parameters,
				 const struct xfp_policy *policy, bool *taken, struct xfp_error *err);

/* Leave one for a unit that is done, unless it has one. */
enum xfp_status xfp_receipt_make(struct xfp_conversion *c, uint32_t unit, const struct xfp_parameters *parameters,
				 const struct xfp_policy *policy, struct xfp_error *err);

#endif
