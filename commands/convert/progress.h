/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far a run is, on stderr: one bar on a terminal, a line now and then elsewhere.
 */
#ifndef XFP_PROGRESS_H
#define XFP_PROGRESS_H

#include "commands/ui/meter.h"
#include "conversion/state/conversion.h"

struct xfp_progress {
	struct xfp_conversion *c;
	struct xfp_meter meter;
	bool begun;
	double printed; /* time of the last line */
	int percent;    /* of the last line */
};

/* For a conversion whose notices go to xfp_print_notice with this progress. */
void xfp_progress_init(struct xfp_progress *progress, struct xfp_conversion *c);
/* The units begin. */
void xfp_progress_begin(struct xfp_progress *progress);
/* A stage of a unit started or ended. Failures are printed as they come. */
void xfp_progress_event(struct xfp_progress *progress, const struct xfp_event *event);
/* Draw, if it is time to. */
void xfp_progress_show(struct xfp_progress *progress);
/* Remove the bar, to print something else, or for good. */
void xfp_progress_clear(struct xfp_progress *progress);
/* The last step, the bundle, in place of the bar: that it begins, and how far it is, if it is time to. */
void xfp_progress_bundle_begin(struct xfp_progress *progress);
void xfp_progress_bundle(struct xfp_progress *progress);

/* ---- notices (notices.c) ------------------------------------------------------------------------- */

/* Print what a conversion reports (conversion/state/notice.h): its callback, with a struct xfp_progress. */
void xfp_print_notice(const struct xfp_notice *notice, void *progress);

#endif
