/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.h - the descriptive texts of a bundle: the reason for each tensor's fate, and the settings needed to make
 * the same bundle again. xfp-bundle writes both; the size prediction needs their lengths.
 */
#ifndef XFP_DESCRIBE_H
#define XFP_DESCRIBE_H

#include "schemas/fit.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"

/* The form that a unit is stored in. */
struct xfp_stored_form {
	enum xfp_mode mode;
	uint32_t k;
};

/* Make fates and reasons final: `taken` is [ledger->unit_count]. A tensor whose units all stayed at source precision
 * counts as kept, whatever the ledger planned. */
enum xfp_status xfp_fates_settle(struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
				 const struct xfp_stored_form *taken, struct xfp_error *err);
/* The total size of all reasons after xfp_fates_settle, without changing the ledger. */
enum xfp_status xfp_fates_bytes(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
				const struct xfp_stored_form *taken, uint64_t *bytes, struct xfp_error *err);

/* The text of xfp.json: everything needed to make the same bundle again; and of a calibrated one, the outputs of its
 * units: `outputs` is [ledger->unit_count], NULL for a unit that was not calibrated. Its length does not depend on the
 * numbers. The caller frees it; NULL if memory runs out. */
char *xfp_describe(const struct xfp_ledger *ledger, const struct xfp_parameters *parameters,
		   const struct xfp_output_measure *const *outputs);

#endif
