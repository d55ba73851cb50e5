/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - progress of an evaluation on a terminal, and a forecast if it takes long.
 */
#ifndef XFP_EVAL_PROGRESS_H
#define XFP_EVAL_PROGRESS_H

#include "commands/ui/meter.h"
#include "model/evaluate/evaluation.h"

struct xfp_eval_progress {
	struct xfp_meter meter;
	double drawn;
	bool forecast; /* the forecast was printed, or not needed */
};

/* For the progress callback of xfp_evaluation_run. */
void xfp_eval_progress(struct xfp_eval_progress *progress, const struct xfp_evaluation *evaluation);

#endif
