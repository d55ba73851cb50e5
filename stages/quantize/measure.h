/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - collect the measurements of a unit's rows for each candidate in a fit artifact.
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
#include "stages/feedback/outputs.h"

#define XFP_MEASURE_HELD 1024 /* rows of results that are worth one write */

struct xfp_measure {
	struct xfp_candidate candidates[XFP_MAX_CANDIDATES];
	uint32_t count, fitted; /* fitted: the first candidates, which need fitting (all but fp8) */
	uint64_t held, done;    /* rows of results in memory, and rows already written */
	struct xfp_row_error *row[XFP_MAX_CANDIDATES]; /* results of the held rows, by candidate */
	uint16_t *codebook[XFP_MAX_CANDIDATES];        /* codebooks of the held rows, for v2; NULL for libraries */
	uint8_t *byte[XFP_MAX_CANDIDATES];             /* bytes of groups of the held rows, for v2c; NULL for others */
	uint8_t *row_byte;                             /* v2c: bytes of the held rows, the same for all candidates */
	uint64_t cols;
	double *cosine;
	double error[XFP_MAX_CANDIDATES], norm; /* sums over the unit */
};

/* Allocate memory for `max` held rows of `cols` columns; cols 0: without bytes of v2c. `candidates` and `count` must be
 * set; `fitted` is derived. The caller frees the struct even after a failure. */
enum xfp_status xfp_measure_begin(struct xfp_measure *measure, uint64_t max, uint64_t cols, struct xfp_error *err);
void xfp_measure_free(struct xfp_measure *measure);

/* Write the held results. */
enum xfp_status xfp_measure_flush(struct xfp_measure *measure, struct xfp_artifact *artifact, struct xfp_error *err);

/* Write the table of candidates, computed from the measurements of all rows, and from those of outputs unless NULL. */
enum xfp_status xfp_measure_end(struct xfp_measure *measure, const struct xfp_outputs *outputs,
				const struct xfp_outliers *known, const char *outliers, struct xfp_artifact *artifact,
				struct xfp_error *err);

/* The unit of measured weights, 2^s, and 4^-s; 1 and 0 if undoing the exponent may round. */
struct xfp_measure_unit {
	float unit;
	double back;
};
struct xfp_measure_unit xfp_measure_unit(bool fits, int exponent);

#endif
