/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - monotonic time, and processor time.
 */
#ifndef XFP_CLOCK_H
#define XFP_CLOCK_H

double xfp_now(void);            /* monotonic seconds since an arbitrary start */
double xfp_thread_seconds(void); /* processor time of the calling thread: other processes do not matter */

#endif
