/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.h - parse and print sizes.
 */
#ifndef XFP_SIZE_H
#define XFP_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Parse "5000000", "5G" or "5GB" (powers of 1000), or "5GiB" (powers of 1024); in either case, with optional blanks
 * before the unit: "14 gb". False for 0 and for anything else. */
bool xfp_size_parse(const char *text, uint64_t *size);
/* Whether a size may lack its unit: it was given without one and is less than 1 MiB. Messages then append
 * XFP_SIZE_UNITS. */
bool xfp_size_is_bare(const char *text, uint64_t size);
#define XFP_SIZE_UNITS "units are K, M, G, T (of 1000) and KiB, MiB, GiB, TiB"

/* Whether a size was given with a binary unit, as "14GiB". */
bool xfp_size_is_binary(const char *given);
/* Print in binary units ("24 GiB", four digits), for comparison with a size that the user gave so; otherwise like
 * xfp_human. */
const char *xfp_size_text(uint64_t bytes, bool binary, char text[32]);
/* Like xfp_size_text, but rounded up to a multiple of 4 MB or MiB, in a form that xfp_size_parse reads. */
const char *xfp_size_text_rounded_up(uint64_t bytes, bool binary, char text[32]);
/* The shortest form that xfp_size_parse reads as exactly these bytes: "96GiB", "4500kB". */
const char *xfp_size_exact(uint64_t bytes, char text[32]);
/* "12.3 M", "1.5 GB" (unit "B") and so on, at most 15 characters. */
const char *xfp_human(double value, const char *unit, char text[32]);
/* The distance between about six round numbers in a range above 0: 1, 2 or 5 times a power of ten. */
double xfp_tick_step(double range);

#endif
