/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_number.h - parse whole numbers from the command line: digits only.
 */
#ifndef XFP_WHOLE_NUMBER_H
#define XFP_WHOLE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* Whether `text` is a number from `min` to `max`. Otherwise `number` is unchanged. */
bool xfp_whole_number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number);

/* xfp_whole_number_parse for options. XFP_USAGE: not such a number; the message names the option `where`, the expected
 * value `what` ("a number of jobs") and the range. */
enum xfp_status xfp_whole_number(const char *where, const char *text, const char *what, uint64_t min, uint64_t max,
				 uint64_t *number, struct xfp_error *err);
/* xfp_whole_number for 32-bit values. */
enum xfp_status xfp_whole_number_32(const char *where, const char *text, const char *what, uint32_t min, uint32_t max,
				    uint32_t *number, struct xfp_error *err);

#endif
