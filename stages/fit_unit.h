/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_unit.h - shared code of the fitting stages: from a unit's outliers to a fit artifact, row by row.
 *
 * Reading, scaling, marks, threads, results and the artifact are handled here; the methods only fit rows.
 */
#ifndef XFP_FIT_UNIT_H
#define XFP_FIT_UNIT_H

#include "stages/quantize/fit_rows.h"
#include "stages/stage.h"

/* Fit the job's unit, unless its artifact exists; then write its stamp. */
enum xfp_status xfp_fit_unit(struct xfp_job *job, enum xfp_fit_kind kind, const struct xfp_fit_methods *methods,
			     struct xfp_error *err);

#endif
