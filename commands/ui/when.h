/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - timestamps in JSON.
 */
#ifndef XFP_WHEN_H
#define XFP_WHEN_H

#include <jansson.h>
#include <stdint.h>

/* xfp_utc (base/text/utc.h) as a string; null for 0. */
json_t *xfp_json_time(int64_t seconds);

#endif
