/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receipts.h - receipts of units whose artifacts --drop-cache removed.
 *
 * The keys of later artifacts depend on measurements stored in fits. Without the fits, the current artifacts could not
 * be identified, although weights and parameters determine them: a receipt (schemas/receipt.h) stores these
 * measurements.
 */
#ifndef XFP_CONVERSION_RECEIPTS_H
#define XFP_CONVERSION_RECEIPTS_H

#include "conversion/state/conversion.h"
#include "schemas/policy.h"

/* Fill in the unit's state from its receipt, if the receipt is current and the packed weights are in the cache or in
 * the pending bundle; *taken reports this. `parameters` and `policy` are those of xfp_prepare_parameters. An outdated
 * receipt is removed, except in a dry run. */
enum xfp_status xfp_receipt_apply(struct xfp_conversion *c, uint32_t unit, const struct xfp_parameters *parameters,
				  const struct xfp_policy *policy, bool *taken, struct xfp_error *err);

/* Write a receipt for a finished unit, unless it exists. */
enum xfp_status xfp_receipt_make(struct xfp_conversion *c, uint32_t unit, const struct xfp_parameters *parameters,
				 const struct xfp_policy *policy, struct xfp_error *err);

#endif
