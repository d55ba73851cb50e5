/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey.h - what candidates would come to with outliers beyond one threshold or another, from some of a unit's rows.
 *
 * The sample, rows that are evenly spaced over all matrices of the unit, is fitted and measured as a unit would be that
 * had no others. Beside it stand the rows that hold the unit's largest weights: a single one of them can have most of
 * the unit's squared error where nothing is an outlier. They count for themselves, the sample for all others, in
 * errors and in numbers of outliers; cosines and libraries are the sample's alone. A unit that is no larger than its
 * sample is measured exactly but for one thing: outliers are told by the mean and the standard deviation of all
 * weights that are looked at instead of those of their matrix.
 *
 *     xfp_survey_load(ledger, unit, &known, &peaks, xfp_survey_rows(unit), &survey, err);
 *     xfp_survey_measure(&survey, parameters, bits, &thresholds, list, &count, err);
 *     xfp_survey_free(&survey);
 */
#ifndef XFP_SURVEY_H
#define XFP_SURVEY_H

#include "schemas/fit.h"
#include "schemas/ledger.h"
#include "schemas/outliers.h"
#include "schemas/parameters.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/scan.h"

#define XFP_SURVEY_ROWS 64            /* at the least, or all */
#define XFP_SURVEY_WEIGHTS (1u << 16) /* short rows: as many as have these, */
#define XFP_SURVEY_BYTES (8u << 20)   /* long ones: no more than these hold, but 16 */

/* Rows of one matrix, which `rows` holds as if they were its first ones: sampled ones, or one that was picked. */
struct xfp_survey_block {
	uint32_t matrix;
	uint64_t *row;  /* [rows.count] their numbers in the matrix */
	uint64_t first; /* number of the first: those of the sample come before those that were picked */
	struct xfp_rows rows;
};

struct xfp_survey {
	const struct xfp_outliers *known; /* balance and exponents; borrowed */
	struct xfp_watcher *watcher;      /* the ledger's */
	struct xfp_survey_block *blocks;
	uint32_t block_count;
	uint64_t rows, picked;
	double each;        /* rows that one of the sample stands for */
	double mean, sigma; /* of all weights, balanced, as far as can be told */
};

/* How many rows of a unit are looked at. */
uint64_t xfp_survey_rows(const struct xfp_ledger_unit *unit);

/* A sample of `rows`, or all that there are; `peaks` may be NULL. The unit's weights are all numbers. Rows that are not
 * those of the prints in `peaks`, where it has prints of as many, are XFP_CHANGED. To be freed either way. */
enum xfp_status xfp_survey_load(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				const struct xfp_outliers *known, const struct xfp_peaks *peaks, uint64_t rows,
				struct xfp_survey *survey, struct xfp_error *err);
void xfp_survey_free(struct xfp_survey *survey);

/* Outlier thresholds, in thousandths; 0: no outliers. */
struct xfp_thresholds {
	uint32_t count;
	uint32_t sigma_milli[8];
};

/* What measuring comes to, as those who watch the ledger are told of it. */
uint64_t xfp_survey_work(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters, uint32_t bits,
			 const struct xfp_thresholds *thresholds);

/* Every candidate of the parameters' modes with these bits, for every threshold, measured on the sampled rows; bytes
 * and outliers are those of a unit that has as many everywhere. `list` has a capacity of
 * 2 * XFP_MOST_CANDIDATES for each threshold. */
enum xfp_status xfp_survey_measure(const struct xfp_survey *survey, const struct xfp_parameters *parameters,
				   uint32_t bits, const struct xfp_thresholds *thresholds, struct xfp_candidate *list,
				   uint32_t *count, struct xfp_error *err);

#endif
