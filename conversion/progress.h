/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - computes the progress of a conversion from events and stage progress reports.
 */
#ifndef XFP_CONVERSION_PROGRESS_H
#define XFP_CONVERSION_PROGRESS_H

#include "conversion/state/conversion.h"

/* Share of a unit's time that has passed when `stage` ends, with these modes; 0 for stages that do not count. */
double xfp_stage_share(uint32_t modes, const char *stage);
/* Share that `stage` adds to a unit whose finished share was `before`. */
double xfp_stage_more(uint32_t modes, const char *stage, double before);

/* Count units that were done without running a stage as cached. The first call starts the clock. */
void xfp_units_progress_begin(struct xfp_conversion *c);
/* Update the progress after a stage of a unit started or ended. */
void xfp_units_progress_event(struct xfp_conversion *c, const struct xfp_event *event);

/* Work is in weights, time in seconds. */
struct xfp_units_progress {
	double total, cached, fresh, elapsed;
	double guessed;    /* part of `fresh` from unfinished units, an estimate */
	const char *stage; /* stage of the largest unit that reports progress; NULL: none */
	double share;      /* finished share of that stage, or of: */
	uint32_t layer;    /* the layer whose stage is running, from 1; 0: none. Then there is no `stage` */
};
struct xfp_units_progress xfp_units_progress(const struct xfp_conversion *c);

/* Written share of the bundle while it is being written. */
double xfp_bundle_progress(const struct xfp_conversion *c);

#endif
