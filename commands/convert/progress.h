/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far a run is, on stderr: one bar on a terminal, a line now and then elsewhere.
 */
#ifndef XFP_PROGRESS_H
#define XFP_PROGRESS_H

#include "commands/convert/conversion.h"
#include "commands/ui/meter.h"

/* What of a unit's time has passed after a stage, about, where these are the modes; 0: not a stage that counts. */
double xfp_stage_share(uint32_t modes, const char *stage);
/* What a stage adds to a unit of which `before` was done. */
double xfp_stage_more(uint32_t modes, const char *stage, double before);

struct xfp_progress {
	struct xfp_conversion *c;
	struct xfp_meter meter;
	bool begun;
	double cached, fresh;    /* weights */
	double started, printed; /* times */
	int percent;             /* of the last line */
};

void xfp_progress_init(struct xfp_progress *progress, struct xfp_conversion *c);
/* Units that are done without a stage having run count as cached. Then the clock starts. */
void xfp_progress_begin(struct xfp_progress *progress);
/* A step of a unit is over (the callback of xfp_ingest). Failures are printed as they come. */
void xfp_progress_event(const struct xfp_event *event, void *progress);
/* Draw, if it is time to. */
void xfp_progress_show(struct xfp_progress *progress);
/* Remove the bar, to print something else, or for good. */
void xfp_progress_clear(struct xfp_progress *progress);
/* The last step, the bundle, in place of the bar: that it begins, and how far it is, if it is time to. */
void xfp_progress_bundle_begin(struct xfp_progress *progress);
void xfp_progress_bundle(struct xfp_progress *progress);

#endif
