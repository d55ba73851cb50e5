/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outliers.h - the artifact of outlier-extract: statistics of a unit's matrices, computed before any fit.
 *
 * M matrices (experts) of rows x cols each. Weights are those to be fitted: x = w * 2^(d/4) * 2^s with the column's
 * balance byte d and the matrix's exponent s (kernels/common/scale.h).
 *   attributes   matrices, rows, cols, sigma_milli (c in thousandths; 0: none marked)
 *   /source      uint8 [M * 16]   XXH3-128 of the source rows, see cache/key.h
 *   /balance     uint8 [cols]     d; all zero when balance is off
 *   /exponent    int16 [M]        s
 *   /mean /sigma float64 [M]      in the units of x; sigma -1: the unit has NaN or infinite weights and no
 *                                 candidates, everything else is zero
 *   /first       uint64 [M + 1]   index in `position` of a matrix's first position
 *   /position    uint64 [first[M]] flat row * cols + column, by falling |x - mean|, ties by position:
 *                                 the outliers of every higher threshold are a prefix
 */
#ifndef XFP_OUTLIERS_H
#define XFP_OUTLIERS_H

#include "schemas/artifact.h"

#define XFP_OUTLIERS_KIND "outliers"
#define XFP_OUTLIERS_VERSION 1

struct xfp_outliers {
	uint32_t matrices;
	uint64_t rows, cols;
	uint32_t sigma_milli;
	uint8_t (*source)[16];
	uint8_t *balance;
	int16_t *exponent;
	double *mean, *sigma;
	uint64_t *first;
};

/* Allocate zeroed arrays for a shape, or release them. */
enum xfp_status xfp_outliers_init(struct xfp_outliers *o, uint32_t matrices, uint64_t rows, uint64_t cols,
				  struct xfp_error *err);
void xfp_outliers_free(struct xfp_outliers *o);

/* Writing: create the artifact, then call begin; append matrix after matrix, which fills in o->first; then call end,
 * which writes the tables. */
enum xfp_status xfp_outliers_begin(struct xfp_artifact *a, struct xfp_error *err);
enum xfp_status xfp_outliers_append(struct xfp_artifact *a, struct xfp_outliers *o, uint32_t matrix,
				    const uint64_t *position, uint64_t count, struct xfp_error *err);
enum xfp_status xfp_outliers_end(struct xfp_artifact *a, const struct xfp_outliers *o, struct xfp_error *err);

/* Reading: the tables (checked for consistency); then `count` positions of one matrix, starting with number `from` of
 * its first[m + 1] - first[m]. */
enum xfp_status xfp_outliers_read(struct xfp_artifact *a, struct xfp_outliers *o, struct xfp_error *err);
enum xfp_status xfp_outliers_positions(struct xfp_artifact *a, const struct xfp_outliers *o, uint32_t matrix,
				       uint64_t from, uint64_t count, uint64_t *position, struct xfp_error *err);

#endif
