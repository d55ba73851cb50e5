/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the progress of a conversion, from the events and the pulses of its stages.
 */
#ifndef XFP_CONVERSION_PROGRESS_H
#define XFP_CONVERSION_PROGRESS_H

#include "conversion/state/conversion.h"

/* The share of a unit's time that has passed after a stage, with these modes; 0: not a stage that counts. */
double xfp_stage_share(uint32_t modes, const char *stage);
/* What a stage adds to a unit of which `before` was done. */
double xfp_stage_more(uint32_t modes, const char *stage, double before);

/* Count units that are done without a stage having run as cached. The first call starts the clock. */
void xfp_units_progress_begin(struct xfp_conversion *c);
/* A stage of a unit started or ended. */
void xfp_units_progress_event(struct xfp_conversion *c, const struct xfp_event *event);

/* Amounts of work in weights; seconds. */
struct xfp_units_progress {
	double total, cached, fresh, elapsed;
	double guessed;    /* of `fresh`, of units that are not done */
	const char *stage; /* running on the largest unit that reports its progress; NULL: none does */
	double share;      /* of that stage's work that is done */
};
struct xfp_units_progress xfp_units_progress(const struct xfp_conversion *c);

/* The share of the bundle that is written, while it is. */
double xfp_bundle_progress(const struct xfp_conversion *c);

#endif
