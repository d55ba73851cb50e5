/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - how much time has passed.
 */
#ifndef XFP_CLOCK_H
#define XFP_CLOCK_H

double xfp_now(void); /* monotonic seconds, from an arbitrary beginning */

#endif
