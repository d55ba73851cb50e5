/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/measure/unit_survey.h"

#include <stdlib.h>

#define USUAL_ROWS 256
#define USUAL_COLS 4096ull

uint64_t xfp_unit_survey_rows(const struct xfp_ledger_unit *unit)
{
	uint64_t all = unit->experts * unit->rows, min = xfp_survey_rows(unit);
	uint64_t usual = USUAL_ROWS * USUAL_COLS / unit->cols;

	usual = usual > USUAL_ROWS ? USUAL_ROWS : usual;
	usual = usual > min ? usual : min;
	return usual < all ? usual : all;
}

enum xfp_status xfp_unit_survey_load(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				     const struct xfp_parameters *parameters, uint64_t rows,
				     struct xfp_unit_survey *survey, struct xfp_error *err)
{
	struct xfp_peaks peaks = { .tile = survey->tile };
	enum xfp_status status = xfp_scan_unit(ledger, unit, parameters, &survey->known, &peaks, err);

	if (!status && !(survey->known.sigma[0] < 0))
		status = xfp_survey_load(ledger, unit, &survey->known, &peaks, rows, &survey->survey, err);
	return status;
}

void xfp_unit_survey_free(struct xfp_unit_survey *survey)
{
	free(survey->tile);
	xfp_survey_free(&survey->survey);
	xfp_outliers_free(&survey->known);
	*survey = (struct xfp_unit_survey){ .tile = NULL };
}
