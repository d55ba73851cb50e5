/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - progress of a run on stderr: a bar on a terminal, periodic lines elsewhere.
 */
#ifndef XFP_PROGRESS_H
#define XFP_PROGRESS_H

#include "commands/ui/meter.h"
#include "conversion/state/conversion.h"

struct xfp_progress {
	struct xfp_conversion *c;
	struct xfp_meter meter;
	bool begun;
	double printed; /* time of the last printed line */
	int percent;    /* percentage in the last printed line */
};

/* Initialize the progress display of `c`. The conversion's notices must go to xfp_print_notice with this progress. */
void xfp_progress_init(struct xfp_progress *progress, struct xfp_conversion *c);
/* Start the display; the units are about to run. */
void xfp_progress_begin(struct xfp_progress *progress);
/* Update the display after a stage of a unit started or ended. Failures are printed immediately. */
void xfp_progress_event(struct xfp_progress *progress, const struct xfp_event *event);
/* Draw the bar or print a line if the update interval has passed. */
void xfp_progress_show(struct xfp_progress *progress);
/* Remove the bar, either to print something else or at the end. */
void xfp_progress_clear(struct xfp_progress *progress);
/* Show the progress of writing the bundle instead of the bar: first the start, then updates if the interval has
 * passed. */
void xfp_progress_bundle_begin(struct xfp_progress *progress);
void xfp_progress_bundle(struct xfp_progress *progress);

/* ---- notices (notices.c) ------------------------------------------------------------------------- */

/* Print a notice of a conversion (conversion/state/notice.h). `progress` is a struct xfp_progress. */
void xfp_print_notice(const struct xfp_notice *notice, void *progress);

#endif
