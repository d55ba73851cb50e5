/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - monotonic time.
 */
#ifndef XFP_CLOCK_H
#define XFP_CLOCK_H

double xfp_now(void); /* monotonic seconds since an arbitrary start */

#endif
