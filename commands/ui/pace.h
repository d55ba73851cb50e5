/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.h - how work gets on: its rate, what is left of its time, and how both are worded.
 *
 * What was there already is counted apart. Rate and remaining time follow from fresh work alone: a run that starts
 * with a thousand hits of the cache must not promise to go on like that.
 */
#ifndef XFP_PACE_H
#define XFP_PACE_H

#include <stddef.h>

#define XFP_PACE_MOST 1e7   /* seconds; what is longer is no forecast */
#define XFP_PACE_SHARE 100  /* fresh work tells of all once it is one in so many of it, */
#define XFP_PACE_SECONDS 60 /* or has gone on for so long */

/* Amounts of work, weights or any other measure, and seconds. */
struct xfp_pace {
	double total, cached, fresh, elapsed;
	double guessed; /* of `fresh`, shares of things that are begun: how much of their time that was is a guess */
};

/* Amount a second; 0: there is no telling yet. */
double xfp_pace_rate(const struct xfp_pace *pace);
/* Seconds that are left at this rate; negative: there is no telling. A forecast is to be trusted once there is enough
 * fresh work, and half of it, or of all that is to be done, is known and not guessed: the first minutes of a large unit
 * tell nothing of the hours to come. */
double xfp_pace_left(const struct xfp_pace *pace);
/* "1.20 G of 2.90 G weights, 35.1 M/s, ETA 0:12:40, 300 M cached" */
void xfp_pace_text(const struct xfp_pace *pace, char *text, size_t size);

/* "0:12:40" */
const char *xfp_clock_text(double seconds, char text[32]);
/* "3.2 s", "12 s", and from 99.5 on "0:12:40" */
const char *xfp_duration_text(double seconds, char text[32]);
/* "95 s", "12 min", "3.5 h": for estimates */
const char *xfp_about_text(double seconds, char text[48]);
/* "about 12 s left", "about 3 min left" */
const char *xfp_left_text(double seconds, char text[48]);

#endif
