/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_unit.h - the frame of the stages that fit: from a unit's outliers to a fit artifact, row by row.
 *
 * Reading, scaling, marks, threads, results and the artifact are here; what becomes of a row is the methods'.
 */
#ifndef XFP_FIT_UNIT_H
#define XFP_FIT_UNIT_H

#include "stages/quantize/fit_rows.h"
#include "stages/stage.h"

/* The job's unit, unless its artifact is there; then its stamp. */
enum xfp_status xfp_fit_unit(struct xfp_job *job, enum xfp_fit_kind kind, const struct xfp_fit_methods *methods,
			     struct xfp_error *err);

#endif
