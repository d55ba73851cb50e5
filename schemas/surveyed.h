/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surveyed.h - the artifact of survey: the expected candidates of a unit for every outlier threshold.
 *
 * It has the tables of schemas/outliers.h without any outliers (digests, balance, exponents; sigma -1 as there), and
 *   attribute    candidates
 *   /candidate   compound [candidates], struct xfp_candidate: estimated from some rows of the unit; bytes and outliers
 *                are those of the unit if all rows were like these
 *
 * In a calibrated conversion, survey makes a second artifact: how errors of the unit's outputs follow from those of its
 * weights.
 *   attributes   matrices, rows (that were used), growth, feedback, feedback_median, rounding, rounding_median
 */
#ifndef XFP_SURVEYED_H
#define XFP_SURVEYED_H

#include "schemas/fit.h"
#include "schemas/outliers.h"

#define XFP_SURVEY_KIND "survey"
#define XFP_SURVEY_VERSION 1
#define XFP_MAX_SURVEYED 256

struct xfp_surveyed {
	struct xfp_outliers known;
	uint32_t count;
	struct xfp_candidate list[XFP_MAX_SURVEYED];
};
void xfp_surveyed_free(struct xfp_surveyed *surveyed);
/* Whether two surveys have the same bits: surveys of the same key do, wherever they were made. */
bool xfp_surveyed_equal(const struct xfp_surveyed *a, const struct xfp_surveyed *b);

/* Write a complete new artifact. `known` has no outliers. */
enum xfp_status xfp_surveyed_write(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err);
/* Read an artifact; on success, the caller frees it. */
enum xfp_status xfp_surveyed_read(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err);

#define XFP_SCALES_KIND "scales"
#define XFP_SCALES_VERSION 1

/* Ratios of squared errors, each relative to its squared norm. */
struct xfp_output_scale {
	uint64_t matrices, rows;
	double growth;   /* weights of a candidate with error feedback, per error of a quantizer without */
	double feedback; /* outputs of such a candidate, per error of a quantizer without feedback */
	double rounding; /* outputs of a candidate without feedback, per error of its weights */
	double feedback_median, rounding_median; /* the same ratios of single rows: lower medians */
};
/* The scale of a unit that has no inputs: its floor applies to the weights. */
extern const struct xfp_output_scale xfp_output_scale_none;

enum xfp_status xfp_scales_write(struct xfp_artifact *a, const struct xfp_output_scale *scale, struct xfp_error *err);
enum xfp_status xfp_scales_read(struct xfp_artifact *a, struct xfp_output_scale *scale, struct xfp_error *err);

#endif
