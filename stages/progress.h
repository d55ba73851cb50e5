/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far a run is, on stderr: one bar on a terminal, a line now and then elsewhere.
 *
 * What the cache gave is shown apart. Rate and remaining time follow from fresh work alone: a run that
 * starts with a thousand hits must not promise to go on like that.
 */
#ifndef XFP_PROGRESS_H
#define XFP_PROGRESS_H

#include "conversion.h"

struct xfp_progress {
	struct xfp_conversion *c;
	bool terminal, shown, begun;
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
/* A step without a measure, shown in place of the bar. */
void xfp_progress_say(struct xfp_progress *progress, const char *text);

#endif
