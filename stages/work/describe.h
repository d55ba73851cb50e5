/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.h - what a bundle says of itself in words: why each tensor is stored as it is, and what it takes to make the
 * same bundle again. xfp-bundle writes both; who has to know a bundle's size beforehand needs their lengths.
 */
#ifndef XFP_DESCRIBE_H
#define XFP_DESCRIBE_H

#include "schemas/ledger.h"
#include "schemas/parameters.h"

/* What a unit is stored as. */
struct xfp_form_taken {
	enum xfp_mode mode;
	uint32_t k;
};

/* Fates and reasons become final: `taken` is [ledger->unit_count]. A tensor whose units all stayed at source precision
 * counts as kept, whatever the ledger planned. */
enum xfp_status xfp_fates_settle(struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
				 const struct xfp_form_taken *taken, struct xfp_error *err);
/* The bytes of all reasons as that would leave them, the ledger being left as it is. */
enum xfp_status xfp_fates_bytes(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
				const struct xfp_form_taken *taken, uint64_t *bytes, struct xfp_error *err);

/* xfp.json: what it takes to make the same bundle again, and nothing else. Allocated; NULL without memory. */
char *xfp_describe(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters);

#endif
