/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured.h - find the measurements of a unit's fits and survey: in the manifest, or else in the artifacts, which then
 * correct the manifest.
 *
 * Each function returns false if the artifact does not exist. `check`: as in xfp_is_present.
 */
#ifndef XFP_MEASURED_H
#define XFP_MEASURED_H

#include "conversion/state/conversion.h"
#include "schemas/surveyed.h"

/* Sets only the candidates and outputs of the fit. */
bool xfp_measured_fit(const struct xfp_conversion *c, const char *key, bool check, struct xfp_fit *fit);
bool xfp_measured_survey(const struct xfp_conversion *c, const char *key, bool check,
			 struct xfp_candidate list[XFP_MAX_SURVEYED], uint32_t *count);
bool xfp_measured_scale(const struct xfp_conversion *c, const char *key, bool check, struct xfp_output_scale *scale);

#endif
