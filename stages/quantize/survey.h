/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey.h - estimate the candidates of a unit for several outlier thresholds from some of its rows.
 *
 * The sample, rows that are evenly spaced over all matrices of the unit, is fitted and measured like a unit that
 * consists of these rows. In addition, the rows with the unit's largest weights are measured: a single one of them can
 * account for most of the unit's squared error if there are no outliers. These rows count for themselves, the sample
 * for all others, in errors and in numbers of outliers; cosines and libraries come from the sample alone. A unit that
 * is no larger than its sample is measured exactly, with one exception: the mean and the standard deviation that define
 * outliers are those of all weights read, not of each matrix.
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
#include "schemas/surveyed.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/scan.h"

#define XFP_SURVEY_ROWS 64            /* minimum number of rows, or all */
#define XFP_SURVEY_WEIGHTS (1u << 16) /* for short rows: enough rows for this many weights */
#define XFP_SURVEY_BYTES (8u << 20)   /* for long rows: at most this many bytes, but 16 rows */

/* Rows of one matrix, stored in `rows` as if they were its first ones: sampled rows, or one of the peaks. */
struct xfp_survey_block {
	uint32_t matrix;
	uint64_t *row;  /* [rows.count] their numbers in the matrix */
	uint64_t first; /* number of the first row: rows of the sample come before the peaks */
	struct xfp_rows rows;
};

struct xfp_survey {
	const struct xfp_outliers *known; /* balance and exponents; borrowed */
	struct xfp_watcher *watcher;      /* the ledger's */
	struct xfp_survey_block *blocks;
	uint32_t block_count;
	uint64_t rows, picked;
	double each;        /* rows that a row of the sample represents */
	double mean, sigma; /* estimated, of all balanced weights */
};

/* The number of rows of a unit to sample. */
uint64_t xfp_survey_rows(const struct xfp_ledger_unit *unit);

/* Load a sample of `rows` rows, or all rows; `peaks` may be NULL. The unit's weights must be finite. XFP_CHANGED: a row
 * does not match its fingerprint in `peaks`, if that has fingerprints for this sample. The caller frees the survey even
 * after a failure. */
enum xfp_status xfp_survey_load(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				const struct xfp_outliers *known, const struct xfp_peaks *peaks, uint64_t rows,
				struct xfp_survey *survey, struct xfp_error *err);
void xfp_survey_free(struct xfp_survey *survey);

/* Outlier thresholds, in thousandths; 0: no outliers. */
struct xfp_thresholds {
	uint32_t count;
	uint32_t sigma_milli[8];
};

/* The work of measuring, in the unit of struct xfp_watcher (schemas/ledger.h). */
uint64_t xfp_survey_work(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters, uint32_t bits,
			 const struct xfp_thresholds *thresholds);

/* Measure every candidate of the parameters' modes with these bits, for every threshold, on the sampled rows; bytes and
 * outliers are extrapolated to the unit. `list` has space for 2 * XFP_MAX_CANDIDATES for each threshold. */
enum xfp_status xfp_survey_measure(const struct xfp_survey *survey, const struct xfp_parameters *parameters,
				   uint32_t bits, const struct xfp_thresholds *thresholds, struct xfp_candidate *list,
				   uint32_t *count, struct xfp_error *err);

struct xfp_second_moments;
/* Compute the scale of outputs from rows of at most XFP_TRAINED_MATRICES matrices of the sample, those with most
 * training inputs. `group`: columns of a group. */
enum xfp_status xfp_survey_scale(const struct xfp_survey *survey, struct xfp_second_moments *moments, unsigned group,
				 struct xfp_output_scale *scale, struct xfp_error *err);
/* Replace errors and cosines of a survey's candidates by those predicted for outputs. */
void xfp_survey_scale_apply(const struct xfp_output_scale *scale, struct xfp_candidate *list, uint32_t count);

#endif
