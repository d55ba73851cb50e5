/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - let a sample of a stack's experts decide for the stack (--moe-sample); without it all rows decide.
 */
#ifndef XFP_SAMPLE_H
#define XFP_SAMPLE_H

#include "schemas/fit.h"
#include "stages/quantize/select.h"

/* Whether a sample decides about the unit. */
bool xfp_sample_decides(const struct xfp_parameters *parameters, const struct xfp_policy *policy,
			const struct xfp_ledger_unit *unit);

/* Median and 5th percentile of each candidate of an open fit artifact over the rows of the sampled experts. */
enum xfp_status xfp_sample_fit(struct xfp_artifact *artifact, const struct xfp_fit *fit,
			       const struct xfp_moe_sample *sample, struct xfp_sampled sampled[XFP_MAX_CANDIDATES],
			       struct xfp_error *err);

#endif
