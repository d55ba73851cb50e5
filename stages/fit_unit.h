/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_unit.h - the frame of the stages that fit: from a unit's outliers to a fit artifact, row by row.
 *
 * A stage says how its candidates are listed, what it makes before rows are walked through, and what it makes of a row;
 * reading, scaling, marks, threads, results and the artifact are here.
 */
#ifndef XFP_FIT_UNIT_H
#define XFP_FIT_UNIT_H

#include "marks.h"
#include "measure.h"
#include "rows.h"
#include "work.h"

/* What all rows of the unit share. */
struct xfp_fitting {
	struct xfp_outliers known;
	struct xfp_artifact outliers;
	char outliers_key[33];
	struct xfp_measure measure;
	float *down; /* [padded cols] 2^(-d/4); zeros in the padding */
	struct xfp_scaling scaling;
	struct xfp_measure_unit unit; /* of the matrix at hand */
	int exponent;
	int threads;
};

struct xfp_fit_methods {
	enum xfp_fit_kind kind;
	/* Into fitting->measure: candidates and their number, of a unit whose weights are all numbers. */
	void (*list)(const struct xfp_job *job, struct xfp_fitting *fitting);
	/* Once, before the rows. */
	enum xfp_status (*begin)(struct xfp_job *job, struct xfp_fitting *fitting, struct xfp_artifact *artifact,
				 void *own, struct xfp_error *err);
	/* Row r of a block, by one of the threads: results into fitting->measure, at held + r. */
	void (*row)(const struct xfp_fitting *fitting, void *own, int thread, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, uint64_t r);
};

/* The job's unit, unless its artifact is there; then its stamp. `own` is passed on. */
enum xfp_status xfp_fit_unit(struct xfp_job *job, const struct xfp_fit_methods *methods, void *own,
			     struct xfp_error *err);

#endif
