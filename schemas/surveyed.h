/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surveyed.h - the artifact of survey: what is likely to become of a unit, for every outlier threshold.
 *
 * The tables of schemas/outliers.h but with no outliers in them (digests, balance, exponents; sigma -1 as there), and
 *   attribute    candidates
 *   /candidate   compound [candidates], struct xfp_candidate: what some rows of the unit say of it; bytes and outliers
 *                are what the unit would have if all rows were as those
 */
#ifndef XFP_SURVEYED_H
#define XFP_SURVEYED_H

#include "schemas/fit.h"
#include "schemas/outliers.h"

#define XFP_SURVEY_KIND "survey"
#define XFP_SURVEY_VERSION 1
#define XFP_MOST_SURVEYED 256

struct xfp_surveyed {
	struct xfp_outliers known;
	uint32_t count;
	struct xfp_candidate list[XFP_MOST_SURVEYED];
};
void xfp_surveyed_free(struct xfp_surveyed *surveyed);

/* Write the whole of a new artifact. `known` has no outliers. */
enum xfp_status xfp_surveyed_write(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err);
/* The caller frees it where this succeeds. */
enum xfp_status xfp_surveyed_read(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err);

#endif
