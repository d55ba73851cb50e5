/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice.h - the artifact of autoselect: which candidate a unit is stored as, and why.
 *
 *   attributes of the root group only: mode, k, sigma_milli, bytes, outliers, cos_median, cos_p5,
 *   error, floor (billionths), met (0 or 1), fit (key of the fit artifact that holds the candidate)
 */
#ifndef XFP_CHOICE_H
#define XFP_CHOICE_H

#include "artifact.h"
#include "fit.h"

#define XFP_CHOICE_KIND "choice"
#define XFP_CHOICE_VERSION 1

struct xfp_choice {
	struct xfp_candidate candidate; /* mode KEEP: source precision, cosines 1, error 0 */
	uint32_t floor;                 /* what was asked for, billionths */
	uint32_t met;
	char fit[33]; /* key of the fit artifact; of outliers for KEEP */
};

enum xfp_status xfp_choice_write(struct xfp_artifact *a, const struct xfp_choice *choice, struct xfp_error *err);
enum xfp_status xfp_choice_read(struct xfp_artifact *a, struct xfp_choice *choice, struct xfp_error *err);

#endif
