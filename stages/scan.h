/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - what all weights of a unit say before any is looked at closely: digests, balance, exponents.
 */
#ifndef XFP_SCAN_H
#define XFP_SCAN_H

#include "ledger.h"
#include "outliers.h"
#include "parameters.h"

/* One pass over the unit's rows: shape, `source`, `balance` and `exponent` of *known, which is to be freed either way.
 * Weights that are no numbers fail, or, where the parameters keep them, every sigma is -1 and nothing else is told. */
enum xfp_status xfp_scan_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
			      const struct xfp_parameters *parameters, struct xfp_outliers *known,
			      struct xfp_error *err);

#endif
