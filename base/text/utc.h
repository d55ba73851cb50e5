/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utc.h - format times in UTC.
 */
#ifndef XFP_UTC_H
#define XFP_UTC_H

#include <stdint.h>

/* Format seconds since 1970 as "2026-11-21T10:42:07Z"; "-" for 0 and for times that no calendar has. Returns `text`. */
const char *xfp_utc(int64_t seconds, char text[32]);

#endif
