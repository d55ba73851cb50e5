/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - progress of work: its rate, the remaining time, and both as text.
 *
 * Work found in the cache is counted separately. Rate and remaining time follow from fresh work alone: a thousand cache
 * hits at the start must not lead to a forecast at that speed.
 */
#ifndef XFP_PACE_H
#define XFP_PACE_H

#include <stddef.h>

#define XFP_PACE_MAX 1e7    /* seconds; longer forecasts are meaningless */
#define XFP_PACE_SHARE 100  /* a forecast needs this fraction of all work done fresh, */
#define XFP_PACE_SECONDS 60 /* or this many seconds of it */

/* Amounts of work (weights or another unit), and seconds. */
struct xfp_pace {
	double total, cached, fresh, elapsed;
	double guessed; /* of `fresh`, estimated progress of unfinished items */
};

/* Amount per second; 0 if not known yet. */
double xfp_pace_rate(const struct xfp_pace *pace);
/* Remaining seconds at this rate; negative if unknown. A forecast needs enough fresh work, and at least half of that
 * work, or of all work, measured and not guessed: the first minutes of a large unit do not predict the hours that
 * follow. */
double xfp_pace_remaining(const struct xfp_pace *pace);
/* "1.20 G of 2.90 G weights, 35.1 M/s, ETA 0:12:40, 300 M cached" */
void xfp_pace_text(const struct xfp_pace *pace, char *text, size_t size);

/* "0:12:40" */
const char *xfp_clock_text(double seconds, char text[32]);
/* "3.2 s", "12 s"; from 99.5 s on "0:12:40" */
const char *xfp_duration_text(double seconds, char text[32]);
/* "95 s", "12 min", "3.5 h": for estimates */
const char *xfp_rough_time_text(double seconds, char text[48]);
/* "about 12 s left", "about 3 min left" */
const char *xfp_remaining_text(double seconds, char text[48]);

#endif
