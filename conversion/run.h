/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a whole conversion, once its folder is prepared. Until nothing is missing: the work folder is brought up to
 * date, make runs the units that are not finished, and xfp-bundle assembles the bundle. A stage that meets a damaged
 * artifact removes it, and the loop continues with another round.
 */
#ifndef XFP_CONVERSION_RUN_H
#define XFP_CONVERSION_RUN_H

#include "conversion/finish.h"

/* After xfp_prepare_folder and xfp_check_crcs: write the bundle, compare it with that of --like, record the run in the
 * manifest, drop the cache if requested. Returns an exit status; one of a signal is XFP_FAILED. */
int xfp_conversion_run(struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err);

/* After xfp_prepare_folder: run the surveys of all units that have none, and nothing else. */
int xfp_survey_units(struct xfp_conversion *c, struct xfp_error *err);

#endif
