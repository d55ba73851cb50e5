/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utc.h - points in time, as they are told and recorded.
 */
#ifndef XFP_UTC_H
#define XFP_UTC_H

#include <stdint.h>

/* "2026-11-21T10:42:07Z" of seconds since 1970; "-" for 0, and for what no calendar has. Returns `text`. */
const char *xfp_utc(int64_t seconds, char text[32]);

#endif
