/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice.h - the artifact of autoselect: the selected candidate of a unit, and the reason.
 *
 *   attributes of the root group only: mode, k, sigma_milli, group, library, bytes, outliers, cos_median, cos_p5,
 *   error, floor (billionths), met (0 or 1), fixed (0 or 1), fit (key of the fit artifact that holds the
 *   candidate); and sample, the number of experts that decided, with sample_median and sample_p5 over their
 *   rows: 0 if all experts decided
 *   /output      of a unit with inputs: compound [1], struct xfp_output_measure of the candidate
 */
#ifndef XFP_CHOICE_H
#define XFP_CHOICE_H

#include "schemas/artifact.h"
#include "schemas/fit.h"

#define XFP_CHOICE_KIND "choice"
#define XFP_CHOICE_VERSION 3

struct xfp_choice {
	struct xfp_candidate candidate; /* mode KEEP: source precision, cosines 1, error 0 */
	uint32_t floor;                 /* the requested floor, billionths */
	uint32_t met;                   /* whether all rows together, or else their outputs, meet the floor */
	uint32_t fixed;                 /* the bits were requested explicitly, and the floor does not apply */
	uint32_t sample;
	double sample_median, sample_p5;
	bool calibrated;
	struct xfp_output_measure output; /* if calibrated; for KEEP cosines 1, error 0 */
	char fit[33];                     /* key of the fit artifact; of outliers for KEEP */
};

enum xfp_status xfp_choice_write(struct xfp_artifact *a, const struct xfp_choice *choice, struct xfp_error *err);
enum xfp_status xfp_choice_read(struct xfp_artifact *a, struct xfp_choice *choice, struct xfp_error *err);

#endif
