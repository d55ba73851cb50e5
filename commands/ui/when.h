/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when.h - points in time as people and programs are told them.
 */
#ifndef XFP_WHEN_H
#define XFP_WHEN_H

#include <jansson.h>
#include <stdint.h>

/* "2026-11-21T10:42:07Z" of seconds since 1970; "-" for 0. */
const char *xfp_utc(int64_t seconds, char text[32]);
/* The same as a string; null for 0. */
json_t *xfp_json_time(int64_t seconds);

#endif
