/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - sizes, as a command line gives them and as people read them.
 */
#ifndef XFP_SIZE_H
#define XFP_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "5000000", "5G" or "5GB" (powers of 1000), "5GiB" (of 1024); K, M, G or T in either case. Not 0. */
bool xfp_size_parse(const char *text, uint64_t *size);

/* "12.3 M", "1.5 GB" (unit "B") and the like, at most 15 characters. */
const char *xfp_human(double value, const char *unit, char text[32]);

#endif
