/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_number.h - whole numbers, as a command line gives them: digits alone.
 */
#ifndef XFP_WHOLE_NUMBER_H
#define XFP_WHOLE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* Whether all of `text` is a number from `least` to `most`. Otherwise `number` is left as it was. */
bool xfp_whole_number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* The same, for options: XFP_USAGE says that at `where` was expected `what`, "a number of jobs", from least to most. */
enum xfp_status xfp_whole_number(const char *where, const char *text, const char *what, uint64_t least, uint64_t most,
				 uint64_t *number, struct xfp_error *err);
/* Likewise into 32 bits. */
enum xfp_status xfp_whole_number_32(const char *where, const char *text, const char *what, uint32_t least,
				    uint32_t most, uint32_t *number, struct xfp_error *err);

#endif
