/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_survey.h - the survey (stages/quantize/survey.h) of a unit that is measured and not converted.
 */
#ifndef XFP_UNIT_SURVEY_H
#define XFP_UNIT_SURVEY_H

#include "stages/quantize/scan.h"
#include "stages/quantize/survey.h"

struct xfp_unit_survey {
	float *tile; /* as in struct xfp_peaks: set by the caller before loading, or NULL; freed with the survey */
	struct xfp_outliers known;
	struct xfp_survey survey;
};

/* The number of rows that are usually measured: about as many weights as 256 rows of 4096 have, and at least those of a
 * conversion's survey. */
uint64_t xfp_unit_survey_rows(const struct xfp_ledger_unit *unit);

/* Scan a unit and load `rows` of its rows. If it has NaN or infinity and the parameters tolerate them, no row is
 * loaded. The caller frees the survey even after a failure. Statuses are those of xfp_scan_unit and xfp_survey_load. */
enum xfp_status xfp_unit_survey_load(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				     const struct xfp_parameters *parameters, uint64_t rows,
				     struct xfp_unit_survey *survey, struct xfp_error *err);
void xfp_unit_survey_free(struct xfp_unit_survey *survey);

#endif
