/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - what the rows of a unit come to with each candidate, gathered into a fit artifact.
 *
 *     xfp_measure_begin(&measure, ...);
 *     ... for rows, in any order and by several threads: measure.row[i][measure.held + r] = ...
 *     measure.held += rows; xfp_measure_flush(&measure, ...);
 *     xfp_measure_end(&measure, ...);
 */
#ifndef XFP_MEASURE_H
#define XFP_MEASURE_H

#include "kernels/encode/cosine.h"
#include "schemas/fit.h"
#include "schemas/outliers.h"

#define XFP_MEASURE_HELD 1024 /* rows whose results are worth a write */

struct xfp_measure {
	struct xfp_candidate candidates[XFP_MOST_CANDIDATES];
	uint32_t count, fitted; /* all; the first ones, for which something is fitted: all but fp8 */
	uint64_t held, done;    /* rows whose results are in memory; that are written */
	struct xfp_row_error *row[XFP_MOST_CANDIDATES]; /* by candidate, of the held ones */
	uint16_t *codebook[XFP_MOST_CANDIDATES];        /* the same, of v2; NULL for libraries */
	double *cosine;
	double error[XFP_MOST_CANDIDATES], norm; /* sums over the unit */
};

/* `candidates` and `count` are set, and `fitted` follows; memory for `most` held rows is allocated. To be freed either
 * way. */
enum xfp_status xfp_measure_begin(struct xfp_measure *measure, uint64_t most, struct xfp_error *err);
void xfp_measure_free(struct xfp_measure *measure);

/* Write what is held. */
enum xfp_status xfp_measure_flush(struct xfp_measure *measure, struct xfp_artifact *artifact, struct xfp_error *err);

/* The table of candidates, from what was measured row by row. */
enum xfp_status xfp_measure_end(struct xfp_measure *measure, const struct xfp_outliers *known, const char *outliers,
				struct xfp_artifact *artifact, struct xfp_error *err);

/* 2^s as weights are measured in, and 4^-s; both 1 and 0 where undoing the exponent may round. */
struct xfp_measure_unit {
	float unit;
	double back;
};
struct xfp_measure_unit xfp_measure_unit(bool fits, int exponent);

#endif
