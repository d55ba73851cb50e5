/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - runs a prepared conversion. Each round updates the work folder, lets make run the unfinished units, and then
 * xfp-bundle assembles the bundle. A stage that finds a damaged artifact removes it, which leads to another round.
 */
#ifndef XFP_CONVERSION_RUN_H
#define XFP_CONVERSION_RUN_H

#include "conversion/finish.h"

/* Write the bundle, compare it with that of --like, record the run in the manifest, and drop the cache if requested.
 * Call after xfp_prepare_folder and xfp_check_crcs. Returns an exit status; XFP_FAILED on a signal. */
int xfp_conversion_run(struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err);

/* Run the surveys of all units without one. Call after xfp_prepare_folder. */
int xfp_survey_units(struct xfp_conversion *c, struct xfp_error *err);

#endif
