/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.h - the artifact of lloyd-fit: codebooks and measurements of every candidate of a unit.
 *
 * R = matrices * rows, counted through the stack. Candidates ascend by k.
 *   attributes    matrices, rows, cols, candidates, outliers (key of the artifact that it was made from)
 *   /candidate    compound [candidates], struct xfp_candidate
 *   /codebook-K   uint16 [R * 2^K] fp16 entries, ascending within a row, one dataset a k
 *   /cosine-K     float64 [R] between the source row and its reconstruction as stored
 */
#ifndef XFP_FIT_H
#define XFP_FIT_H

#include "artifact.h"
#include "classes.h"

#define XFP_FIT_KIND "fit"
#define XFP_FIT_VERSION 2

/* One way to store a unit, measured. */
struct xfp_candidate {
	uint32_t mode; /* enum xfp_mode */
	uint32_t k;
	uint32_t sigma_milli; /* outlier threshold in thousandths; 0: none */
	uint32_t reserved;
	uint64_t bytes; /* everything stored for the unit */
	uint64_t outliers;
	double cos_median; /* lower median over all rows of the unit; -1: some row decodes to what is no
	                    * number, and the candidate must not be chosen */
	double cos_p5;     /* 5th percentile, nearest rank */
	double error;      /* squared error / squared norm, whole unit */
};

struct xfp_fit {
	uint32_t matrices;
	uint64_t rows, cols;
	char outliers[33];
	uint32_t candidate_count;
	struct xfp_candidate candidates[8];
};

/* Writing: reserve the datasets of the k in `bits`; rows [first, first + count) of one k, in any
 * order; then the table. */
enum xfp_status xfp_fit_begin(struct xfp_artifact *a, uint64_t total_rows, uint32_t bits, struct xfp_error *err);
enum xfp_status xfp_fit_write_rows(struct xfp_artifact *a, unsigned k, uint64_t first, uint64_t count,
				   const uint16_t *codebook, const double *cosine, struct xfp_error *err);
enum xfp_status xfp_fit_end(struct xfp_artifact *a, const struct xfp_fit *fit, struct xfp_error *err);

/* Reading: the table; then codebooks (cosines) of a range of rows; either pointer may be NULL. */
enum xfp_status xfp_fit_read(struct xfp_artifact *a, struct xfp_fit *fit, struct xfp_error *err);
enum xfp_status xfp_fit_read_rows(struct xfp_artifact *a, unsigned k, uint64_t first, uint64_t count,
				  uint16_t *codebook, double *cosine, struct xfp_error *err);

#endif
