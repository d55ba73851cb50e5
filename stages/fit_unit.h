/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_unit.h - shared code of the fitting stages: from a unit's outliers, and the inputs of its matrices, to a fit
 * artifact.
 *
 * Reading, scaling, marks, threads, results and the artifact are handled here; the methods only fit rows.
 */
#ifndef XFP_FIT_UNIT_H
#define XFP_FIT_UNIT_H

#include "stages/layer_inputs.h"
#include "stages/quantize/fit_rows.h"
#include "stages/stage.h"

/* Fit the job's unit, unless its artifact exists; then write its stamp. `inputs` NULL: without error feedback. */
enum xfp_status xfp_fit_unit(struct xfp_job *job, enum xfp_fit_kind kind, const struct xfp_fit_methods *methods,
			     const struct xfp_layer_inputs *inputs, struct xfp_error *err);

#endif
